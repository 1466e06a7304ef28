#include "access_diff.h"

#include <string.h>

#include <json-c/json.h>

#include "show.h"

struct diff {
	struct buf *out;
	unsigned n;
};

static struct json_object *
member(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	if (json_object_is_type(o, json_type_object))
		(void)json_object_object_get_ex(o, name, &v);
	return v;
}

/* Returns a member's text, or its JSON if the member is not a string. An absent
 * member has the text "". */
static const char *
text(struct json_object *o, const char *name)
{
	struct json_object *v = member(o, name);

	return v != NULL ? json_object_get_string(v) : "";
}

static size_t
length(struct json_object *list)
{
	return json_object_is_type(list, json_type_array)
	    ? json_object_array_length(list)
	    : 0;
}

static bool
equal(struct json_object *a, struct json_object *b)
{
	return a == b || (a != NULL && b != NULL && json_object_equal(a, b));
}

void
access_diff_ascii(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		unsigned long u = c;
		size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;

		if (c >= 0x20 && c < 0x7f) {
			buf_putc(out, (char)c);
			continue;
		}
		if (more == 0 && c >= 0x80) {
			buf_putc(out, '?');
			continue;
		}
		if (more > 0)
			u = c & (0x3fU >> more);
		for (; more > 0 && i + 1 < n; more--)
			u = u << 6 | ((unsigned char)s[++i] & 0x3f);
		if (u > 0xffff)
			buf_putf(out, "\\u%04lx\\u%04lx",
			    0xd800 + ((u - 0x10000) >> 10),
			    0xdc00 + ((u - 0x10000) & 0x3ff));
		else
			buf_putf(out, "\\u%04lx", u);
	}
}

/* Begins a row with the mark, a kind of item, and the item's name. */
static void
row(struct diff *d, char mark, const char *what, const char *name)
{
	d->n++;
	buf_putf(d->out, "%c %s", mark, what);
	if (*name != '\0') {
		buf_putc(d->out, ' ');
		show_text(d->out, name, strlen(name), SHOW_CODE);
	}
}

static void
end(struct diff *d)
{
	buf_putc(d->out, '\n');
}

/* Appends a list of words, or one word. An empty list grants and refuses
 * nothing, as an absent one, so it has no place in the row. */
static void
words(struct diff *d, const char *before, struct json_object *v)
{
	const char *s;

	if (v == NULL ||
	    (json_object_is_type(v, json_type_array) && length(v) == 0))
		return;
	buf_puts(d->out, before);
	for (size_t i = 0; i < length(v); i++) {
		s = json_object_get_string(json_object_array_get_idx(v, i));
		if (i > 0)
			buf_puts(d->out, ", ");
		if (s != NULL)
			show_text(d->out, s, strlen(s), SHOW_CODE);
	}
	if (!json_object_is_type(v, json_type_array)) {
		s = json_object_is_type(v, json_type_string)
		    ? json_object_get_string(v)
		    : json_object_to_json_string_ext(v,
			  JSON_C_TO_STRING_SPACED |
			      JSON_C_TO_STRING_NOSLASHESCAPE);
		show_text(d->out, s, strlen(s), SHOW_CODE);
	}
}

/* Returns the item of the list whose member `name` has this text. */
static struct json_object *
find(struct json_object *list, const char *name, const char *value)
{
	struct json_object *v;

	for (size_t i = 0; i < length(list); i++) {
		v = json_object_array_get_idx(list, i);
		if (strcmp(text(v, name), value) == 0)
			return v;
	}
	return NULL;
}

static bool
has(struct json_object *list, struct json_object *v)
{
	for (size_t i = 0; i < length(list); i++)
		if (equal(json_object_array_get_idx(list, i), v))
			return true;
	return false;
}

/* Appends the names of members that differ, without `apart`. */
static bool
members(struct json_object *a, struct json_object *b, const char *apart,
    struct buf *out)
{
	struct json_object *const both[] = {a, b};
	bool some = false;

	for (int i = 0; i < 2; i++) {
		if (!json_object_is_type(both[i], json_type_object))
			continue;
		json_object_object_foreach(both[i], key, value)
		{
			struct json_object *v = member(both[1 - i], key);

			if (strcmp(key, apart) == 0 || equal(v, value) ||
			    (i == 1 && v != NULL))
				continue;
			buf_puts(out, some ? ", " : "");
			show_text(out, key, strlen(key), SHOW_CODE);
			some = true;
		}
	}
	return some;
}

