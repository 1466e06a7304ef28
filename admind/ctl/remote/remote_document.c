#include <string.h>

#include <json-c/json.h>

#include "remote_document.h"

/* Lists of the document. */
#define ISSUERS "issuers"
#define RULES   "rules"
#define SETS    "permission_sets"

static struct json_object *
list(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	return json_object_is_type(o, json_type_object) &&
		json_object_object_get_ex(o, name, &v) &&
		json_object_is_type(v, json_type_array)
	    ? v
	    : NULL;
}

static size_t
length(struct json_object *v)
{
	return v != NULL ? json_object_array_length(v) : 0;
}

const char *
remote_document_text(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_is_type(o, json_type_object) &&
		json_object_object_get_ex(o, name, &v) &&
		json_object_is_type(v, json_type_string)
	    ? json_object_get_string(v)
	    : "";
}

static bool
is(struct json_object *o, const char *name, const char *value)
{
	return strcmp(remote_document_text(o, name), value) == 0;
}

/* Returns the item of a list whose member has this text, or NULL. */
static struct json_object *
find(struct json_object *items, const char *name, const char *value)
{
	for (size_t i = 0; i < length(items); i++)
		if (is(json_object_array_get_idx(items, i), name, value))
			return json_object_array_get_idx(items, i);
	return NULL;
}

struct json_object *
remote_document_issuer(struct json_object *document, const char *name)
{
	return find(list(document, ISSUERS), "name", name);
}

enum remote_kind
remote_document_kind(struct json_object *issuer)
{
	struct json_object *v = NULL;

	if (is(issuer, "header", "cf-access-jwt-assertion"))
		return REMOTE_ACCESS;
	if (json_object_is_type(issuer, json_type_object) &&
	    json_object_object_get_ex(issuer, "bound", &v) &&
	    json_object_get_boolean(v))
		return REMOTE_WORKER;
	return REMOTE_OIDC;
}

/* ---- building; without memory these return -1 ---- */

static int
put(struct json_object *o, const char *name, struct json_object *v)
{
	if (v != NULL && json_object_object_add(o, name, v) == 0)
		return 0;
	json_object_put(v);
	return -1;
}

static int
put_text(struct json_object *o, const char *name, const char *value)
{
	return value == NULL ? 0 : put(o, name, json_object_new_string(value));
}

static int
append(struct json_object *to, struct json_object *v)
{
	if (v != NULL && json_object_array_add(to, v) == 0)
		return 0;
	json_object_put(v);
	return -1;
}

int
remote_document_words(struct json_object *to, const char *words)
{
	size_t n;

	for (; *words != '\0'; words += n + (words[n] == ',')) {
		const char *p = words;
		size_t len;

		n = len = strcspn(words, ",");
		for (; len > 0 && *p == ' '; p++)
			len--;
		while (len > 0 && p[len - 1] == ' ')
			len--;
		if (len > 0 &&
		    append(to, json_object_new_string_len(p, (int)len)) == -1)
			return -1;
	}
	return 0;
}

static int
put_words(struct json_object *o, const char *name, const char *words)
{
	struct json_object *v = json_object_new_array();

	if (words == NULL) {
		json_object_put(v);
		return 0;
	}
	if (v == NULL || remote_document_words(v, words) == -1) {
		json_object_put(v);
		return -1;
	}
	return put(o, name, v);
}

static struct json_object *
new_issuer(const struct remote_wish *w)
{
	struct json_object *o = json_object_new_object();
	bool ok = o != NULL && put_text(o, "name", w->name) == 0 &&
	    put_text(o, "issuer", w->issuer) == 0 &&
	    put_words(o, "audiences", w->audience) == 0;

	if (ok && w->kind == REMOTE_ACCESS)
		ok = put_text(o, "header", "cf-access-jwt-assertion") == 0 &&
		    put_words(o, "types", "jwt") == 0 &&
		    put_text(o, "email", "trusted") == 0;
	/* The Worker signs each request for itself, with the rights that the
	 * person consented to. */
	if (ok && w->kind == REMOTE_WORKER)
		ok = put_words(o, "algorithms", "EdDSA") == 0 &&
		    put_text(o, "scopes", "token") == 0 &&
		    put(o, "bound", json_object_new_boolean(true)) == 0;
	if (ok && w->jwks != NULL)
		ok = put(o, "jwks", json_object_get(w->jwks)) == 0;
	else if (ok && w->discovery)
		ok = put(o, "discovery", json_object_new_boolean(true)) == 0;
	else if (ok)
		ok = put_text(o, "jwks_url", w->jwks_url) == 0;
	ok = ok && put_words(o, "key_hosts", w->key_hosts) == 0;
	if (ok)
		return o;
	json_object_put(o);
	return NULL;
}

static struct json_object *
new_rule(const struct remote_wish *w, const char *claim, const char *values)
{
	struct json_object *o = json_object_new_object();

	if (o != NULL && put_text(o, "issuer", w->name) == 0 &&
	    put_text(o, "claim", claim) == 0 &&
	    put_words(o, "values", values) == 0 &&
	    put_text(o, "set", w->set != NULL ? w->set : w->name) == 0)
		return o;
	json_object_put(o);
	return NULL;
}

static struct json_object *
new_set(const struct remote_wish *w)
{
	struct json_object *o = json_object_new_object();

	if (o != NULL && put_text(o, "name", w->name) == 0 &&
	    put_words(o, "scopes", w->scopes) == 0 &&
	    put_words(o, "allow", w->allow) == 0)
		return o;
	json_object_put(o);
	return NULL;
}

