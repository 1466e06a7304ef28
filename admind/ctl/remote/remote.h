/*
 * Remotes: ways in that an administrator set up with `mcpboxctl remote`
 * (docs/decisions/0101).
 */
#ifndef REMOTE_H
#define REMOTE_H

#include "ctl.h"

struct json_object;

enum remote_kind {
	REMOTE_OIDC,
	REMOTE_WORKER,
	REMOTE_ACCESS,
	REMOTE_TOKEN,
	REMOTE_TAILSCALE
};

enum {
	REMOTE_KIND_COUNT = REMOTE_TAILSCALE + 1,
	REMOTE_NAME_MAX = 32, /* as an issuer's */
	REMOTE_HOST_MAX = 253
};

/* Returns the kind's word on the command line. */
const char *remote_word(enum remote_kind);

/* Returns the kind of this word, or -1. */
int remote_kind_of(const char *word);

/* Tells whether a name is one of an issuer: a letter, then a-z 0-9 and -. */
bool remote_name_ok(const char *);

/* Copies the host of https://HOST[:PORT]/mcp. 0, or -1: the URL is of another
 * form. Only letters, digits, dots and hyphens pass, so that a host can be
 * written into a file of a proxy. `authority` gets host and port; may be NULL.
 */
int remote_host(const char *url, char host[REMOTE_HOST_MAX + 1],
    char authority[REMOTE_HOST_MAX + 7]);

enum ctl_status remote_command(const struct ctl *);

enum ctl_status remote_add(const struct ctl *);
enum ctl_status remote_remove(const struct ctl *);
enum ctl_status remote_check(const struct ctl *);

#endif
