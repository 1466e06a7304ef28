/* mcpboxctl executions, activity: calls that ran, refusals, and the live
 * tail. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "calls.h"
#include "ids.h"
#include "ipc_io.h"
#include "json.h"
#include "objects.h"
#include "prefix.h"
#include "tables.h"
#include "terminal.h"

/* Reads --FILTER options and words name=value, for a list of any kind. */
static int
take_filters(const struct ctl *c, int skip, struct buf *out)
{
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		if (c->filter[i] != NULL)
			admin_filter_put(
			    out, (enum admin_filter)i, c->filter[i]);
	return calls_filters(c->words + skip, c->nwords - skip, out);
}

static enum ctl_status
list(const struct ctl *c, const char *what, int skip)
{
	enum ctl_status status = CTL_USAGE;
	struct buf filters, text;

	buf_init(&filters, 16 * 1024);
	if (take_filters(c, skip, &filters) == 0) {
		status = calls_list(c, what, NULL,
		    ipc_bytes(filters.p, filters.len), c->cursor, &text);
		if (status == CTL_DONE)
			status = tables_show(c, what, &text);
		buf_free(&text);
	}
	buf_free(&filters);
	return status;
}

static enum ctl_status
export_all(const struct ctl *c)
{
	enum ctl_status status = CTL_USAGE;
	struct buf filters;

	buf_init(&filters, 16 * 1024);
	if (take_filters(c, 2, &filters) == 0)
		status = audit_export(c, "executions_export", "executions",
		    ipc_bytes(filters.p, filters.len));
	buf_free(&filters);
	return status;
}

enum ctl_status
executions_command(const struct ctl *c)
{
	const char *word = c->nwords > 1 ? c->words[1] : "";
	char id_text[UUID_TEXT_LEN + 1];
	enum ctl_status status;
	struct ipc_id id;
	struct buf text;

	if (strcmp(word, "export") == 0)
		return export_all(c);
	if (strcmp(word, "stats") == 0)
		return list(c, "execution_stats", 2);
	if (*word == '\0' || strchr(word, '=') != NULL)
		return list(c, "executions", 1);
	if (c->nwords != 2)
		return CTL_USAGE;
	if ((status = prefix_whole(c, "execution", word, &id)) != CTL_DONE)
		return status;
	uuid_text(&id, id_text);
	if ((status = calls_query(c, "execution", id_text, &text)) == CTL_DONE)
		status = tables_show(c, "execution", &text);
	buf_free(&text);
	return status;
}

/* ---- activity tail ---- */

/* Prints a line for people: time, event, subject, count. */
static void
show_line(struct json_object *o)
{
	static const char *const members[] = {"at", "type", "kind", "tool",
	    "subject", "principal", "listener", "outcome", "failure_mode",
	    "duration_ms", "count", "node"};
	struct json_object *v;
	struct buf line;
	const char *s;

	buf_init(&line, IPC_BLOB_MAX);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (!json_object_object_get_ex(o, members[i], &v) ||
		    (s = json_object_get_string(v)) == NULL || *s == '\0')
			continue;
		if (i >= 9)
			buf_putf(&line, "%s=", members[i]);
		show_text(&line, s, strlen(s), SHOW_LINE);
		buf_putc(&line, ' ');
	}
	if (line.len > 0)
		line.p[line.len - 1] = '\n';
	terminal_out(&line);
	buf_free(&line);
}

static enum ctl_status
show_lines(const struct ctl *c, const struct ipc_activity_lines *m)
{
	const uint8_t *p = m->lines.p, *stop = p + m->lines.n, *e;
	struct json_object *o;
	struct buf line;
	struct err err;

	if (m->dropped > 0)
		fprintf(stderr, "mcpboxctl: %llu lines were too many\n",
		    (unsigned long long)m->dropped);
	for (; p < stop; p = e + 1) {
		e = memchr(p, '\n', (size_t)(stop - p));
		if (e == NULL ||
		    json_parse(p, (size_t)(e - p), &o, &err) == -1) {
			fputs("mcpboxctl: admind's line is no JSON\n", stderr);
			return CTL_REFUSED;
		}
		if (c->json) {
			buf_init(&line, IPC_BLOB_MAX);
			if (show_json(&line, p, (size_t)(e - p)) == -1)
				line.failed = true;
			buf_putc(&line, '\n');
			terminal_out(&line);
			buf_free(&line);
		} else {
			show_line(o);
		}
		json_object_put(o);
	}
	fflush(stdout);
	return CTL_DONE;
}

/* Prints activity until admind ends its answer after a minute (CTL_DONE: ask
 * again), or until a signal ends this process. */
static enum ctl_status
follow(const struct ctl *c, int fd, uint64_t stream)
{
	struct ipc_activity_follow ask = {.stream = stream,
	    .calls = c->kind == NULL || strcmp(c->kind, "activity") != 0};
	struct ipc_activity_lines m;
	enum ctl_status status;
	struct ipc_refused r;
	struct ipc_frame f;
	struct err err;

	if (ipc_write(fd, IPC_ACTIVITY_FOLLOW, stream, &ask, &err) == -1)
		goto away;
	for (;;) {
		if (ipc_read(fd, &f, &err) != 1)
			goto away;
		status = CTL_DONE;
		if (f.type == IPC_ACTIVITY_LINES &&
		    ipc_decode(&f, &m, &err) == 0) {
			status = show_lines(c, &m);
		} else if (f.type == IPC_REFUSED &&
		    ipc_decode(&f, &r, &err) == 0) {
			status = calls_refused(&r);
		} else if (f.type == IPC_OK) {
			ipc_frame_free(&f);
			return CTL_DONE;
		}
		ipc_frame_free(&f);
		if (status != CTL_DONE || ferror(stdout))
			return status;
	}
away:
	fputs("mcpboxctl: admind: the connection ended\n", stderr);
	return CTL_UNREACHABLE;
}

enum ctl_status
activity_command(const struct ctl *c)
{
	enum ctl_status status;
	uint64_t stream = 0;
	int fd;

	if (c->nwords < 2 || strcmp(c->words[1], "tail") != 0)
		return list(c, "activity", 1);
	if (c->nwords != 2)
		return CTL_USAGE;
	if ((fd = calls_open(c, "admind", IPC_ROLE_ADMIND)) == -1)
		return CTL_UNREACHABLE;
	do {
		status = follow(c, fd, ++stream);
	} while (status == CTL_DONE && !ferror(stdout));
	close(fd);
	return status;
}
