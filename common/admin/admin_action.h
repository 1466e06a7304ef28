/*
 * The changes that administrators may make (admin_action.def) as a table.
 *
 * An action travels in this way. admind-http checks the body (strict JSON, only
 * the named members, their types), If-Match and Idempotency-Key, and sends
 * ADMIN_ACTION; mcpboxctl makes the same message out of name=value words.
 * admind looks the login up at the vault, compares the login's role with the
 * action's role, and runs one statement, mcpbox.admin_act(), which calls
 *
 *	mcpbox.act_NAME(p_actor text, p_id text, p_seen bytea, p_body json)
 *	RETURNS text
 *
 * The function returns the changed object as JSON text, and writes its own
 * audit row. NULL means {}. An empty text means that there is nothing to show,
 * and REST answers 204. The function reports errors by fail().
 */
#ifndef ADMIN_ACTION_H
#define ADMIN_ACTION_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"
#include "script_key.h"

/* Roles in rising order: each may do all that the roles before it may. uid 0,
 * which comes by mcpboxctl's socket, has ADMIN_ROOT. No login has this role, so
 * the vault has no name for it. */
enum admin_role {
	ADMIN_VIEWER,
	ADMIN_REVIEWER,
	ADMIN_ADMINISTRATOR,
	ADMIN_ROOT
};

enum admin_seen { ADMIN_SEEN_NONE, ADMIN_SEEN_OPTIONAL, ADMIN_SEEN_REQUIRED };

enum {
	ADMIN_NAME_MAX = 255, /* a path's {name} */
	/* a path's {id} or {name}, or two of these with / between them */
	ADMIN_ID_MAX = 2 * ADMIN_NAME_MAX + 1,
	ADMIN_KEY_MAX = 64 /* Idempotency-Key: a uuid or a hash in hex */
};

struct admin_action {
	const char *name;
	enum admin_role role;
	enum script_scope scope;   /* of a key that may do it */
	const char *method, *path; /* "" without a route */
	enum admin_seen seen;
	const char *members, *doc;
};

/* All actions. The last element has a NULL name. */
extern const struct admin_action admin_actions[];

/* Returns NULL if no action has this name. */
const struct admin_action *admin_action_find(struct ipc_bytes name);
/* Finds the role of this name (as the vault writes it). 0, or -1 if there is
 * none. */
int admin_action_role(struct ipc_bytes name, enum admin_role *);
/* Tells whether this is the text of an Idempotency-Key: 1 to ADMIN_KEY_MAX
 * visible ASCII characters. */
bool admin_action_key(struct ipc_bytes);

/* One member of a body. */
struct admin_member {
	const char *name; /* not NUL-terminated */
	size_t len;
	char type; /* one of s i b a o l */
	bool required;
};
/* Reads the next member of a row's `members`. *at is first `members` itself and
 * moves on with each call. False at the end of the string. */
bool admin_action_member(const char **at, struct admin_member *);

#endif
