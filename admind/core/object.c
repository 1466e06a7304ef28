/*
 * Tools, prompts, resources and resource templates. All have the same kind of
 * row, and one word says which of them a row is.
 */
#include "jsonw.h"
#include "object.h"

bool
object_fits(struct ipc_bytes object, enum call_method method)
{
	switch (method) {
	case CALL_TOOL:
		return ipc_streq(object, "tool");
	case CALL_PROMPT:
		return ipc_streq(object, "prompt");
	case CALL_RESOURCE:
		return ipc_streq(object, "resource") ||
		    ipc_streq(object, "template");
	}
	return false;
}

enum failure
object_unknown(enum call_method method, const char **sentence)
{
	switch (method) {
	case CALL_PROMPT:
		*sentence = "no prompt has this name";
		return FAILURE_UNKNOWN_PROMPT;
	case CALL_RESOURCE:
		*sentence = "there is no such resource";
		return FAILURE_UNKNOWN_RESOURCE;
	default:
		*sentence = "no tool has this name";
		return FAILURE_UNKNOWN_TOOL;
	}
}

static void
member(struct jsonw *w, const char *name, bool present)
{
	if (!present)
		return;
	jsonw_name(w, name);
	jsonw_obj(w);
	jsonw_obj_end(w);
}

void
object_required(uint32_t mask, struct buf *out)
{
	struct jsonw w;

	buf_puts(out, "\"requiredCapabilities\":");
	jsonw_open(&w, out);
	jsonw_obj(&w);
	if ((mask & (CLIENT_ELICITATION | CLIENT_ELICITATION_URL)) != 0) {
		jsonw_name(&w, "elicitation");
		jsonw_obj(&w);
		/* {} without members means form, too, so "form" is written only
		 * together with "url". */
		member(&w, "form",
		    mask & CLIENT_ELICITATION && mask & CLIENT_ELICITATION_URL);
		member(&w, "url", mask & CLIENT_ELICITATION_URL);
		jsonw_obj_end(&w);
	}
	if ((mask & (CLIENT_SAMPLING | CLIENT_SAMPLING_TOOLS)) != 0) {
		jsonw_name(&w, "sampling");
		jsonw_obj(&w);
		member(&w, "tools", mask & CLIENT_SAMPLING_TOOLS);
		jsonw_obj_end(&w);
	}
	member(&w, "roots", mask & CLIENT_ROOTS);
	if ((mask & CLIENT_TASKS) != 0) {
		jsonw_name(&w, "extensions");
		jsonw_obj(&w);
		member(&w, "io.modelcontextprotocol/tasks", true);
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
	buf_putc(out, '\0');
}
