/*
 * Shows the facts beside a request for a module: its wheel, the modules that it
 * needs, and the advisories against it. These are words of strangers, which
 * admind passes on. So they are escaped, and are no part of the content that
 * the hash names.
 */
#include <string.h>

#include <json-c/json.h>

#include "approvals.h"
#include "tables.h"
#include "terminal.h"

static void
line(struct buf *b, const char *name, const char *s)
{
	if (s[0] == '\0')
		return;
	show_value(b, name, s, strlen(s), terminal_width());
}

/* Appends several texts as one value, a colon between them. */
static void
several(struct buf *b, const char *name, const char *const *texts, int n)
{
	struct buf all;

	buf_init(&all, IPC_BLOB_MAX);
	for (int i = 0; i < n; i++) {
		if (texts[i][0] == '\0')
			continue;
		buf_puts(&all, all.len > 0 ? ": " : "");
		buf_puts(&all, texts[i]);
	}
	b->failed |= all.failed;
	show_value(b, name, all.p, all.len, terminal_width());
	buf_free(&all);
}

/* Appends a wheel's requirements, each with the version that would be
 * fetched. */
static void
needs(struct buf *b, struct json_object *wheel)
{
	struct json_object *list, *one;

	if (!json_object_object_get_ex(wheel, "needs", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		one = json_object_array_get_idx(list, i);
		several(b, i == 0 ? "needs" : "",
		    (const char *const[]){tables_text(one, "requirement"),
			tables_text(one, "version"), tables_text(one, "error")},
		    3);
	}
}

static void
advisories(struct buf *b, struct json_object *wheel)
{
	struct json_object *a, *list, *one;
	size_t n;

	if (!json_object_object_get_ex(wheel, "advisories", &a) || a == NULL) {
		line(b, "known against it", "no feed is configured");
		return;
	}
	if (tables_text(a, "error")[0] != '\0') {
		several(b, "known against it",
		    (const char *const[]){
			"nobody knows", tables_text(a, "error")},
		    2);
		return;
	}
	if (!json_object_object_get_ex(a, "known", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	n = json_object_array_length(list);
	if (n == 0)
		line(b, "known against it", "nothing, by the feed");
	for (size_t i = 0; i < n; i++) {
		one = json_object_array_get_idx(list, i);
		several(b, i == 0 ? "known against it" : "",
		    (const char *const[]){
			tables_text(one, "id"), tables_text(one, "summary")},
		    2);
	}
}

void
wheels_text(struct json_object *circumstances, struct buf *b)
{
	struct json_object *wheel, *install;

	if (circumstances == NULL)
		return;
	if (json_object_object_get_ex(circumstances, "install", &install) &&
	    json_object_is_type(install, json_type_object)) {
		line(b, "installation", tables_text(install, "state"));
		line(b, "last error", tables_text(install, "error"));
	}
	if (!json_object_object_get_ex(circumstances, "wheel", &wheel) ||
	    !json_object_is_type(wheel, json_type_object))
		return;
	line(b, "wheel", tables_text(wheel, "filename"));
	line(b, "its SHA-256", tables_text(wheel, "sha256"));
	line(b, "its address", tables_text(wheel, "url"));
	line(b, "summary", tables_text(wheel, "summary"));
	line(b, "license", tables_text(wheel, "license"));
	needs(b, wheel);
	advisories(b, wheel);
}
