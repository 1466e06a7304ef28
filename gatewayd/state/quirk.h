/*
 * Deviations of known clients that a setting lets pass.
 */
#ifndef QUIRK_H
#define QUIRK_H

struct conf;
struct gateway;

/* Returns the quirks that the settings allow: a mask of 1 << enum mcp_quirk. */
unsigned quirk_settings(const struct conf *);
/* Logs that these quirks let a request pass (acted: mask). */
void quirk_note(
    struct gateway *, unsigned acted, const char *agent /* or NULL */);

#endif
