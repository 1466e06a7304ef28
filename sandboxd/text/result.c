/* See result.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "content.h"
#include "ids.h"
#include "json_scan.h"
#include "jsonw.h"
#include "result.h"

/*
 * A SIGKILL that memory does not explain came from the CPU limit if this share
 * (percent) of the limit was used. RLIMIT_CPU counts ticks, getrusage real CPU
 * time: on a busy machine they were seen to differ by a quarter and more.
 */
enum { CPU_SEEN_PERCENT = 50 };

void
result_error(struct buf *body, const char *text)
{
	struct jsonw w;

	jsonw_open(&w, body);
	jsonw_obj(&w);
	jsonw_name(&w, "content");
	jsonw_arr(&w);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "text");
	jsonw_kv_str(&w, "text", text);
	jsonw_obj_end(&w);
	jsonw_arr_end(&w);
	jsonw_kv_bool(&w, "isError", true);
	jsonw_obj_end(&w);
}

int
result_add_text(struct ipc_bytes body, struct ipc_bytes text, struct buf *out)
{
	static const char *const path[] = {"content", NULL};
	struct ipc_bytes list;
	struct jsonw w;
	size_t at;

	if (json_slice(body.p, body.n, path, &list.p, &list.n) != 1 ||
	    list.n < 2 || list.p[0] != '[')
		return -1;
	at = (size_t)(list.p - body.p) + list.n - 1;
	buf_put(out, body.p, at);
	if (list.n > 2)
		buf_putc(out, ',');
	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "text");
	jsonw_kv_strn(&w, "text", text.p, text.n);
	jsonw_obj_end(&w);
	buf_put(out, body.p + at, body.n - at);
	return out->failed ? -1 : 0;
}

/* Finds a member of the top-level object whose value starts with one of
 * `first`: 1 found, 0 absent, -1 of another type. */
static int
member(struct ipc_bytes text, const char *name, const char *first,
    struct ipc_bytes *v)
{
	const char *const path[] = {name, NULL};

	if (json_slice(text.p, text.n, path, &v->p, &v->n) != 1)
		return 0;
	return v->n > 0 && v->p[0] != 0 && strchr(first, v->p[0]) != NULL ? 1
									  : -1;
}

/* Writes a value with its secrets replaced. true if there were secrets. */
static bool
put(struct jsonw *w, const char *name, struct ipc_bytes v, struct redact *r)
{
	jsonw_kv_raw(w, name, "", 0);
	return redact_json(r, v, w->out) != 0;
}

/* Tells whether b is still JSON. Names that held secrets may have become equal,
 * and then the meaning is lost. */
static bool
still_json(const struct buf *b)
{
	return b->failed || json_scan(b->p, b->len, NULL) == 0;
}

/* Writes the members of CallToolResult after content. any: structuredContent
 * may be any JSON, since the version has an output schema. */
static int
take_tool(struct ipc_bytes text, bool is_error, bool any, struct redact *r,
    struct jsonw *w, bool *replaced, struct err *e)
{
	struct ipc_bytes structured, flag;
	int rc;

	/* MCP before 2026-07-28 allows only objects. With a schema the author
	 * has declared the type, and gatewayd checks the client's revision. */
	rc = member(text, "structuredContent", any ? "{[\"tfn-0123456789" : "{",
	    &structured);
	if (rc < 0)
		return err_set(e, FAILURE_EXCEPTION,
		    "The tool's result was refused: structuredContent is no "
		    "object.");
	if (rc == 1 && put(w, "structuredContent", structured, r))
		*replaced = true;
	if ((rc = member(text, "isError", "tf", &flag)) < 0)
		return err_set(e, FAILURE_EXCEPTION,
		    "The tool's result was refused: isError is no boolean.");
	jsonw_kv_bool(w, "isError", is_error || (rc == 1 && flag.p[0] == 't'));
	return 0;
}

/* Writes GetPromptResult after its messages. */
static int
take_prompt(struct ipc_bytes text, struct redact *r, struct jsonw *w,
    bool *replaced, struct err *e)
{
	struct ipc_bytes description;
	int rc = member(text, "description", "\"", &description);

	if (rc < 0)
		return err_set(e, FAILURE_EXCEPTION,
		    "The prompt's result was refused: description is no "
		    "string.");
	if (rc == 1 && put(w, "description", description, r))
		*replaced = true;
	return 0;
}

/* For each form of result: the name of its first member, which is a list, and
 * the function that takes this list. */
static const struct form {
	const char *list;
	int (*take)(struct ipc_bytes, struct redact *, struct jsonw *,
	    bool *replaced, struct err *);
} forms[] = {
    [CALL_TOOL] = {"content", content_take},
    [CALL_PROMPT] = {"messages", content_messages},
    [CALL_RESOURCE] = {"contents", content_resources},
    [CALL_STRUCTURED] = {"content", content_take},
};