/* ---- keys of an issuer ---- */

static struct json_object *
keys(struct json_object *issuer)
{
	return member(member(issuer, "jwks"), "keys");
}

static void
key(struct diff *d, char mark, const char *issuer, struct json_object *k)
{
	row(d, mark, "key of issuer", issuer);
	buf_puts(d->out, ": kid ");
	show_text(d->out, text(k, "kid"), strlen(text(k, "kid")), SHOW_CODE);
	buf_puts(d->out, ", ");
	show_text(d->out, text(k, "kty"), strlen(text(k, "kty")), SHOW_CODE);
	buf_putc(d->out, ' ');
	show_text(d->out, text(k, "crv"), strlen(text(k, "crv")), SHOW_CODE);
	end(d);
}

/* A key without a name is compared as a whole. */
static void
diff_keys(struct diff *d, const char *issuer, struct json_object *a,
    struct json_object *b)
{
	struct json_object *k, *other;
	const char *kid;

	for (size_t i = 0; i < length(a); i++) {
		k = json_object_array_get_idx(a, i);
		kid = text(k, "kid");
		if (has(b, k))
			continue;
		other = *kid != '\0' ? find(b, "kid", kid) : NULL;
		if (other == NULL)
			key(d, '-', issuer, k);
		else
			key(d, '~', issuer, other);
	}
	for (size_t i = 0; i < length(b); i++) {
		k = json_object_array_get_idx(b, i);
		kid = text(k, "kid");
		if (!has(a, k) && (*kid == '\0' || find(a, "kid", kid) == NULL))
			key(d, '+', issuer, k);
	}
}

/* ---- issuers, sets and endpoints, by name ---- */

/* Appends the renames of an endpoint, each with its description. */
static void
renames(struct diff *d, struct json_object *list)
{
	struct json_object *r;

	for (size_t i = 0; i < length(list); i++) {
		r = json_object_array_get_idx(list, i);
		words(d, "; rename ", member(r, "tool"));
		words(d, " -> ", member(r, "as"));
		words(d, ": ", member(r, "description"));
	}
}

/* Appends all members of an issuer, a set or an endpoint that let somebody in.
 * Keys have rows of their own. */
static void
describe(struct diff *d, struct json_object *o)
{
	words(d, "  ", member(o, "issuer"));
	words(d, "; audiences ", member(o, "audiences"));
	words(d, "; algorithms ", member(o, "algorithms"));
	words(d, "; header ", member(o, "header"));
	words(d, "; listeners ", member(o, "listeners"));
	words(d, "; leeway_seconds ", member(o, "leeway_seconds"));
	words(d, "; max_age_seconds ", member(o, "max_age_seconds"));
	words(d, "; types ", member(o, "types"));
	words(d, "; email ", member(o, "email"));
	words(d, "; clients ", member(o, "clients"));
	words(d, "; id_tokens ", member(o, "id_tokens"));
	words(d, "; bound ", member(o, "bound"));
	words(d, "; discovery ", member(o, "discovery"));
	words(d, "; keys at ", member(o, "jwks_url"));
	words(d, "; key_hosts ", member(o, "key_hosts"));
	words(d, "; administrators sign in as client ",
	    member(member(o, "sign_in"), "client_id"));
	words(d, ", back to ", member(member(o, "sign_in"), "redirect"));
	words(d, ", asking for ", member(member(o, "sign_in"), "scopes"));
	words(d, "; scopes ", member(o, "scopes"));
	words(d, "; allow ", member(o, "allow"));
	words(d, "; deny ", member(o, "deny"));
	words(d, "; calls per minute ", member(o, "calls_per_minute"));
	words(d, "; mode ", member(o, "mode"));
	words(d, "; at most set ", member(o, "set"));
	renames(d, member(o, "rename"));
	words(d, "; instructions ", member(o, "instructions"));
}

/* Compares two lists of items with names. The second argument is the kind of
 * item. The member `apart` is compared separately. */
static void
diff_named(struct diff *d, const char *what, struct json_object *a,
    struct json_object *b, const char *apart)
{
	struct json_object *v, *other;
	const char *name;
	struct buf names;

