/*
 * One API token, for those who hold a reference (access/tokens.c has them).
 */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdbool.h>
#include <sys/queue.h>
#include "admind.h"
#include "permit.h"

enum {
	/* "mbt_" and 32 random bytes in base64url: a prefix that a search for
	 * leaked secrets finds. */
	TOKEN_TEXT_LEN = 4 + 43,
	TOKEN_NAME_MAX = 64,
	TOKEN_SET_LEN = 64, /* hex digits of a permission set's name */
	/* Shares of one token, so that its users starve neither the others nor
	 * local clients: an eighth of the jobs and of their bytes, and few
	 * other requests, which are one statement each. */
	TOKEN_JOBS_MAX = JOBS_MAX / 8,
	TOKEN_BYTES_MAX = JOBS_BYTES_MAX / 8,
	TOKEN_OPS_MAX = 32,
	/* All tokens together. */
	TOKENS_JOBS_MAX = JOBS_MAX / 2,
	TOKENS_BYTES_MAX = JOBS_BYTES_MAX / 2
};
#define TOKEN_PREFIX "mbt_"

struct token {
	LIST_ENTRY(token) chain;
	struct ipc_id id;
	struct ipc_hash digest;
	char principal[PRINCIPAL_MAX + 1]; /* token:NAME */
	unsigned listeners;                /* mask of 1 << enum listener */
	uint64_t expires_us;               /* 0: never */
	struct permit permit;              /* its texts are owned */
	char set[LISTENER_TUNNEL + 1][TOKEN_SET_LEN + 1]; /* by listener */
	uint64_t used_us; /* not yet told to the database; 0: nothing to tell */
	enum listener used_by;
	bool gone; /* revoked or expired: only references remain */
	bool seen; /* by the load under way */
	unsigned refs;
	unsigned jobs, ops; /* in work */
	size_t bytes;       /* of those jobs' arguments */
};

struct token *token_ref(struct token *);
void token_unref(struct token *); /* NULL is harmless */

/* Returns whether the token may use this object. No token (NULL) is a local
 * client, who may use everything. */
bool token_permits(const struct token *, const char *exposed,
    struct ipc_bytes server, struct ipc_bytes name);
/* Adds two text parameters, for token_permits() and its like in SQL. */
void token_params(const struct token *, struct db_params *);

#endif
