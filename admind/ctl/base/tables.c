#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "calls.h"
#include "ctl.h"
#include "json.h"
#include "prefix.h"
#include "tables.h"
#include "terminal.h"

enum { COLUMNS_MAX = 10, WIDTH_MAX = 60 };

/* The columns of lists, in order: each shows one member of the items. A member
 * that no item has is left out. */
static const struct {
	const char *what;
	const char *column[COLUMNS_MAX];
} layouts[] = {
    {"approvals",
	{"id", "kind", "server", "tool", "version", "module", "host", "state",
	    "requested_at"}},
    {"network",
	{"id", "server", "host", "port", "automatic", "granted_by",
	    "granted_at", "revoked_at"}},
    {"comments", {"at", "author", "text"}},
    /* approvals of kind call */
    {"calls",
	{"id", "exposed_name", "principal", "arguments", "state",
	    "requested_at", "expires_at"}},
    {"settings",
	{"key", "value", "default", "updated_at", "updated_by", "doc"}},
    {"rate_limits",
	{"scope", "subject", "per_minute", "burst", "updated_at",
	    "updated_by"}},
    {"servers",
	{"id", "name", "status", "stopped_by", "stopped_at", "state",
	    "tool_count", "description"}},
    {"modules",
	{"name", "version", "state", "digest", "files", "bytes", "tools"}},
    {"installs",
	{"name", "version", "state", "attempts", "resolved", "error", "next_at",
	    "updated_at"}},
    {"tools",
	{"id", "object", "exposed_name", "enabled", "disabled_by",
	    "approval_status", "version", "serving_version", "callable"}},
    {"versions",
	{"version", "state", "serving", "change_source", "change_note",
	    "created_by", "created_at"}},
    {"sources",
	{"id", "name", "url", "auth_type", "auth_secret_name", "transport_type",
	    "status"}},
    {"executions",
	{"id", "tool", "principal", "listener", "state", "outcome",
	    "failure_mode", "created_at"}},
    {"activity",
	{"at", "kind", "subject", "failure_mode", "principal", "listener",
	    "count", "node"}},
    {"audit", {"seq", "at", "actor", "action", "subject", "detail"}},
    {"administrators",
	{"username", "role", "created_at", "created_by", "password_at"}},
    {"logins",
	{"id", "username", "role", "by", "pending", "source", "created_at",
	    "seen_at", "idle_expires_at", "agent"}},
    {"passkeys",
	{"id", "label", "algorithm", "role", "copied", "created_at",
	    "used_at"}},
    {"tokens",
	{"id", "name", "state", "set", "scopes", "listeners", "allow", "deny",
	    "expires_at", "last_used_at"}},
    {"keys",
	{"name", "state", "scopes", "created_by", "expires_at", "last_used_at",
	    "revoked_by", "reason"}},
    {"identities",
	{"principal", "email", "set", "state", "first_seen", "last_used_at",
	    "last_used_listener", "withdrawn_by", "reason"}},
    {"refreshed", {"issuer", "state", "text"}},
    {"endpoints",
	{"name", "mode", "set", "listeners", "tools", "prompts", "resources",
	    "missing", "hidden"}},
    {"notifications",
	{"target", "waiting", "sent", "sent_at", "next_at", "error"}},
    {"remotes", {"name", "kind", "url", "state", "people", "last_used_at"}},
    {"secrets",
	{"key", "has_value", "version", "set_at", "set_by", "description"}},
    {"doctor", {"process", "layer", "state", "detail", "fix"}},
};

static const char *const *
layout(const char *what)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (strcmp(layouts[i].what, what) == 0)
			return layouts[i].column;
	return NULL;
}

static const char *
json_text(struct json_object *v)
{
	return json_object_to_json_string_ext(
	    v, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
}

const char *
tables_text(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) && v != NULL
	    ? json_object_get_string(v)
	    : "";
}

static bool
is_nested(struct json_object *v)
{
	return json_object_is_type(v, json_type_array) ||
	    json_object_is_type(v, json_type_object);
}

/* True for a word that a list shows without quotes. Such a word differs from
 * "true", "false", "null" and our own "none". It begins with a letter, "_" or
 * "*", so it is no number. It has no blank, comma, "=" or quote. */
static bool
is_word_n(const char *s, size_t n)
{
	static const char *const ours[] = {"true", "false", "null", "none"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strlen(ours[i]) == n && memcmp(s, ours[i], n) == 0)
			return false;
	return ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
		   *s == '_' || *s == '*') &&
	    strspn(s,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_.:*/@+-") >= n;
}