/* Returns the list of this name, and makes it if it is missing. */
static struct json_object *
own_list(struct json_object *document, const char *name)
{
	struct json_object *v = list(document, name);

	if (v == NULL && put(document, name, json_object_new_array()) == 0)
		v = list(document, name);
	return v;
}

static int
copy_of(struct json_object *now, struct json_object **out, struct err *err)
{
	*out = NULL;
	if (now == NULL)
		*out = json_object_new_object();
	else if (json_object_deep_copy(now, out, NULL) == -1)
		*out = NULL;
	return *out != NULL ? 0
			    : err_set(err, FAILURE_INTERNAL, "out of memory");
}

static int
fits(struct json_object *now, const struct remote_wish *w, struct err *err)
{
	const char *resource = remote_document_text(now, "resource");
	struct json_object *sets = list(now, SETS);

	if (remote_document_issuer(now, w->name) != NULL)
		return err_set(err, FAILURE_CONFLICT,
		    "the access document has an issuer %s already; take "
		    "another name, or remove that one first",
		    w->name);
	if (find(list(now, ISSUERS), "issuer", w->issuer) != NULL)
		return err_set(err, FAILURE_CONFLICT,
		    "the access document has this issuer already, under "
		    "another name (mcpboxctl access show)");
	if (*resource != '\0' && strcmp(resource, w->resource) != 0)
		return err_set(err, FAILURE_CONFLICT,
		    "the access document's resource is %s, and all issuers "
		    "share it; use that one",
		    resource);
	if (w->set != NULL && find(sets, "name", w->set) == NULL)
		return err_set(err, FAILURE_CONFLICT,
		    "there is no permission set %s; without --set one is made",
		    w->set);
	if (w->set == NULL && find(sets, "name", w->name) != NULL)
		return err_set(err, FAILURE_CONFLICT,
		    "there is a permission set %s already; --set %s uses it",
		    w->name, w->name);
	return 0;
}

int
remote_document_add(struct json_object *now, const struct remote_wish *w,
    struct json_object **out, struct err *err)
{
	struct json_object *d = NULL, *issuers, *rules, *sets;

	if (fits(now, w, err) == -1 || copy_of(now, &d, err) == -1)
		return -1;
	if (!json_object_object_get_ex(d, "resource", NULL) &&
	    put_text(d, "resource", w->resource) == -1)
		goto memory;
	issuers = own_list(d, ISSUERS);
	rules = own_list(d, RULES);
	sets = own_list(d, SETS);
	if (issuers == NULL || rules == NULL || sets == NULL ||
	    append(issuers, new_issuer(w)) == -1 ||
	    (w->subs != NULL &&
		append(rules, new_rule(w, "sub", w->subs)) == -1) ||
	    (w->emails != NULL &&
		append(rules, new_rule(w, "email", w->emails)) == -1) ||
	    (w->set == NULL && append(sets, new_set(w)) == -1))
		goto memory;
	*out = d;
	return 0;
memory:
	json_object_put(d);
	return err_set(err, FAILURE_INTERNAL, "out of memory");
}

/* Tells in *stays that a set is left, once a set. */
static void
left(const char *set, const char *why, struct buf *stays)
{
	buf_puts(stays, "permission set ");
	show_text(stays, set, strlen(set), SHOW_CODE);
	buf_puts(stays, why);
}

/* Drops the items of a list whose member has this text. */
static void
drop(struct json_object *items, const char *name, const char *value)
{
	for (size_t i = length(items); i > 0; i--)
		if (is(json_object_array_get_idx(items, i - 1), name, value))
			json_object_array_del_idx(items, i - 1, 1);
}

int
remote_document_remove(struct json_object *now, const char *name,
    const char *tokens, struct json_object **out, struct buf *stays,
    struct err *err)
{
	struct json_object *d = NULL, *was = list(now, RULES), *set;
	bool used, held;

	if (remote_document_issuer(now, name) == NULL)
		return err_set(err, FAILURE_NOT_FOUND,
		    "the access document has no issuer %s", name);
	if (copy_of(now, &d, err) == -1)
		return -1;
	drop(list(d, ISSUERS), "name", name);
	drop(list(d, RULES), "issuer", name);
	used = find(list(d, RULES), "set", name) != NULL;
	held = !used && *tokens != '\0' &&
	    find(list(d, SETS), "name", name) != NULL;
	if (held) {
		left(name, ": API tokens have it: ", stays);
		buf_puts(stays, tokens);
		buf_putc(stays, '\n');
	} else if (!used) {
		drop(list(d, SETS), "name", name);
	}
	for (size_t i = 0; i < length(was); i++) {
		struct json_object *rule = json_object_array_get_idx(was, i);
		const char *of = remote_document_text(rule, "set");

		set = held && strcmp(of, name) == 0
		    ? NULL
		    : find(list(d, SETS), "name", of);
		/* The first rule of the remote that names the set tells. */
		for (size_t k = 0; k < i; k++)
			if (is(json_object_array_get_idx(was, k), "issuer",
				name) &&
			    is(json_object_array_get_idx(was, k), "set", of))
				set = NULL;
		if (set == NULL || !is(rule, "issuer", name))
			continue;
		left(of,
		    find(list(d, RULES), "set", of) != NULL
			? ": other rules name it\n"
			: ": it was there before; no rule names it now\n",
		    stays);
	}
	if (length(list(d, ISSUERS)) == 0 && length(list(d, RULES)) == 0 &&
	    length(list(d, SETS)) == 0) {
		json_object_put(d);
		d = json_object_new_object();
	}
	*out = d;
	return d != NULL ? 0 : err_set(err, FAILURE_INTERNAL, "out of memory");
}