int
result_take(struct ipc_bytes text, unsigned what, bool is_error,
    struct redact *r, struct buf *body, struct err *e)
{
	/* An error is one text and isError, for every form. */
	const struct form *form = &forms[is_error ? CALL_TOOL : what];
	bool any = what == CALL_STRUCTURED;
	struct ipc_bytes list;
	bool replaced = false;
	struct jsonw w;
	int rc = 0;

	if (member(text, form->list, "[", &list) != 1)
		return err_set(e, FAILURE_KILLED,
		    "The tool was ended: its result has no %s.", form->list);
	jsonw_open(&w, body);
	jsonw_obj(&w);
	jsonw_name(&w, form->list);
	if (form->take(list, r, &w, &replaced, e) != 0)
		return -1;
	if (form == &forms[CALL_PROMPT])
		rc = take_prompt(text, r, &w, &replaced, e);
	else if (form != &forms[CALL_RESOURCE])
		rc = take_tool(text, is_error, any, r, &w, &replaced, e);
	if (rc != 0)
		return -1;
	jsonw_obj_end(&w);
	if (replaced && !still_json(body))
		return err_set(e, FAILURE_EXCEPTION,
		    "The tool's result was refused: names in it hold secrets "
		    "of "
		    "the call; with those replaced two of them are equal.");
	return 0;
}

int
result_progress(
    struct ipc_bytes text, struct redact *r, struct buf *out, struct err *e)
{
	struct ipc_bytes progress, total, message;
	int has_total, has_message;
	struct jsonw w;
	bool tells;

	if (member(text, "progress", "-0123456789", &progress) != 1)
		return err_set(e, FAILURE_KILLED, "progress without a number");
	if ((has_total = member(text, "total", "-0123456789n", &total)) < 0)
		return err_set(e, FAILURE_KILLED, "total is no number");
	if ((has_message = member(text, "message", "\"n", &message)) < 0)
		return err_set(e, FAILURE_KILLED, "message is no string");
	jsonw_open(&w, out);
	jsonw_obj(&w);
	tells = put(&w, "progress", progress, r);
	if (has_total == 1 && total.p[0] != 'n')
		tells |= put(&w, "total", total, r);
	if (has_message == 1 && message.p[0] != 'n')
		(void)put(&w, "message", message, r);
	jsonw_obj_end(&w);
	/* A number that is a secret can't be shown, so nothing is passed on. */
	return tells ? 1 : 0;
}

int
result_log(unsigned level, struct ipc_bytes logger, struct ipc_bytes json,
    struct redact *r, struct buf *out)
{
	static const char *const names[] = {"debug", "info", "notice",
	    "warning", "error", "critical", "alert", "emergency"};
	struct jsonw w;
	bool replaced;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "level", names[level & 7]);
	jsonw_kv_strn(&w, "logger", logger.p, logger.n);
	replaced = put(&w, "data", json, r);
	jsonw_obj_end(&w);
	return replaced && !still_json(out) ? 1 : 0;
}

/* Returns the fix for a failure. The text of the body is compared with its JSON
 * escapes in place: the only character of fix.def's forms that JSON escapes is
 * the line feed, which fix.def escapes, too. A tool that writes like our
 * harness gains only another sentence of fix.def. */
static const char *
fix_of(enum failure f, const char *message, struct ipc_bytes body)
{
	static const char *const content[] = {"content", NULL};
	static const char *const text[] = {"text", NULL};
	struct ipc_bytes v;

	if (message != NULL)
		return failure_fix(f, message, strlen(message));
	if (json_slice(body.p, body.n, content, &v.p, &v.n) != 1 || v.n < 2 ||
	    json_slice(v.p + 1, v.n - 1, text, &v.p, &v.n) != 1 || v.n < 2)
		return failure_info(f)->fix;
	return failure_fix(f, (const char *)v.p + 1, v.n - 2);
}

/* Writes the beginning of text, without tearing a UTF-8 sequence, and says
 * where the whole text is. */
static void
shorten(struct ipc_bytes text, const char *id, struct buf *out)
{
	size_t n = RESULT_PRINTED_MAX;

	while (n > 0 && (text.p[n] & 0xc0) == 0x80)
		n--;
	buf_put(out, text.p, n);
	buf_putf(out,
	    "\n[%zu of %zu bytes. All are in the record %s: "
	    "mcpbox_get_tool_logs with this execution_id shows it, and to an "
	    "administrator `mcpboxctl executions` with it]\n",
	    n, text.n, id);
}

void
result_meta(struct buf *meta, const struct ipc_id *execution,
    uint64_t duration_us, struct ipc_bytes out,
    const struct result_dropped *dropped, enum failure f, const char *message,
    struct ipc_bytes body)
{
	char id[UUID_TEXT_LEN + 1];
	struct buf cut;
	struct jsonw w;