static bool
is_word(const char *s)
{
	return is_word_n(s, strlen(s));
}

/* Appends an element: a word as it is, everything else as JSON. */
static void
element(struct buf *b, struct json_object *v)
{
	if (v != NULL && json_object_is_type(v, json_type_string) &&
	    strlen(json_object_get_string(v)) ==
		(size_t)json_object_get_string_len(v) &&
	    is_word(json_object_get_string(v)))
		buf_puts(b, json_object_get_string(v));
	else
		buf_puts(b, json_text(v));
}

/* Appends the elements of a list, or the members of an object as name=value,
 * with commas between. Two different values never look alike, since a value
 * with a comma is in quotes. */
static void
elements(struct buf *b, struct json_object *v)
{
	size_t n = 0;

	if (json_object_is_type(v, json_type_array)) {
		for (; n < json_object_array_length(v); n++) {
			buf_puts(b, n > 0 ? ", " : "");
			element(b, json_object_array_get_idx(v, n));
		}
	} else {
		json_object_object_foreach(v, name, value)
		{
			if (!is_word(name)) {
				buf_clear(b);
				buf_puts(b, json_text(v));
				return;
			}
			buf_putf(b, "%s%s=", n++ > 0 ? ", " : "", name);
			element(b, value);
		}
	}
	if (n == 0)
		buf_puts(
		    b, json_object_is_type(v, json_type_array) ? "none" : "{}");
}

/* Appends a value as one line; "-" for null and absent. */
static void
cell(struct buf *b, struct json_object *v)
{
	const char *s = "-";
	struct buf text;

	if (is_nested(v)) {
		buf_init(&text, IPC_BLOB_MAX);
		elements(&text, v);
		show_text(b, text.p, text.len, SHOW_LINE);
		b->failed |= text.failed;
		buf_free(&text);
		return;
	}
	if (v != NULL)
		s = json_object_is_type(v, json_type_string)
		    ? json_object_get_string(v)
		    : json_text(v);
	show_text(b, s, strlen(s), SHOW_LINE);
}

/* Returns roughly the width in characters: the number of bytes that do not
 * continue a UTF-8 character. */
static size_t
width(const struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += (b->p[i] & 0xc0) != 0x80;
	return n;
}

static void
row(struct json_object *item, const char *const *column, const size_t *w,
    bool head)
{
	struct json_object *v;
	struct buf line, b;
	size_t n;

	buf_init(&line, IPC_BLOB_MAX);
	for (size_t i = 0; i < COLUMNS_MAX && column[i] != NULL; i++) {
		if (w[i] == 0)
			continue;
		buf_init(&b, IPC_BLOB_MAX);
		v = NULL;
		if (head)
			buf_puts(&b, column[i]);
		else {
			json_object_object_get_ex(item, column[i], &v);
			cell(&b, v);
		}
		n = width(&b);
		buf_put(&line, b.p, b.len);
		do { /* a blank even after a cell that is too wide */
			buf_putc(&line, ' ');
		} while (++n < w[i] + 2);
		buf_free(&b);
	}
	while (line.len > 0 && line.p[line.len - 1] == ' ')
		line.len--;
	buf_putc(&line, '\n');
	terminal_out(&line);
	buf_free(&line);
}

/* Takes the first members of a list's first item as columns, for a list that
 * has no layout. */
static void
first_members(struct json_object *item, const char *column[COLUMNS_MAX])
{
	size_t n = 0;

	memset(column, 0, COLUMNS_MAX * sizeof(column[0]));
	if (!json_object_is_type(item, json_type_object))
		return;
	json_object_object_foreach(item, name, value)
	{
		(void)value;
		if (n < COLUMNS_MAX)
			column[n++] = name;
	}
}

/* Prints one line per item, with each column as wide as its widest cell. With
 * `head` the columns' names come first. */
static void
print_rows(const char *what, struct json_object *list, bool head)
{
	const char *const *column = layout(what);
	size_t w[COLUMNS_MAX] = {0}, n = json_object_array_length(list);
	const char *own[COLUMNS_MAX];
	struct buf b;

	if (column == NULL) {
		first_members(json_object_array_get_idx(list, 0), own);
		column = own;
	}
	for (size_t r = 0; r < n; r++)
		for (size_t i = 0; i < COLUMNS_MAX && column[i] != NULL; i++) {
			struct json_object *v;
			size_t name = strlen(column[i]);

			if (!json_object_object_get_ex(
				json_object_array_get_idx(list, r), column[i],
				&v))
				continue;
			buf_init(&b, IPC_BLOB_MAX);
			cell(&b, v);
			if (w[i] < name)
				w[i] = name;
			if (w[i] < width(&b))
				w[i] = width(&b);
			if (w[i] > WIDTH_MAX)
				w[i] = WIDTH_MAX;
			buf_free(&b);
		}
	if (head && n == 0)
		puts("none");
	else if (head)
		row(NULL, column, w, true);
	for (size_t r = 0; r < n; r++)
		row(json_object_array_get_idx(list, r), column, w, false);
}

