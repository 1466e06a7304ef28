#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "calls.h"
#include "ctl.h"
#include "ids.h"
#include "json.h"
#include "prefix.h"

/* Completes ids: people give a whole id or its first digits. admind looks a
 * prefix up (question `ids`). This file checks that the id that admind found
 * begins with the prefix. */

static const struct {
	const char *kind, *what, *list;
} kinds[] = {
    {"approval", "request", "approvals list --all"},
    {"execution", "execution", "executions"},
    {"source", "source", "sources"},
    {"server", "server", "servers"},
    {"token", "token", "tokens"},
    {"tool", "tool", "tools"},
};

/* Tells whether s is the beginning of an id, with dashes in their places. */
static bool
is_prefix(const char *s)
{
	size_t n = strlen(s);

	if (n < PREFIX_DIGITS_MIN || n >= UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < n; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23
			? s[i] != '-'
			: hex_digit(s[i]) < 0)
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

/* Says that no id begins with this word, or that several do. */
static enum ctl_status
complain(const char *what, const char *list, size_t found, const char *word)
{
	struct buf b;

	buf_init(&b, 4096);
	show_text(&b, word, strlen(word), SHOW_LINE);
	buf_putc(&b, '\0');
	if (found == 0)
		fprintf(stderr,
		    "mcpboxctl: not found: no %s has an id that begins with "
		    "%s: see `mcpboxctl %s`\n",
		    what, (const char *)b.p, list);
	else
		fprintf(stderr,
		    "mcpboxctl: ambiguous: more than one %s has an id that "
		    "begins with %s: give more digits, see `mcpboxctl %s`\n",
		    what, (const char *)b.p, list);
	buf_free(&b);
	return CTL_REFUSED;
}

/* Says that a word is neither an id nor the beginning of one. */
static enum ctl_status
no_id(const char *what, const char *list)
{
	fprintf(stderr,
	    "mcpboxctl: not an id: a%s %s is named by "
	    "its id or the first %d or more digits of it, see "
	    "`mcpboxctl %s`\n",
	    strchr("aeiou", what[0]) != NULL ? "n" : "", what,
	    PREFIX_DIGITS_MIN, list);
	return CTL_USAGE;
}

/* Asks admind how many ids begin with the word. Returns that number, at most 2,
 * and puts the first such id into *id; -1: stderr says why. Sets *name if an
 * object has the word as its name. */
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
	if (!is_prefix(word))
		return no_id(kinds[k].what, kinds[k].list);
	if ((n = look_up(c, kind, word, id, &name)) == 1)
		return CTL_DONE;
	if (n == -1)
		return CTL_UNREACHABLE;
	return complain(kinds[k].what, kinds[k].list, (size_t)n, word);
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
	size_t k = row_of(kind);
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
		return complain(
		    kinds[k].what, kinds[k].list, (size_t)found, word);
	uuid_text(&id, out);
	return CTL_DONE;
}

enum ctl_status
prefix_path(const struct ctl *c, const char *kind, const char *word, char *out,
    size_t n)
{
	size_t first = strcspn(word, "/"), used;
	char part[PREFIX_PATH_MAX];
	enum ctl_status status;

	if (first >= sizeof(part) || strlen(word) >= n) {
		fputs("mcpboxctl: that is too long\n", stderr);
		return CTL_USAGE;
	}
	memcpy(part, word, first);
	part[first] = '\0';
	status = prefix_named(c, kind, part, out, n);
	if (status != CTL_DONE)
		return status;
	used = strlen(out);
	if (snprintf(out + used, n - used, "%s", word + first) <
	    (int)(n - used))
		return CTL_DONE;
	fputs("mcpboxctl: that is too long\n", stderr);
	return CTL_USAGE;
}

enum ctl_status
prefix_among(const char *word, const char *const *ids, size_t n,
    const char *what, const char *list, struct ipc_id *id)
{
	const char *found = NULL;
	size_t count = 0;

	if (uuid_parse(word, strlen(word), id) == 0)
		return CTL_DONE;
	if (!is_prefix(word))
		return no_id(what, list);
	for (size_t i = 0; i < n; i++)
		if (strncasecmp(ids[i], word, strlen(word)) == 0) {
			found = ids[i];
			count++;
		}
	if (count != 1)
		return complain(what, list, count, word);
	if (uuid_parse(found, strlen(found), id) == 0)
		return CTL_DONE;
	fputs("mcpboxctl: the answer is unreadable\n", stderr);
	return CTL_UNREACHABLE;
}
