#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "remote_screen.h"

#include "tables.h"
#include "terminal.h"

enum ctl_status
remote_screen_json(const struct remote_screen *k)
{
	static const char *const states[] = {"ok", "wrong", "unseen"};
	struct json_object *o = json_object_new_object(),
			   *steps = json_object_new_array();
	enum ctl_status status;
	const char *s;

	for (size_t i = 0; i < k->n; i++) {
		const struct remote_row *r = &k->rows[i];
		struct json_object *step = json_object_new_object();

		json_object_object_add(
		    step, "step", json_object_new_string(r->step));
		json_object_object_add(
		    step, "state", json_object_new_string(states[r->verdict]));
		json_object_object_add(
		    step, "found", json_object_new_string(r->found));
		json_object_object_add(
		    step, "fix", json_object_new_string(r->fix));
		json_object_array_add(steps, step);
	}
	json_object_object_add(o, "name", json_object_new_string(k->name));
	json_object_object_add(
	    o, "kind", json_object_new_string(remote_word(k->way->kind)));
	json_object_object_add(o, "url", json_object_new_string(k->way->url));
	json_object_object_add(o, "ok", json_object_new_boolean(k->right));
	json_object_object_add(o, "steps", steps);
	s = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	status = tables_json((const uint8_t *)s, strlen(s));
	json_object_put(o);
	return status;
}

/* Appends a text in rows of the terminal's width, each after the indent. */
static void
wrap(struct buf *b, const char *text, size_t indent, size_t width)
{
	size_t column = indent, n;

	for (; *text != '\0'; text += n + (text[n] == ' ')) {
		n = strcspn(text, " ");
		if (column > indent && column + 1 + n > width) {
			buf_putf(b, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			buf_putc(b, ' ');
			column++;
		}
		show_text(b, text, n, SHOW_CODE);
		column += n;
	}
	buf_putc(b, '\n');
}

enum ctl_status
remote_screen_show(const struct remote_screen *k)
{
	static const char *const marks[] = {"ok", "WRONG", "-"};
	enum { INDENT = 22 };
	size_t width = terminal_width(), wrong = 0;
	struct buf b;

	buf_init(&b, 256 * 1024);
	buf_putf(&b, "%s (%s): %s\n", k->name, remote_word(k->way->kind),
	    k->way->url);
	for (size_t i = 0; i < k->n; i++) {
		const struct remote_row *r = &k->rows[i];

		buf_putf(&b, "%-6s %-14s ", marks[r->verdict], r->step);
		wrap(&b, r->found, INDENT, width);
		if (r->verdict == REMOTE_WRONG) {
			buf_putf(&b, "%*s", INDENT, "");
			wrap(&b, r->fix, INDENT, width);
			wrong++;
		}
	}
	if (k->right)
		buf_puts(&b, "The way in is right.\n");
	else if (wrong > 0)
		buf_putf(&b, "%zu step%s wrong. Begin with the first.\n", wrong,
		    wrong == 1 ? " is" : "s are");
	terminal_out(&b);
	buf_free(&b);
	return CTL_DONE;
}