void
tables_print(const char *what, struct json_object *list)
{
	print_rows(what, list, true);
}

/*
 * Tells whether the view of an object shows a text without quotes. Two
 * different objects never have the same view. So a text is in quotes if it
 * could be taken for something else: our "none" and "-", a number, a truth
 * value, a list or members. A member's name is in quotes, too, unless it is a
 * word, because print_list() writes numbers where an object has names. Cells of
 * a table need no such quotes: all cells of a column are of one type.
 */
static bool
is_plain(const char *s)
{
	static const char *const ours[] = {
	    "", "-", "none", "true", "false", "null"};
	size_t word = strcspn(s, " "), equals;
	char *end;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strcmp(s, ours[i]) == 0)
			return false;
	if (strspn(s, "0123456789+-.eE") == strlen(s)) {
		(void)strtod(s, &end);
		if (*end == '\0')
			return false;
	}
	/* Texts that look like JSON, like the first element of a list or like
	 * the first member of an object need quotes. */
	equals = strcspn(s, "=");
	return strchr("\"[{", *s) == NULL &&
	    (word == 0 || s[word - 1] != ',') &&
	    (s[equals] == '\0' || !is_word_n(s, equals));
}

/* Appends a member's value, and ends the line. */
static void
value_line(struct buf *b, struct json_object *v)
{
	struct buf text;

	buf_putc(b, ' ');
	if (json_object_is_type(v, json_type_string) &&
	    !is_plain(json_object_get_string(v))) {
		show_text(b, json_text(v), strlen(json_text(v)), SHOW_LINE);
	} else {
		buf_init(&text, IPC_BLOB_MAX);
		cell(&text, v);
		buf_put(b, text.p, text.len);
		b->failed |= text.failed;
		buf_free(&text);
		/* a comma marks a list of one element */
		if (json_object_is_type(v, json_type_array) &&
		    json_object_array_length(v) == 1)
			buf_putc(b, ',');
	}
	buf_putc(b, '\n');
}

static void print_object(struct json_object *, int depth, struct buf *);

/* Appends a list that begins with an object: each element after its number. */
static void
print_list(struct json_object *list, int depth, struct buf *b)
{
	struct json_object *v;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		v = json_object_array_get_idx(list, i);
		buf_putf(b, "%*s%zu:", 2 * depth, "", i + 1);
		if (json_object_is_type(v, json_type_object)) {
			buf_putc(b, '\n');
			print_object(v, depth + 1, b);
		} else {
			value_line(b, v);
		}
	}
}

/* Appends a line "name: value" for each member. Nested objects and lists of
 * objects are indented. */
static void
print_object(struct json_object *o, int depth, struct buf *b)
{
	struct json_object_iterator it = json_object_iter_begin(o);
	struct json_object_iterator end = json_object_iter_end(o);

	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *name = json_object_iter_peek_name(&it);
		struct json_object *v = json_object_iter_peek_value(&it);

		buf_putf(b, "%*s", 2 * depth, "");
		if (is_word(name)) {
			buf_puts(b, name);
		} else {
			struct json_object *quoted =
			    json_object_new_string(name);

			show_text(b, json_text(quoted),
			    strlen(json_text(quoted)), SHOW_LINE);
			json_object_put(quoted);
		}
		buf_putc(b, ':');
		if (json_object_is_type(v, json_type_object) &&
		    json_object_object_length(v) > 0 && depth < 8) {
			buf_putc(b, '\n');
			print_object(v, depth + 1, b);
		} else if (json_object_is_type(v, json_type_array) &&
		    depth < 8 &&
		    json_object_is_type(
			json_object_array_get_idx(v, 0), json_type_object)) {
			buf_putc(b, '\n');
			print_list(v, depth + 1, b);
		} else {
			value_line(b, v);
		}
	}
}

void
tables_object(struct buf *b, struct json_object *o)
{
	print_object(o, 0, b);
}