	for (size_t i = 0; i < length(a); i++) {
		v = json_object_array_get_idx(a, i);
		if (find(b, "name", text(v, "name")) == NULL) {
			row(d, '-', what, text(v, "name"));
			end(d);
		}
	}
	for (size_t i = 0; i < length(b); i++) {
		v = json_object_array_get_idx(b, i);
		name = text(v, "name");
		other = find(a, "name", name);
		buf_init(&names, 64 * 1024);
		if (other == NULL) {
			row(d, '+', what, name);
			describe(d, v);
			end(d);
		} else if (members(other, v, apart, &names)) {
			row(d, '~', what, name);
			buf_puts(d->out, ": ");
			buf_put(d->out, names.p, names.len);
			describe(d, v);
			end(d);
		}
		buf_free(&names);
		if (*apart != '\0')
			diff_keys(d, name, keys(other), keys(v));
	}
}

/* ---- rules ---- */

/* The kind is "rule", or "administrators' rule". */
static void
rule(struct diff *d, char mark, const char *kind, size_t number,
    struct json_object *r)
{
	row(d, mark, kind, "");
	buf_putf(d->out, " %zu:", number + 1);
	words(d, " issuer ", member(r, "issuer"));
	words(d, ", ", member(r, "claim"));
	words(d, " ", member(r, "values"));
	words(d, " -> set ", member(r, "set"));
	words(d, " -> role ", member(r, "role"));
	end(d);
}

/* Rules have no names, so a changed rule is one that goes and one that comes.
 * The first that fits wins: another order can give people other rights. */
static void
diff_rules(struct diff *d, const char *kind, struct json_object *a,
    struct json_object *b)
{
	unsigned before = d->n;

	for (size_t i = 0; i < length(a); i++)
		if (!has(b, json_object_array_get_idx(a, i)))
			rule(d, '-', kind, i, json_object_array_get_idx(a, i));
	for (size_t i = 0; i < length(b); i++)
		if (!has(a, json_object_array_get_idx(b, i)))
			rule(d, '+', kind, i, json_object_array_get_idx(b, i));
	if (d->n == before && !equal(a, b) &&
	    (length(a) > 0 || length(b) > 0)) {
		row(d, '~', kind, "");
		buf_puts(d->out, "s: another order; the first that fits wins");
		end(d);
		for (size_t i = 0; i < length(b); i++)
			rule(d, ' ', kind, i, json_object_array_get_idx(b, i));
	}
}

/* Compares the other members: the resource, and names that are mistakes. */
static void
diff_other(struct diff *d, struct json_object *a, struct json_object *b)
{
	static const char *const known[] = {"issuers", "rules",
	    "permission_sets", "administrators", "endpoints"};
	struct json_object *const both[] = {a, b};

	for (int i = 0; i < 2; i++) {
		if (!json_object_is_type(both[i], json_type_object))
			continue;
		json_object_object_foreach(both[i], name, value)
		{
			struct json_object *v = member(both[1 - i], name);
			bool list = false;

			for (size_t k = 0; k < sizeof(known) / sizeof(known[0]);
			    k++)
				if (strcmp(name, known[k]) == 0 &&
				    json_object_is_type(value, json_type_array))
					list = true;
			if (list || equal(v, value) || (i == 0 && v != NULL))
				continue;
			row(d,
			    i == 0          ? '-'
				: v != NULL ? '~'
					    : '+',
			    "member", name);
			if (i == 1)
				words(d, " ", value);
			end(d);
		}
	}
}

unsigned
access_diff(struct json_object *old, struct json_object *new, struct buf *rows)
{
	struct diff d = {rows, 0};

	diff_other(&d, old, new);
	diff_named(&d, "issuer", member(old, "issuers"), member(new, "issuers"),
	    "jwks");
	diff_named(&d, "permission set", member(old, "permission_sets"),
	    member(new, "permission_sets"), "");
	diff_rules(&d, "rule", member(old, "rules"), member(new, "rules"));
	diff_rules(&d, "administrators' rule", member(old, "administrators"),
	    member(new, "administrators"));
	diff_named(&d, "endpoint", member(old, "endpoints"),
	    member(new, "endpoints"), "");
	return d.n;
}
