/*
 * json-c after the pre-scan, and getters that never convert.
 *
 * json_object_get_int on "7" gives 7, on 1.9 gives 1, on 10^30 the largest
 * integer: each would let a request mean two things. The getters here ask for
 * the type first and know where json-c saturates.
 */
#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <limits.h>

#include "json.h"
#include "bounds.h"

int
json_parse(
    const uint8_t *text, size_t n, struct json_object **o, struct err *err)
{
	struct json_tokener *tok;
	struct json_object *top;
	enum json_tokener_error e;

	if (json_scan(text, n, err) == -1)
		return -1;
	if (n > INT_MAX)
		return err_set(err, FAILURE_TOO_LARGE, "text too long");
	/* One more level is for a scalar in the innermost container, and
	 * another because the tokener counts the text itself as a level. */
	if ((tok = json_tokener_new_ex(JSON_DEPTH_MAX + 2)) == NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	/* The pre-scan is stricter than JSON_TOKENER_STRICT; that flag would
	 * only make newer json-c refuse integers beyond 64 bits, which are
	 * valid JSON and travel on as the bytes they are. */
	json_tokener_set_flags(tok, JSON_TOKENER_VALIDATE_UTF8);
	top = json_tokener_parse_ex(tok, (const char *)text, (int)n);
	e = json_tokener_get_error(tok);
	/* If the whole text is a number, json-c takes it for complete only
	 * after one more character. */
	if (e == json_tokener_continue) {
		top = json_tokener_parse_ex(tok, " ", 1);
		e = json_tokener_get_error(tok);
	}
	json_tokener_free(tok);
	if (e != json_tokener_success) {
		json_object_put(top);
		return err_set(err, FAILURE_PARSE, "json-c: %s",
		    json_tokener_error_desc(e));
	}
	*o = top;
	return 0;
}

/* Gets the member `name` with the wanted type: 1, 0 or -1 as in json.h. */
static int
get(struct json_object *o, const char *name, enum json_type type,
    const char *what, struct json_object **v, struct err *err)
{
	struct json_object *m;

	if (!json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, name, &m))
		return 0;
	if (!json_object_is_type(m, type))
		return err_set(
		    err, FAILURE_INVALID_PARAMS, "%s must be %s", name, what);
	*v = m;
	return 1;
}

int
json_get_str(struct json_object *o, const char *name, const char **s, size_t *n,
    struct err *err)
{
	struct json_object *v = NULL;
	int rc;

	rc = get(o, name, json_type_string, "a string", &v, err);
	if (rc == 1) {
		*s = json_object_get_string(v);
		*n = (size_t)json_object_get_string_len(v);
	}
	return rc;
}

int
json_get_int(struct json_object *o, const char *name, int64_t min, int64_t max,
    int64_t *value, struct err *err)
{
	struct json_object *v = NULL;
	int64_t i;
	int rc;

	if ((rc = get(o, name, json_type_int, "an integer", &v, err)) != 1)
		return rc;
	i = json_object_get_int64(v);
	/* json-c saturates, so a text beyond 64 bits looks like the limit
	 * itself. So INT64_MIN counts as out of range. */
	if (i < min || i > max || i == INT64_MIN ||
	    (i == INT64_MAX && json_object_get_uint64(v) != INT64_MAX))
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "%s must be from %lld to %lld", name, (long long)min,
		    (long long)max);
	*value = i;
	return 1;
}

int
json_get_bool(
    struct json_object *o, const char *name, bool *value, struct err *err)
{
	struct json_object *v = NULL;
	int rc;

	rc = get(o, name, json_type_boolean, "true or false", &v, err);
	if (rc == 1)
		*value = json_object_get_boolean(v);
	return rc;
}

int
json_get_obj(struct json_object *o, const char *name,
    struct json_object **value, struct err *err)
{
	return get(o, name, json_type_object, "an object", value, err);
}

int
json_get_arr(struct json_object *o, const char *name,
    struct json_object **value, struct err *err)
{
	return get(o, name, json_type_array, "an array", value, err);
}
