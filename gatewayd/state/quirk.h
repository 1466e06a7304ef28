/*
 * Deviations of known clients that a setting lets pass.
 */
#ifndef QUIRK_H
#define QUIRK_H

struct conf;
struct gateway;

/* The settings: a mask of 1 << enum mcp_quirk. */
unsigned quirk_settings(const struct conf *);
/* A line in the log: these acted. */
void quirk_note(
    struct gateway *, unsigned acted, const char *agent /* or NULL */);

#endif