	uuid_text(execution, id);
	buf_init(&cut, RESULT_PRINTED_MAX + 512);
	if (f == FAILURE_NONE && out.n > RESULT_PRINTED_MAX) {
		shorten(out, id, &cut);
		meta->failed |= cut.failed;
		out = ipc_bytes(cut.p, cut.len);
	}
	jsonw_open(&w, meta);
	jsonw_obj(&w);
	jsonw_name(&w, "mcpbox/execution");
	jsonw_obj(&w);
	jsonw_kv_str(&w, "execution_id", id);
	jsonw_name(&w, "duration_ms");
	jsonw_u64(&w, (duration_us + 500) / 1000);
	jsonw_kv_strn(&w, "stdout", out.p, out.n);
	if (dropped->log_lines > 0) {
		jsonw_name(&w, "log_lines_dropped");
		jsonw_u64(&w, dropped->log_lines);
	}
	if (dropped->progress_reports > 0) {
		jsonw_name(&w, "progress_reports_dropped");
		jsonw_u64(&w, dropped->progress_reports);
	}
	jsonw_obj_end(&w);
	if (f != FAILURE_NONE) {
		jsonw_name(&w, "mcpbox/failure");
		jsonw_obj(&w);
		jsonw_kv_str(&w, "failure_mode", failure_info(f)->name);
		if (message != NULL)
			jsonw_kv_str(&w, "message", message);
		jsonw_kv_str(&w, "fix", fix_of(f, message, body));
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
	buf_free(&cut);
}

void
result_limit(const char *what, enum limit l, uint64_t value, struct err *e)
{
	(void)err_set(e,
	    l == LIMIT_TIMEOUT_MS ? FAILURE_TIMEOUT : FAILURE_LIMIT,
	    "%s: the limit %s is %llu %s.", what, limit_info(l)->name,
	    (unsigned long long)value, limit_info(l)->unit);
}

void
result_crash(uint32_t status, uint64_t cpu_us, uint64_t peak_kib,
    uint32_t oom_kills, const uint64_t limit[LIMIT_COUNT], struct err *e)
{
	unsigned code = status >> 16, value = status & 0xffff;
	uint64_t memory = limit[LIMIT_MEMORY_BYTES];
	/* true: the process was near its memory limit when it died */
	bool full = peak_kib * 1024 > memory / 8 * 7;
	char what[128];

	/* All processes together used too much, so no single peak matters. */
	if (oom_kills > 0) {
		result_limit("The tool was killed: its processes and its /tmp "
			     "used too much memory together",
		    LIMIT_MEMORY_BYTES, memory, e);
		return;
	}
	if (code != CLD_EXITED && value == SIGKILL && full) {
		(void)snprintf(what, sizeof(what),
		    "The tool was killed for the memory it used (%llu MiB)",
		    (unsigned long long)peak_kib / 1024);
		result_limit(what, LIMIT_MEMORY_BYTES, memory, e);
		return;
	}
	/* At the hard limit of CPU time the kernel sends SIGKILL. */
	if (code != CLD_EXITED &&
	    (value == SIGXCPU ||
		(value == SIGKILL &&
		    cpu_us / 10 >= limit[LIMIT_CPU_MS] * CPU_SEEN_PERCENT))) {
		result_limit("The tool used too much CPU time", LIMIT_CPU_MS,
		    limit[LIMIT_CPU_MS], e);
		return;
	}
	if (code == CLD_EXITED) {
		(void)err_set(e, FAILURE_EXCEPTION,
		    "The tool ended its process with exit status %u before it "
		    "returned a result.",
		    value);
		return;
	}
	switch (value) {
	case SIGKILL:
		/* The process met no limit of its own. A person killed it, or
		 * the kernel, because the machine had too little memory. */
		(void)err_set(e, FAILURE_KILLED,
		    "The tool's process was killed from outside, below its "
		    "limits: it had used %llu ms of CPU time (the limit "
		    "cpu_ms is %llu ms), and its peak was %llu MiB of memory "
		    "(the limit memory_bytes is %llu bytes).",
		    (unsigned long long)cpu_us / 1000,
		    (unsigned long long)limit[LIMIT_CPU_MS],
		    (unsigned long long)peak_kib / 1024,
		    (unsigned long long)memory);
		return;
	case SIGXFSZ:
		result_limit("The tool wrote too long a file", LIMIT_FILE_BYTES,
		    limit[LIMIT_FILE_BYTES], e);
		return;
	case SIGSYS:
		(void)err_set(e, FAILURE_EXCEPTION,
		    "The tool made a system call that the sandbox forbids.");
		return;
	}
	(void)snprintf(what, sizeof(what),
	    ", perhaps for want of memory: the limit memory_bytes is %llu "
	    "bytes",
	    (unsigned long long)memory);
	(void)err_set(e, FAILURE_EXCEPTION,
	    "The tool's process died of signal %u (%s)%s.", value,
	    strsignal((int)value), full ? what : "");
}
