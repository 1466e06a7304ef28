#include "admin_body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "json.h"
#include "limit.h"

static int
find(const struct admin_action *a, const char *name, size_t n,
    struct admin_member *m)
{
	const char *at = a->members;

	while (admin_action_member(&at, m))
		if (m->len == n && memcmp(m->name, name, n) == 0)
			return 0;
	return -1;
}

/*
 * Tells whether v is free of U+0000 at every depth, names included. JSON can
 * write U+0000 but PostgreSQL's text can't hold it, so U+0000 is refused with a
 * sentence. json_scan has bounded the depth.
 */
static bool
without_nul(struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_string:
		return memchr(json_object_get_string(v), 0,
			   (size_t)json_object_get_string_len(v)) == NULL;
	case json_type_array:
		for (size_t i = 0; i < json_object_array_length(v); i++)
			if (!without_nul(json_object_array_get_idx(v, i)))
				return false;
		return true;
	case json_type_object: {
		json_object_object_foreach(v, name, value)
		{
			(void)name;
			if (!without_nul(value))
				return false;
		}
		return true;
	}
	default:
		return true;
	}
}

static bool
strings(struct json_object *v)
{
	for (size_t i = 0; i < json_object_array_length(v); i++)
		if (!json_object_is_type(
			json_object_array_get_idx(v, i), json_type_string))
			return false;
	return true;
}

/* Checks that each member has a limit's name and is null or within its
 * bounds. */
static int
check_limits(struct json_object *limits, struct err *e)
{
	const struct limit_info *t;
	int64_t v;
	int l;

	json_object_object_foreach(limits, name, value)
	{
		if ((l = limit_find(name, strlen(name))) == -1)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "limits has an unknown member");
		t = limit_info((enum limit)l);
		if (value != NULL &&
		    json_get_int(limits, name, (int64_t)t->min, (int64_t)t->max,
			&v, NULL) != 1)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "%s must be null or an integer from %llu to %llu",
			    t->name, (unsigned long long)t->min,
			    (unsigned long long)t->max);
	}
	return 0;
}

static int
check_one(const struct admin_member *m, struct json_object *o,
    struct json_object *v, struct err *e)
{
	static const struct {
		char type;
		enum json_type is;
		const char *a;
	} types[] = {{'s', json_type_string, "a string"},
	    {'i', json_type_int, "an integer"},
	    {'b', json_type_boolean, "true or false"},
	    {'a', json_type_array, "an array of strings"},
	    {'o', json_type_object, "an object"},
	    {'l', json_type_object, "an object"}};
	char name[64];
	int64_t n;
	size_t t = 0;

	snprintf(name, sizeof(name), "%.*s", (int)m->len, m->name);
	if (v == NULL) {
		if (!m->required)
			return 0;
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "member %s is null", name);
	}
	while (types[t].type != m->type)
		t++;
	if (!json_object_is_type(v, types[t].is) ||
	    (m->type == 'i' &&
		json_get_int(o, name, INT64_MIN + 1, INT64_MAX, &n, NULL) !=
		    1) ||
	    (m->type == 'a' && !strings(v)))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "member %s must be %s", name, types[t].a);
	if (!without_nul(v))
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "member %s holds U+0000", name);
	return m->type == 'l' ? check_limits(v, e) : 0;
}

int
admin_body_check(
    const struct admin_action *a, struct json_object *o, struct err *e)
{
	const char *at = a->members;
	struct admin_member m;
	char name[64];

	json_object_object_foreach(o, key, value)
	{
		if (find(a, key, strlen(key), &m) == -1)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    *a->members == '\0'
				? "this body has no members"
				: "the body has an unknown member");
		if (check_one(&m, o, value, e) == -1)
			return -1;
	}
	while (admin_action_member(&at, &m)) {
		snprintf(name, sizeof(name), "%.*s", (int)m.len, m.name);
		if (m.required && !json_object_object_get_ex(o, name, NULL))
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "member %s is missing", name);
	}
	return 0;
}

/* Makes a value of this type from text; NULL if text is no such value. */
static struct json_object *
typed(char type, const char *text)
{
	struct json_object *v = NULL;
	long long n;
	char *end;

	switch (type) {
	case 'i':
		errno = 0;
		n = strtoll(text, &end, 10);
		if (*text == '\0' || *end != '\0' || errno != 0 ||
		    strchr("-0123456789", *text) == NULL)
			return NULL;
		return json_object_new_int64(n);
	case 'b':
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			return NULL;
		return json_object_new_boolean(*text == 't');
	case 'o':
	case 'l':
		if (json_parse((const uint8_t *)text, strlen(text), &v, NULL) ==
		    -1)
			return NULL;
		return v;
	default:
		return json_object_new_string(text);
	}
}

int
admin_body_word(const struct admin_action *a, struct json_object *o,
    const char *word, struct err *e)
{
	const char *eq = strchr(word, '=');
	struct json_object *v, *list;
	struct admin_member m;
	char name[64];

	if (eq == NULL || find(a, word, (size_t)(eq - word), &m) == -1)
		return err_set(e, FAILURE_INVALID_PARAMS, "%s takes %s",
		    a->name, *a->members == '\0' ? "no values" : a->members);
	snprintf(name, sizeof(name), "%.*s", (int)m.len, m.name);
	if (m.type != 'a' && json_object_object_get_ex(o, name, NULL))
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "%s is given twice", name);
	if ((v = typed(m.type, eq + 1)) == NULL)
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "%s has no valid value", name);
	if (m.type == 'a') {
		if (!json_object_object_get_ex(o, name, &list)) {
			list = json_object_new_array();
			json_object_object_add(o, name, list);
		}
		json_object_array_add(list, v);
		return 0;
	}
	json_object_object_add(o, name, v);
	return 0;
}
