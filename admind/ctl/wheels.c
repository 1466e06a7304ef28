/*
 * What stands beside a request for a module: the wheel it came from, what it
 * needs, what is known against it. Others' words, brought by admind: shown as
 * such, escaped, and no part of what the hash names.
 */
#include <string.h>

#include <json-c/json.h>

#include "approvals.h"
#include "ctl.h"

static const char *
text_of(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) && v != NULL
	    ? json_object_get_string(v)
	    : "";
}

static void
line(struct buf *b, const char *name, const char *s)
{
	if (s[0] == '\0')
		return;
	show_value(b, name, s, strlen(s), show_width());
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
	show_value(b, name, all.p, all.len, show_width());
	buf_free(&all);
}

/* Appends what a wheel needs, with the version that would be fetched. */
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
		    (const char *const[]){text_of(one, "requirement"),
			text_of(one, "version"), text_of(one, "error")},
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
	if (text_of(a, "error")[0] != '\0') {
		several(b, "known against it",
		    (const char *const[]){"nobody knows", text_of(a, "error")},
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
			text_of(one, "id"), text_of(one, "summary")},
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
		line(b, "installation", text_of(install, "state"));
		line(b, "last error", text_of(install, "error"));
	}
	if (!json_object_object_get_ex(circumstances, "wheel", &wheel) ||
	    !json_object_is_type(wheel, json_type_object))
		return;
	line(b, "wheel", text_of(wheel, "filename"));
	line(b, "its SHA-256", text_of(wheel, "sha256"));
	line(b, "its address", text_of(wheel, "url"));
	line(b, "summary", text_of(wheel, "summary"));
	line(b, "license", text_of(wheel, "license"));
	needs(b, wheel);
	advisories(b, wheel);
}
