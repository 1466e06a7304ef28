/* See result.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "result.h"

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

/* A member of the top-level object whose value starts with `first`: 1 found,
 * 0 absent, -1 of another type. */
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

int
result_take(
    struct ipc_bytes text, bool is_error, struct buf *body, struct err *e)
{
	struct ipc_bytes content, structured, flag;
	struct jsonw w;
	int rc;

	if (member(text, "content", "[", &content) != 1)
		return err_set(e, FAILURE_INTERNAL, "no content array");
	if ((rc = member(text, "structuredContent", "{", &structured)) < 0)
		return err_set(
		    e, FAILURE_INTERNAL, "structuredContent is no object");
	jsonw_open(&w, body);
	jsonw_obj(&w);
	jsonw_kv_raw(&w, "content", content.p, content.n);
	if (rc == 1)
		jsonw_kv_raw(
		    &w, "structuredContent", structured.p, structured.n);
	if ((rc = member(text, "isError", "tf", &flag)) < 0)
		return err_set(e, FAILURE_INTERNAL, "isError is no boolean");
	jsonw_kv_bool(&w, "isError", is_error || (rc == 1 && flag.p[0] == 't'));
	jsonw_obj_end(&w);
	return 0;
}

int
result_progress(struct ipc_bytes text, struct buf *out, struct err *e)
{
	struct ipc_bytes v;
	struct jsonw w;
	int rc;

	if (member(text, "progress", "-0123456789", &v) != 1)
		return err_set(
		    e, FAILURE_INTERNAL, "progress without a number");
	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_raw(&w, "progress", v.p, v.n);
	if ((rc = member(text, "total", "-0123456789n", &v)) < 0)
		return err_set(e, FAILURE_INTERNAL, "total is no number");
	if (rc == 1 && v.p[0] != 'n')
		jsonw_kv_raw(&w, "total", v.p, v.n);
	if ((rc = member(text, "message", "\"n", &v)) < 0)
		return err_set(e, FAILURE_INTERNAL, "message is no string");
	if (rc == 1 && v.p[0] != 'n')
		jsonw_kv_raw(&w, "message", v.p, v.n);
	jsonw_obj_end(&w);
	return 0;
}

void
result_log(unsigned level, struct ipc_bytes logger, struct ipc_bytes json,
    struct buf *out)
{
	static const char *const names[] = {"debug", "info", "notice",
	    "warning", "error", "critical", "alert", "emergency"};
	struct jsonw w;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "level", names[level & 7]);
	jsonw_kv_strn(&w, "logger", logger.p, logger.n);
	jsonw_kv_raw(&w, "data", json.p, json.n);
	jsonw_obj_end(&w);
}

void
result_meta(struct buf *meta, const struct ipc_id *execution,
    uint64_t duration_us, struct ipc_bytes out, enum failure f,
    const char *message)
{
	char id[UUID_TEXT_LEN + 1];
	struct jsonw w;

	uuid_text(execution, id);
	jsonw_open(&w, meta);
	jsonw_obj(&w);
	jsonw_name(&w, "mcpbox/execution");
	jsonw_obj(&w);
	jsonw_kv_str(&w, "execution_id", id);
	jsonw_name(&w, "duration_ms");
	jsonw_u64(&w, (duration_us + 500) / 1000);
	jsonw_kv_strn(&w, "stdout", out.p, out.n);
	jsonw_obj_end(&w);
	if (f != FAILURE_NONE) {
		jsonw_name(&w, "mcpbox/failure");
		jsonw_obj(&w);
		jsonw_kv_str(&w, "failure_mode", failure_info(f)->name);
		if (message != NULL)
			jsonw_kv_str(&w, "message", message);
		jsonw_kv_str(&w, "fix", failure_info(f)->fix);
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
}

void
result_crash(
    uint32_t status, uint64_t peak_kib, uint64_t memory_bytes, struct err *e)
{
	unsigned code = status >> 16, value = status & 0xffff;
	/* What the process held when it died, against what it may hold. */
	bool full = memory_bytes > 0 && peak_kib * 1024 > memory_bytes / 8 * 7;

	if (code == CLD_EXITED) {
		(void)err_set(e, FAILURE_EXCEPTION,
		    "The tool ended its process with exit status %u before it "
		    "returned a result.",
		    value);
		return;
	}
	switch (value) {
	case SIGKILL:
		(void)err_set(e, FAILURE_LIMIT,
		    "The tool's process was killed by the kernel%s; its peak "
		    "was %llu MiB of %llu MiB.",
		    full ? ", most likely for using too much memory" : "",
		    (unsigned long long)peak_kib / 1024,
		    (unsigned long long)memory_bytes >> 20);
		return;
	case SIGXCPU:
		(void)err_set(e, FAILURE_LIMIT,
		    "The tool used more CPU time than a call may.");
		return;
	case SIGXFSZ:
		(void)err_set(e, FAILURE_LIMIT,
		    "The tool wrote a file larger than a call may.");
		return;
	case SIGSYS:
		(void)err_set(e, FAILURE_EXCEPTION,
		    "The tool made a system call that the sandbox forbids.");
		return;
	}
	(void)err_set(e, FAILURE_EXCEPTION,
	    "The tool's process died of signal %u (%s)%s.", value,
	    strsignal((int)value), full ? ", perhaps for want of memory" : "");
}
