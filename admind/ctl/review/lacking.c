/* Shows the secrets that a version needs and its server lacks, beside its
 * request. */
#include <string.h>

#include <json-c/json.h>

#include "approvals.h"
#include "tables.h"
#include "terminal.h"

void
lacking_text(struct json_object *circumstances, struct buf *b)
{
	struct json_object *list, *o;
	struct buf line;

	if (!json_object_object_get_ex(
		circumstances, "secrets_missing", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		o = json_object_array_get_idx(list, i);
		if (!json_object_is_type(o, json_type_object))
			continue;
		buf_init(&line, IPC_FRAME_MAX);
		buf_putf(&line, "%s %s", tables_text(o, "name"),
		    strcmp(tables_text(o, "state"), "empty") == 0
			? "has no value yet: calls fail until it is set"
			: "does not exist: calls fail until somebody makes it");
		b->failed |= line.failed;
		show_value(
		    b, "secret missing", line.p, line.len, terminal_width());
		buf_free(&line);
	}
}
