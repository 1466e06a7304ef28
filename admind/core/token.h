/*
 * The rights of a client that shows a credential, with counted references: an
 * API token, or one set of rights of a person with signed tokens.
 * access/tokens.c has the list of all API tokens, access/people.c has the
 * people.
 */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdbool.h>
#include <sys/queue.h>
#include "access_fields.h"
#include "admind.h"
#include "permit.h"

enum {
	/* "mbt_" and 32 random bytes in base64url. A search for leaked secrets
	 * finds the prefix. */
	TOKEN_TEXT_LEN = 4 + 43,
	TOKEN_NAME_MAX = 64,
	TOKEN_SET_LEN = 64, /* hex digits of a permission set's name */
	/* Shares of one principal, so that its users starve neither other users
	 * nor local clients: an eighth of the jobs and of their bytes, and a
	 * few of the other requests, which are one statement each. */
	TOKEN_JOBS_MAX = JOBS_MAX / 8,
	TOKEN_BYTES_MAX = JOBS_BYTES_MAX / 8,
	TOKEN_OPS_MAX = 32,
	/* Shares of all tokens together. */
	TOKENS_JOBS_MAX = JOBS_MAX / 2,
	TOKENS_BYTES_MAX = JOBS_BYTES_MAX / 2
};
#define TOKEN_PREFIX "mbt_"

struct endpoint;        /* endpoint.h */
struct endpoint_rename; /* likewise */

/* Requests of one principal in work. A person may come with several sets of
 * rights, and all count here. */
struct share {
	unsigned refs;
	unsigned jobs, ops;
	size_t bytes; /* of the arguments of its jobs */
};

/* The permission set of the access document that a token's rights are of. */
struct token_of {
	/* The set's name, also if the document lacks it; "": the token has
	 * rights of its own. */
	char name[ACCESS_NAME_MAX + 1];
	/* The set's scopes, if a person may get another token with them; else
	 * 0. */
	unsigned scopes;
	int64_t per_minute; /* calls of one principal; 0: the usual limit */
};

struct token {
	LIST_ENTRY(token) chain;           /* of an API token */
	struct ipc_id id;                  /* of an API token */
	struct ipc_hash digest;            /* of an API token */
	char principal[PRINCIPAL_MAX + 1]; /* token:NAME or oidc:ISSUER:SUB */
	unsigned listeners;                /* mask of 1 << enum listener */
	uint64_t expires_us;               /* 0: never */
	struct permit permit;              /* owns its texts */
	struct token_of of;
	/* Names of the permission set, one for each listener. */
	char set[LISTENER_TUNNEL + 1][TOKEN_SET_LEN + 1];
	uint64_t used_us; /* time of the last use, if not yet in the database;
			   * else 0 */
	enum listener used_by;
	bool gone; /* ended: only references remain */
	bool seen; /* the read of the table that is under way found the token */
	unsigned refs;
	unsigned narrowed; /* references of narrow.c, which keep no one */
	struct share *share;
	/* The endpoint that the rights are narrowed to (narrow.h), or NULL. */
	struct endpoint *endpoint;
};

/* Makes a token with no rights yet, one reference, and this share (NULL: one of
 * its own). Returns NULL without memory. */
struct token *token_new(struct share *);
struct token *token_ref(struct token *);
void token_unref(struct token *); /* NULL is harmless */
/* Makes a share with one reference. Returns NULL without memory. */
struct share *token_share_new(void);
void token_share_unref(struct share *); /* NULL is harmless */

/* Returns the name by which the token's client knows a tool, or nothing: at its
 * endpoint another tool has this name. *rename: as endpoint_shown(). */
struct ipc_bytes token_shown(const struct token *, struct ipc_bytes tool,
    const struct endpoint_rename **rename);
/* Returns whether the token may use this object. NULL means a local client,
 * which may use everything. */
bool token_permits(const struct token *, const char *exposed,
    struct ipc_bytes server, struct ipc_bytes name);
/* Adds two text parameters (allow and deny), for statements that decide in SQL
 * as token_permits() does. */
void token_params(const struct token *, struct db_params *);

#endif
