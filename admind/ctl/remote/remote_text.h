/*
 * The examples of contrib/nginx and contrib/cloudflared, and the site of
 * contrib/caddy, made by remote_text.py. Each ends with NUL.
 */
#ifndef REMOTE_TEXT_H
#define REMOTE_TEXT_H

/* The name and the run directory in them. */
#define REMOTE_TEXT_HOST "mcp.example.org"
#define REMOTE_TEXT_RUN  "/run/mcpbox/"

extern const char remote_text_nginx[];
extern const char remote_text_cloudflared[];
extern const char remote_text_caddy[];

#endif