enum ctl_status
tables_items(
    const struct ctl *c, const char *what, struct json_object *items, bool head)
{
	struct buf line;
	const char *s;

	if (!c->json) {
		print_rows(what, items, head);
		return CTL_DONE;
	}
	for (size_t i = 0; i < json_object_array_length(items); i++) {
		s = json_object_to_json_string_ext(
		    json_object_array_get_idx(items, i),
		    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
		buf_init(&line, 8 * IPC_BLOB_MAX);
		if (show_json(&line, s, strlen(s)) == -1)
			line.failed = true;
		buf_putc(&line, '\n');
		terminal_out(&line);
		buf_free(&line);
	}
	return CTL_DONE;
}

enum ctl_status
tables_json(const uint8_t *p, size_t n)
{
	struct err err;
	struct buf b;
	bool ok;

	if (json_scan(p, n, &err) == -1) {
		fprintf(stderr, "mcpboxctl: the answer is not JSON: %s\n",
		    err.text);
		return CTL_REFUSED;
	}
	buf_init(&b, 16 * IPC_BLOB_MAX);
	ok = show_json(&b, p, n) == 0;
	if (ok) {
		buf_putc(&b, '\n');
		terminal_out(&b);
		ok = !b.failed;
	} else {
		fputs("mcpboxctl: the answer is not JSON in UTF-8\n", stderr);
	}
	buf_free(&b);
	return ok ? CTL_DONE : CTL_REFUSED;
}

enum ctl_status
tables_show(const struct ctl *c, const char *what, const struct buf *text)
{
	struct json_object *o = NULL, *items, *next;
	struct err err;
	struct buf b;

	if (c->json)
		return tables_json(text->p, text->len);
	if (json_parse(text->p, text->len, &o, &err) == -1) {
		fprintf(stderr, "mcpboxctl: the answer is not JSON: %s\n",
		    err.text);
		return CTL_REFUSED;
	}
	if (json_object_object_get_ex(o, "items", &items) &&
	    json_object_is_type(items, json_type_array)) {
		tables_print(what, items);
		if (json_object_object_get_ex(o, "next_cursor", &next) &&
		    json_object_is_type(next, json_type_string)) {
			buf_init(&b, IPC_BLOB_MAX);
			buf_puts(&b, "more: --cursor ");
			cell(&b, next);
			buf_putc(&b, '\n');
			terminal_out(&b);
			buf_free(&b);
		}
	} else if (json_object_is_type(o, json_type_object)) {
		buf_init(&b, 8 * IPC_BLOB_MAX);
		tables_object(&b, o);
		terminal_out(&b);
		buf_free(&b);
	}
	json_object_put(o);
	return CTL_DONE;
}

/* Runs the commands (status, health, servers, executions ...) that ask admind
 * the question of the same name and print the answer. */
enum ctl_status
tables_command(const struct ctl *c)
{
	static const struct {
		const char *many, *one;
	} names[] = {{"servers", "server"}, {"tools", "tool"},
	    {"executions", "execution"}, {"settings", "setting"}};
	const char *what = c->words[0], *id = NULL;
	enum ctl_status status;
	struct buf text;

	for (size_t i = 0;
	    c->nwords == 2 && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(what, names[i].many) == 0) {
			what = names[i].one;
			id = c->words[1];
		}
	if ((status = calls_query(c, what, id, &text)) == CTL_DONE) {
		if (strcmp(what, "approvals") == 0 && c->kind != NULL &&
		    strcmp(c->kind, "call") == 0)
			what = "calls";
		status = tables_show(c, what, &text);
	}
	buf_free(&text);
	return status;
}

/* Runs query WHAT [ID], which asks admind any question (ADMIN_QUERY). */
enum ctl_status
query_command(const struct ctl *c)
{
	/* The kind of object whose id is a question's ID, or the part of ID
	 * before a slash. */
	static const struct {
		const char *what, *kind;
	} kinds[] = {{"server", "server"}, {"tool", "tool"},
	    {"version", "tool"}, {"version_diff", "tool"}, {"source", "source"},
	    {"execution", "execution"}, {"comments", "approval"},
	    {"token", "token"}};
	const char *id = c->nwords == 3 ? c->words[2] : NULL;
	enum ctl_status status;
	char whole[PREFIX_PATH_MAX];
	struct buf text;

	for (size_t i = 0; id != NULL && i < sizeof(kinds) / sizeof(kinds[0]);
	    i++) {
		if (strcmp(c->words[1], kinds[i].what) != 0)
			continue;
		status = prefix_path(
		    c, kinds[i].kind, c->words[2], whole, sizeof(whole));
		if (status != CTL_DONE)
			return status;
		id = whole;
	}
	status = calls_query(c, c->words[1], id, &text);
	if (status == CTL_DONE)
		status = tables_show(c, c->words[1], &text);
	buf_free(&text);
	return status;
}
