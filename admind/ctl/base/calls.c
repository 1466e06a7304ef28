#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "admin_filter.h"
#include "calls.h"
#include "ctl.h"
#include "ipc_io.h"
#include "json.h"
#include "tables.h"

/* Prints a text on stderr, in one line. The text may hold words of strangers,
 * so it is escaped. */
static void
complain(const char *what, const void *text, size_t n)
{
	struct buf b;

	buf_init(&b, 64 * 1024);
	show_text(&b, text, n, SHOW_LINE);
	fprintf(stderr, "mcpboxctl: %s: %.*s\n", what, (int)b.len,
	    b.p != NULL ? (const char *)b.p : "");
	buf_free(&b);
}

/* Prints one error of a list: its place (RFC 6901) and its sentence. */
static void
complain_at(struct json_object *o)
{
	const char *at, *why;
	struct buf b;

	if (!json_object_is_type(o, json_type_object))
		return;
	at = tables_text(o, "pointer");
	why = tables_text(o, "message");
	buf_init(&b, 64 * 1024);
	show_text(&b, at, strlen(at), SHOW_LINE);
	buf_puts(&b, *at != '\0' ? ": " : "");
	show_text(&b, why, strlen(why), SHOW_LINE);
	fprintf(stderr, "mcpboxctl:   %.*s\n", (int)b.len,
	    b.p != NULL ? (const char *)b.p : "");
	buf_free(&b);
}

/* Prints a refusal. Its first line is a sentence. If a list of errors follows,
 * as admind-check makes it, each error has a row: the place and a sentence. */
static void
complain_all(struct ipc_bytes text)
{
	const uint8_t *nl = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;
	size_t n = nl != NULL ? (size_t)(nl - text.p) : text.n;
	struct json_object *list = NULL;
	struct err err;

	if (nl == NULL ||
	    json_parse(nl + 1, text.n - n - 1, &list, &err) == -1 ||
	    !json_object_is_type(list, json_type_array)) {
		complain("refused", text.p, text.n);
	} else {
		complain("refused", text.p, n);
		for (size_t i = 0; i < json_object_array_length(list); i++)
			complain_at(json_object_array_get_idx(list, i));
	}
	json_object_put(list);
}

enum ctl_status
calls_refused(const struct ipc_refused *r)
{
	complain_all(r->message);
	fprintf(stderr, "mcpboxctl: %s\n",
	    failure_fix((enum failure)r->failure, (const char *)r->message.p,
		r->message.n));
	return CTL_REFUSED;
}

int
calls_open(const struct ctl *c, const char *process, enum ipc_role role)
{
	char path[128];
	struct err err;
	int n, fd;

	n = snprintf(path, sizeof(path), "%s/%s/ctl.sock", c->run_dir, process);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		fprintf(stderr, "mcpboxctl: run directory is too long\n");
		return -1;
	}
	fd = ipc_client_open(path, IPC_ROLE_CTL, role, "mcpboxctl", &err);
	if (fd == -1)
		complain(process, err.text, strlen(err.text));
	return fd;
}

enum ctl_status
calls_on(int fd, const char *process, enum ipc_role role, enum ipc_type type,
    const void *msg, enum ipc_type want, struct ipc_frame *answer)
{
	enum ctl_status status = CTL_UNREACHABLE;
	struct ipc_refused r;
	struct ipc_frame f;
	struct err err;

	if (ipc_client_call(fd, type, msg,
		type == IPC_SOURCE_RUN || type == IPC_NOTIFY_TEST
		    ? CTL_SLOW_MS
		    : CTL_TIMEOUT_MS,
		&f, &err) == -1) {
		complain(process, err.text, strlen(err.text));
		return CTL_UNREACHABLE;
	}
	if (ipc_permit(f.type, role, IPC_ROLE_CTL, IPC_STATE_OPEN, &err) ==
	    -1) {
		complain(process, err.text, strlen(err.text));
	} else if (f.type == want ||
	    (want == IPC_OK && f.type == IPC_HALF_APPROVED)) {
		*answer = f; /* APPROVE has this second good answer */
		return CTL_DONE;
	} else if (f.type == IPC_REFUSED && ipc_decode(&f, &r, &err) == 0) {
		status = calls_refused(&r);
	} else {
		complain(process, "unexpected answer", 17);
	}
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
calls_ask(const struct ctl *c, const char *process, enum ipc_role role,
    enum ipc_type type, const void *msg, enum ipc_type want,
    struct ipc_frame *answer)
{
	enum ctl_status status;
	int fd;

	if ((fd = calls_open(c, process, role)) == -1)
		return CTL_UNREACHABLE;
	status = calls_on(fd, process, role, type, msg, want, answer);
	close(fd);
	return status;
}

enum ctl_status
calls_query(
    const struct ctl *c, const char *what, const char *id, struct buf *text)
{
	enum ctl_status status;
	struct buf filters;

	buf_init(&filters, IPC_FRAME_MAX / 2);
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		if (c->filter[i] != NULL)
			admin_filter_put(
			    &filters, (enum admin_filter)i, c->filter[i]);
	status = calls_list(
	    c, what, id, ipc_bytes(filters.p, filters.len), c->cursor, text);
	buf_free(&filters);
	return status;
}

int
calls_filters(char **words, int n, struct buf *out)
{
	for (int i = 0; i < n; i++) {
		const char *eq = strchr(words[i], '=');
		int f = eq != NULL
		    ? admin_filter_find(words[i], (size_t)(eq - words[i]))
		    : -1;

		if (f == -1 ||
		    !admin_filter_ok(
			(enum admin_filter)f, eq + 1, strlen(eq + 1))) {
			complain("not a filter", words[i], strlen(words[i]));
			return -1;
		}
		admin_filter_put(out, (enum admin_filter)f, eq + 1);
	}
	return 0;
}

enum ctl_status
calls_json(
    const struct ctl *c, enum ipc_type type, const void *msg, struct buf *text)
{
	enum ctl_status status;
	struct ipc_admin_json a;
	struct ipc_frame f;
	struct err err;

	buf_init(text, IPC_BLOB_MAX);
	status = calls_ask(
	    c, "admind", IPC_ROLE_ADMIND, type, msg, IPC_ADMIN_JSON, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &a, &err) == -1) {
		complain("admind", err.text, strlen(err.text));
		status = CTL_REFUSED;
	} else {
		buf_put(text, a.json.p, a.json.n);
	}
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
calls_list(const struct ctl *c, const char *what, const char *id,
    struct ipc_bytes filters, const char *cursor, struct buf *text)
{
	struct ipc_admin_query q;

	memset(&q, 0, sizeof(q));
	q.what = ipc_str(what);
	q.id = ipc_str(id);
	q.filter_kind = ipc_str(c->kind);
	q.filter_state = ipc_str(c->state);
	q.filters = filters;
	q.cursor = ipc_str(cursor);
	q.limit = c->limit;
	return calls_json(c, IPC_ADMIN_QUERY, &q, text);
}
