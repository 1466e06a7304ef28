/*
 * Collects the faults of one message, so that its author learns of all of them
 * at once. Each fault has a JSON pointer (RFC 6901) and the text that corrects
 * it.
 *
 *	"faults":[{"pointer":"/params/argument","fix":"Write arguments."}, ...]
 *
 * The names come from the client. They go into data as JSON strings, and into
 * the message only if they are printable ASCII, because messages end up in logs
 * and terminals.
 */
#include <stdio.h>
#include <string.h>

#include "jsonw.h"
#include "mcp_era.h"

/* Records the first failure only: the ladder stops at its first broken step. */
int
mcp_fault_set(
    struct mcp_error *e, enum failure f, int status, const char *message)
{
	if (e->failure == FAILURE_NONE) {
		e->failure = f;
		e->status = status;
		snprintf(e->message, sizeof(e->message), "%s", message);
		e->data[0] = '\0';
	}
	return -1;
}

/* Bytes of a whole pointer. Each byte of the name may become two. */
enum { POINTER_MAX = 2 * MCP_MEMBER_MAX + 64 };

/* Appends name as a reference token to within. out: POINTER_MAX bytes. */
static void
make_pointer(const char *within, const char *name, char *out)
{
	size_t n = (size_t)snprintf(out, POINTER_MAX, "%s", within);

	if (name == NULL || n + 2 * strlen(name) + 2 > POINTER_MAX)
		return;
	out[n++] = '/';
	for (; *name != '\0'; name++)
		if (*name == '~' || *name == '/') {
			out[n++] = '~';
			out[n++] = *name == '~' ? '0' : '1';
		} else {
			out[n++] = *name;
		}
	out[n] = '\0';
}

static bool
printable(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

/* Adds a fault to data. The array so far is data up to data_used, without the
 * closing bracket. The end is written again each time, so data is always valid
 * JSON members. */
static void
add_data(struct mcp_error *e, const char *pointer, const char *fix)
{
	enum { TAIL = 32 };
	struct jsonw w;
	struct buf b;

	buf_init(&b, MCP_DATA_MAX);
	buf_puts(&b, e->faults == 1 ? "\"faults\":[" : ",");
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "pointer", pointer);
	jsonw_kv_str(&w, "fix", fix);
	jsonw_obj_end(&w);
	if (!b.failed && e->left_out == 0 &&
	    e->data_used + b.len + TAIL <= sizeof(e->data)) {
		memcpy(e->data + e->data_used, b.p, b.len);
		e->data_used += b.len;
	} else {
		e->left_out++;
	}
	buf_free(&b);
	if (e->data_used == 0)
		return; /* no memory for the first fault */
	if (e->left_out == 0)
		snprintf(e->data + e->data_used, TAIL, "]");
	else
		snprintf(e->data + e->data_used, TAIL, "],\"left_out\":%u",
		    e->left_out);
}

int
mcp_fault(struct mcp_message *m, enum failure f, const char *within,
    const char *name, const char *fix)
{
	struct mcp_error *e = &m->error;
	char pointer[POINTER_MAX];

	/* An earlier step of the ladder failed, so no faults are collected. */
	if (e->failure != FAILURE_NONE && e->faults == 0)
		return -1;
	make_pointer(within, name, pointer);
	if (e->faults++ == 0) {
		e->failure = f;
		/* Status 200 fits only a request: its JSON-RPC answer tells the
		 * failure. A notification has no such answer, so 400. */
		e->status =
		    f == FAILURE_INVALID_PARAMS && m->kind != MCP_NOTIFICATION
		    ? 200
		    : 400;
		snprintf(e->message, sizeof(e->message) - MCP_MORE_MAX,
		    "%s: %s", printable(pointer) ? pointer : within, fix);
		e->message_used = strlen(e->message);
	} else {
		snprintf(e->message + e->message_used, MCP_MORE_MAX,
		    " %u more: see data.faults.", e->faults - 1);
	}
	add_data(e, pointer, fix);
	return -1;
}
