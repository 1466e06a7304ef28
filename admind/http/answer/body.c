#include <json-c/json.h>

#include <string.h>

#include "body.h"
#include "guard.h"
#include "json.h"
#include "problem.h"

/* Checks the media type, too, although the text shows whether it is JSON: a
 * form of another site can send text/plain, but not application/json. */
int
body_object(struct call *c, struct json_object **out)
{
	const struct http1_request *r = httpd_request(c->req);
	const char *type;
	unsigned count;
	struct err e;

	type = http1_field(r, "content-type", &count);
	if (type == NULL || count != 1 || !guard_json_type(type)) {
		problem_status_send(c, 415, FAILURE_INVALID_REQUEST,
		    "the body must be application/json",
		    "Send Content-Type: application/json.");
		return -1;
	}
	if (json_parse(r->body, r->body_len, out, &e) < 0) {
		problem_send(c, e.failure, e.text,
		    "Send one JSON object as strict UTF-8 JSON.");
		return -1;
	}
	if (!json_object_is_type(*out, json_type_object)) {
		json_object_put(*out);
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "the body is not a JSON object", NULL);
		return -1;
	}
	return 0;
}

int
body_parse(struct call *c, const char *const *names, struct json_object **out)
{
	if (body_object(c, out) < 0)
		return -1;
	json_object_object_foreach(*out, key, value)
	{
		const char *const *n = names;

		(void)value;
		while (*n != NULL && strcmp(*n, key) != 0)
			n++;
		if (*n == NULL) {
			json_object_put(*out);
			problem_send(c, FAILURE_INVALID_PARAMS,
			    "the body has an unknown member", NULL);
			return -1;
		}
	}
	return 0;
}

/* IPC strings hold no NUL, which JSON can write as \u0000. */
int
body_str(struct json_object *o, const char *name, struct ipc_bytes *out,
    struct err *e)
{
	const char *s;
	size_t n;
	int rc;

	if ((rc = json_get_str(o, name, &s, &n, e)) < 0)
		return -1;
	if (rc == 0)
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "member %s is missing", name);
	if (n == 0 || memchr(s, 0, n) != NULL)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "member %s is empty or holds U+0000", name);
	*out = ipc_bytes(s, n);
	return 0;
}
