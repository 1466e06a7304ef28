/*
 * PUT of a secret's value. It goes to the vault, with the login, and nowhere
 * else; the vault judges both (vault/secrets.c). Nothing sends one back.
 */
#include <json-c/json.h>

#include <string.h>

#include "body.h"
#include "json.h"
#include "web.h"

static void
set(struct call *c, struct ipc_frame *f)
{
	(void)f;
	reply_empty(c, 204);
}

/* The parser's copy; the body's own is wiped with its buffer. A json-c string
 * lies in the object's memory, which is freed as it is. */
static void
wipe(const char *s, size_t n)
{
	explicit_bzero((void *)(uintptr_t)s, n);
}

void
secret_put(struct call *c)
{
	static const char *const names[] = {"value", NULL};
	struct ipc_secret_set m = {.token = ipc_str(c->token)};
	const char *slash = strchr(c->id, '/'), *value;
	struct json_object *o;
	struct err e;
	size_t n;
	int rc;

	if (slash == NULL) {
		problem_send(c, FAILURE_NOT_FOUND, "no such secret", NULL);
		return;
	}
	if (body_parse(c, names, &o) < 0)
		return;
	m.server = ipc_bytes(c->id, (size_t)(slash - c->id));
	m.key = ipc_str(slash + 1);
	rc = json_get_str(o, "value", &value, &n, &e);
	if (rc != 1 || n == 0 || n > SECRET_VALUE_MAX) {
		if (rc == 1)
			wipe(value, n);
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member value must be a string of 1 to 10000 bytes", NULL);
	} else {
		m.value = ipc_bytes(value, n);
		ask_vault(c, IPC_SECRET_SET, &m, set);
		wipe(value, n);
	}
	json_object_put(o);
}
