/* Shows, beside a new request, how earlier requests for the same tool or name
 * ended. */
#include <stdint.h>

#include <json-c/json.h>

#include "approvals.h"
#include "tables.h"
#include "terminal.h"

static int64_t
characters(const char *utf8)
{
	int64_t n = 0;

	for (; *utf8 != '\0'; utf8++)
		n += ((unsigned char)*utf8 & 0xc0) != 0x80;
	return n;
}

void
rejected_text(struct json_object *circumstances, struct buf *b)
{
	struct json_object *list, *o, *v;
	struct buf line;
	size_t n;

	if (!json_object_object_get_ex(
		circumstances, "rejected_before", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	n = json_object_array_length(list);
	if (json_object_object_get_ex(circumstances, "rejections", &v) &&
	    json_object_get_int64(v) > (int64_t)n)
		buf_putf(b, "rejected           %lld times; the last %zu:\n",
		    (long long)json_object_get_int64(v), n);
	for (size_t i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		if (!json_object_is_type(o, json_type_object))
			continue;
		buf_init(&line, IPC_FRAME_MAX);
		buf_putf(&line, "version %s by %s, %s: %s",
		    tables_text(o, "version"), tables_text(o, "decided_by"),
		    tables_text(o, "decided_at"), tables_text(o, "reason"));
		if (json_object_object_get_ex(o, "reason_length", &v) &&
		    json_object_get_int64(v) >
			characters(tables_text(o, "reason")))
			buf_putf(&line,
			    " ... (the beginning of %lld characters)",
			    (long long)json_object_get_int64(v));
		b->failed |= line.failed;
		show_value(
		    b, "rejected before", line.p, line.len, terminal_width());
		buf_free(&line);
	}
}
