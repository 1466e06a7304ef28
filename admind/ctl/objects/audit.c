#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "calls.h"
#include "json.h"
#include "objects.h"
#include "tables.h"

/* Prints the items of one page. *cursor gets the next page's cursor, empty at
 * the end. */
static enum ctl_status
print_page(const struct ctl *c, const char *layout, bool first,
    const struct buf *text, struct buf *cursor)
{
	struct json_object *o = NULL, *items, *next;
	enum ctl_status status = CTL_REFUSED;
	struct err err;

	cursor->len = 0;
	if (json_parse(text->p, text->len, &o, &err) == -1 ||
	    !json_object_object_get_ex(o, "items", &items) ||
	    !json_object_is_type(items, json_type_array)) {
		fputs("mcpboxctl: the answer is not a list\n", stderr);
		goto out;
	}
	status = tables_items(c, layout, items, first);
	if (json_object_object_get_ex(o, "next_cursor", &next) &&
	    json_object_is_type(next, json_type_string))
		buf_puts(cursor, json_object_get_string(next));
out:
	json_object_put(o);
	return status;
}

enum ctl_status
audit_export(const struct ctl *c, const char *what, const char *layout,
    struct ipc_bytes filters)
{
	struct ctl page = *c;
	enum ctl_status status;
	struct buf text, cursor;
	char at[256] = "";

	page.limit = CTL_LIMIT_MAX;
	buf_init(&cursor, sizeof(at) - 1);
	do {
		status = calls_list(&page, what, NULL, filters,
		    at[0] != '\0' ? at : NULL, &text);
		if (status == CTL_DONE)
			status = print_page(
			    c, layout, at[0] == '\0', &text, &cursor);
		buf_free(&text);
		if (cursor.failed)
			status = CTL_REFUSED;
		memcpy(at, cursor.p != NULL ? cursor.p : (uint8_t *)"",
		    cursor.len);
		at[cursor.len] = '\0';
	} while (status == CTL_DONE && at[0] != '\0' && !ferror(stdout));
	buf_free(&cursor);
	return status;
}

enum ctl_status
audit_command(const struct ctl *c)
{
	bool export = c->nwords > 1 && strcmp(c->words[1], "export") == 0;
	int skip = export ? 2 : 1;
	enum ctl_status status;
	struct buf filters, text;

	if (c->nwords == 2 && strcmp(c->words[1], "verify") == 0)
		return verify_run(c);
	buf_init(&filters, 16 * 1024);
	if (calls_filters(c->words + skip, c->nwords - skip, &filters) == -1) {
		buf_free(&filters);
		return CTL_USAGE;
	}
	if (export) {
		status = audit_export(c, "audit_export", "audit",
		    ipc_bytes(filters.p, filters.len));
	} else {
		status = calls_list(c, "audit", NULL,
		    ipc_bytes(filters.p, filters.len), c->cursor, &text);
		if (status == CTL_DONE)
			status = tables_show(c, "audit", &text);
		buf_free(&text);
	}
	buf_free(&filters);
	return status;
}
