/*
 * A refusal: another process refused a request, or is not there. The refusal
 * becomes an answer to the client.
 */
#ifndef REFUSAL_H
#define REFUSAL_H

#include "gw_access.h"
#include "mcp_request.h"

struct gateway;

/* A failure of the platform or of authority. */
struct refusal {
	enum failure failure;
	uint64_t retry_after_ms;
	char message[MCP_MESSAGE_MAX];
	char data[MCP_DATA_MAX]; /* JSON members of error.data, or "" */
	/* FORBIDDEN: the scopes with which another token is enough; "": none
	 * is. */
	char scope[GW_SCOPES_MAX + 1];
};

void refusal_set(struct refusal *, enum failure, uint64_t retry_after_ms,
    const char *message);
/* Says that the token lacks a scope. scope: all scopes to ask for. */
void refusal_scope(struct refusal *, const char *scope);
/* Says that admind or sandboxd is not connected: it is being upgraded, or it
 * restarts. */
void refusal_away(struct refusal *, const struct gateway *, bool sandboxd);
/* Fills a refusal from a frame that is not the expected answer: REFUSED, or
 * nonsense. Frame NULL: no answer came, and gone says why. process: the peer's
 * name, for the message. */
void refusal_from(struct refusal *, struct ipc_frame *, enum failure gone,
    const char *process);

#endif
