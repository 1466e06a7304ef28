#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "ctl.h"
#include "ids.h"
#include "json.h"

/*
 * Ids as people give them: whole, or their first digits. admind looks a prefix
 * up (question `ids`); that what it found begins so is seen here.
 */

static const struct {
	const char *kind, *what, *list;
} kinds[] = {
    {"approval", "request", "approvals list --all"},
    {"execution", "execution", "executions"},
    {"source", "source", "sources"},
    {"server", "server", "servers"},
    {"tool", "tool", "tools"},
};

/* Is it the beginning of an id, dashes in their places? */
static bool
is_prefix(const char *s)
{
	size_t n = strlen(s);

	if (n < PREFIX_DIGITS_MIN || n >= UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < n; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23
			? s[i] != '-'
			: !isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

static size_t
row_of(const char *kind)
{
	size_t i = 0;

	while (strcmp(kinds[i].kind, kind) != 0)
		i++;
	return i;
}

/* Says that none begins so, or several do. */
static enum ctl_status
complain(const char *kind, int found, const char *word)
{
	size_t k = row_of(kind);
	struct buf b;

	buf_init(&b, 4096);
	show_text(&b, word, strlen(word), SHOW_LINE);
	buf_putc(&b, '\0');
	if (found == 0)
		fprintf(stderr,
		    "mcpboxctl: not found: no %s has an id that begins with "
		    "%s: see `mcpboxctl %s`\n",
		    kinds[k].what, (const char *)b.p, kinds[k].list);
	else
		fprintf(stderr,
		    "mcpboxctl: ambiguous: more than one %s has an id that "
		    "begins with %s: give more digits, see `mcpboxctl %s`\n",
		    kinds[k].what, (const char *)b.p, kinds[k].list);
	buf_free(&b);
	return CTL_REFUSED;
}

/* How many ids begin so, up to 2, and the first of them; -1 and said why. A
 * name that is the word itself counts as none, and *name says so. */
static int
look_up(const struct ctl *c, const char *kind, const char *word,
    struct ipc_id *id, bool *name)
{
	struct json_object *o = NULL, *items, *v;
	char ask[UUID_TEXT_LEN + 32];
	struct ctl plain = *c;
	struct buf text;
	struct err err;
	int n = -1;
	const char *s;

	*name = false;
	memset(plain.filter, 0, sizeof(plain.filter));
	plain.state = plain.kind = plain.cursor = NULL;
	snprintf(ask, sizeof(ask), "%s/%s", kind, word);
	if (calls_query(&plain, "ids", ask, &text) != CTL_DONE)
		goto out;
	if (json_parse(text.p, text.len, &o, &err) == -1 ||
	    !json_object_object_get_ex(o, "items", &items) ||
	    !json_object_is_type(items, json_type_array)) {
		fputs("mcpboxctl: the answer is unreadable\n", stderr);
		goto out;
	}
	*name = json_object_object_get_ex(o, "name", &v) &&
	    json_object_get_boolean(v);
	n = (int)json_object_array_length(items);
	s = n > 0 ? json_object_get_string(json_object_array_get_idx(items, 0))
		  : NULL;
	if (n > 0 &&
	    (s == NULL || uuid_parse(s, strlen(s), id) == -1 ||
		strncasecmp(s, word, strlen(word)) != 0)) {
		fputs("mcpboxctl: the answer is unreadable\n", stderr);
		n = -1;
	}
out:
	json_object_put(o);
	buf_free(&text);
	return n;
}

enum ctl_status
prefix_whole(
    const struct ctl *c, const char *kind, const char *word, struct ipc_id *id)
{
	size_t k = row_of(kind);
	bool name;
	int n;

	if (uuid_parse(word, strlen(word), id) == 0)
		return CTL_DONE;
	if (!is_prefix(word)) {
		fprintf(stderr,
		    "mcpboxctl: not an id: a%s %s is named by "
		    "its id or the first %d or more digits of it, see "
		    "`mcpboxctl %s`\n",
		    strchr("aeiou", kinds[k].what[0]) != NULL ? "n" : "",
		    kinds[k].what, PREFIX_DIGITS_MIN, kinds[k].list);
		return CTL_USAGE;
	}
	if ((n = look_up(c, kind, word, id, &name)) == 1)
		return CTL_DONE;
	if (n == -1)
		return CTL_UNREACHABLE;
	return complain(kind, n, word);
}

enum ctl_status
prefix_request(const struct ctl *c, const char *word, struct ipc_id *id)
{
	return prefix_whole(c, "approval", word, id);
}

enum ctl_status
prefix_named(const struct ctl *c, const char *kind, const char *word, char *out,
    size_t n)
{
	struct ipc_id id;
	bool name;
	int found;

	if (snprintf(out, n, "%s", word) >= (int)n) {
		fputs("mcpboxctl: that is too long\n", stderr);
		return CTL_USAGE;
	}
	if (!is_prefix(word))
		return CTL_DONE;
	if ((found = look_up(c, kind, word, &id, &name)) == -1)
		return CTL_UNREACHABLE;
	if (name)
		return CTL_DONE;
	if (found != 1)
		return complain(kind, found, word);
	uuid_text(&id, out);
	return CTL_DONE;
}
