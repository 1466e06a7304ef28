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
	buf_putf(b, "%-18s ", name);
	show_text(b, s, strlen(s), SHOW_LINE);
	buf_putc(b, '\n');
}

/* What a wheel needs, with the version that would be fetched. */
static void
needs(struct buf *b, struct json_object *wheel)
{
	struct json_object *list, *one;

	if (!json_object_object_get_ex(wheel, "needs", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		one = json_object_array_get_idx(list, i);
		buf_putf(b, "%-18s ", i == 0 ? "needs" : "");
		show_text(b, text_of(one, "requirement"),
		    strlen(text_of(one, "requirement")), SHOW_LINE);
		if (text_of(one, "version")[0] != '\0') {
			buf_puts(b, ": ");
			show_text(b, text_of(one, "version"),
			    strlen(text_of(one, "version")), SHOW_LINE);
		}
		if (text_of(one, "error")[0] != '\0') {
			buf_puts(b, ": ");
			show_text(b, text_of(one, "error"),
			    strlen(text_of(one, "error")), SHOW_LINE);
		}
		buf_putc(b, '\n');
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
		buf_putf(b, "%-18s nobody knows: ", "known against it");
		show_text(b, text_of(a, "error"), strlen(text_of(a, "error")),
		    SHOW_LINE);
		buf_putc(b, '\n');
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
		buf_putf(b, "%-18s ", i == 0 ? "known against it" : "");
		show_text(b, text_of(one, "id"), strlen(text_of(one, "id")),
		    SHOW_LINE);
		buf_puts(b, ": ");
		show_text(b, text_of(one, "summary"),
		    strlen(text_of(one, "summary")), SHOW_LINE);
		buf_putc(b, '\n');
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
