/*
 * Checks the specification of a declared REST call (kind http) and derives the
 * tool's other properties from it. Anybody may have written the specification:
 * a model, or the author of a foreign OpenAPI document. So everything that a
 * reviewer relies on is derived from the specification, and the author can't
 * state it differently: the arguments, the hosts that the call reaches, the
 * secrets that it gets, and that a call that deletes or replaces is confirmed.
 * All faults are reported together.
 */
#include <stdlib.h>
#include <string.h>

#include "http_spec.h"
#include "management_tools.h"
#include "num.h"
#include "specs.h"
#include "tlv.h"

enum {
	TIMEOUT_MIN_MS = 100,
	TIMEOUT_MAX_MS = 600 * 1000, /* as a version's timeout_ms */
	ANSWER_MAX = 64 * 1024 * 1024,
	REDIRECTS_MAX = 10,
	POINTER_MAX = 1024,
	STATUS_MAX = 16,  /* status codes listed as success */
	HEADERS_MAX = 16, /* headers of the answer that are shown */
};

static const struct {
	const char *name;
	bool bodiless, destroys;
} methods[] = {{"GET", true, false}, {"HEAD", true, false},
    {"OPTIONS", true, false}, {"POST", false, false}, {"PUT", false, true},
    {"PATCH", false, true}, {"DELETE", false, true}};

static const char *const members[] = {"method", "url", "parameters", "query",
    "headers", "body", "response", "redirects", "redirect_hosts", "timeout_ms",
    "max_bytes"};

static struct path
path_to(const struct path *up, const char *name)
{
	return (struct path){up, (const uint8_t *)name, strlen(name), 0};
}

/* Reads a member that must be a number within bounds, or absent. Returns the
 * number, or 0 if it is absent. */
static uint64_t
number(const struct http *h, const struct doc_node *top, const char *name,
    uint64_t min, uint64_t max)
{
	const struct doc_node *v = doc_get(h->d, top, name);
	struct path at = path_to(NULL, name);
	struct num num;
	uint64_t u = 0;

	if (v == NULL)
		return 0;
	num = num_read(v->raw, v->kind == DOC_NUMBER ? v->rawlen : 0);
	if (v->kind != DOC_NUMBER || !num_u64(&num, max, &u) || u < min)
		report_add(h->r, &at, "must be a number from %llu to %llu",
		    (unsigned long long)min, (unsigned long long)max);
	return u;
}

static bool
is_pointer(const struct doc_node *v)
{
	if (v->kind != DOC_STRING || v->len > POINTER_MAX ||
	    (v->len > 0 && v->str[0] != '/'))
		return false;
	for (size_t i = 0; i < v->len; i++)
		if (v->str[i] == '~' &&
		    (i + 1 == v->len ||
			(v->str[i + 1] != '0' && v->str[i + 1] != '1')))
			return false;
	return true;
}

static void
check_success(
    const struct http *h, const struct path *up, const struct doc_node *v)
{
	struct path at = path_to(up, "success");
	struct num num;
	uint64_t u;
	bool ok =
	    v->kind == DOC_ARRAY && v->count > 0 && v->count <= STATUS_MAX;

	for (uint32_t i = 0; ok && i < v->count; i++) {
		const struct doc_node *kid = doc_kid(h->d, v, i);

		num = num_read(
		    kid->raw, kid->kind == DOC_NUMBER ? kid->rawlen : 0);
		ok = kid->kind == DOC_NUMBER && num_u64(&num, 599, &u) &&
		    u >= 200;
	}
	if (!ok)
		report_add(h->r, &at,
		    "must be an array of 1 to %d status codes, 200 to 599",
		    STATUS_MAX);
}

static void
check_shown(
    const struct http *h, const struct path *up, const struct doc_node *v)
{
	struct path at = path_to(up, "headers");
	bool ok = v->kind == DOC_ARRAY && v->count <= HEADERS_MAX;

	for (uint32_t i = 0; ok && i < v->count; i++) {
		const struct doc_node *kid = doc_kid(h->d, v, i);

		ok = kid->kind == DOC_STRING && http_token(kid->str, kid->len);
	}
	if (!ok)
		report_add(h->r, &at,
		    "must be an array of at most %d names of headers",
		    HEADERS_MAX);
}

static void
check_response(const struct http *h, const struct doc_node *o)
{
	struct path top = path_to(NULL, "response"), at;
	const struct doc_node *v;

	if (o == NULL)
		return;
	if (o->kind != DOC_OBJECT) {
		report_add(h->r, &top, "must be an object");
		return;
	}
	for (uint32_t i = 0; i < o->count; i++) {
		v = doc_kid(h->d, o, i);
		if (v != doc_get(h->d, o, "as") &&
		    v != doc_get(h->d, o, "pointer") &&
		    v != doc_get(h->d, o, "success") &&
		    v != doc_get(h->d, o, "headers"))
			report_add(h->r, &top,
			    "has members as, pointer, success and headers "
			    "only");
	}
	at = path_to(&top, "as");
	if ((v = doc_get(h->d, o, "as")) != NULL && !doc_is(v, "auto") &&
	    !doc_is(v, "json") && !doc_is(v, "text") && !doc_is(v, "status"))
		report_add(h->r, &at, "must be auto, json, text or status");
	if (v != NULL && doc_is(v, "text") &&
	    doc_get(h->d, o, "pointer") != NULL)
		report_add(h->r, &at, "text has no pointer");
	at = path_to(&top, "pointer");
	if ((v = doc_get(h->d, o, "pointer")) != NULL && !is_pointer(v))
		report_add(h->r, &at,
		    "must be a JSON Pointer: empty, or /name/0 (RFC 6901)");
	if ((v = doc_get(h->d, o, "success")) != NULL)
		check_success(h, &top, v);
	if ((v = doc_get(h->d, o, "headers")) != NULL)
		check_shown(h, &top, v);
}

/* Checks the hosts of redirect_hosts: redirects may lead to these hosts, too,
 * not only to the URL's own. Adds them to h->require, the hosts of the
 * version. */
static void
check_redirects(struct http *h, const struct doc_node *top)
{
	const struct doc_node *v = doc_get(h->d, top, "redirect_hosts");
	struct path at = path_to(NULL, "redirect_hosts");
	uint64_t n = number(h, top, "redirects", 0, REDIRECTS_MAX);

	if (v == NULL)
		return;
	if (v->kind != DOC_ARRAY || v->count > HTTP_REDIRECT_HOSTS_MAX) {
		report_add(h->r, &at, "must be an array of at most %d hosts",
		    HTTP_REDIRECT_HOSTS_MAX);
		return;
	}
	if (n == 0)
		report_add(h->r, &at, "is of no use: `redirects` is 0");
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *kid = doc_kid(h->d, v, i);
		struct path in = {&at, NULL, 0, i};

		if (kid->kind != DOC_STRING)
			report_add(h->r, &in, "must be a string");
		else if (http_host(h->r, &in, kid->str, kid->len, 0,
			     h->require[h->nrequire]))
			h->nrequire++;
	}
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Puts a set in the form that a version has: sorted bytewise, without
 * duplicates. */
static void
put_set(struct check *c, uint8_t tag, char *set, size_t n, size_t size)
{
	qsort(set, n, size, by_text);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || strcmp(set + i * size, set + (i - 1) * size) != 0)
			tlv_puts(&c->fields, tag, set + i * size);
}

/* Puts the derived fields. Called when no fault was found. */
static int
conclude(struct check *c, struct http *h, bool confirm, struct err *e)
{
	struct schema s;
	struct buf b;
	int rc;

	buf_init(&b, IPC_BLOB_MAX);
	http_schema(h, &b);
	if (b.failed) {
		buf_free(&b);
		return err_set(e, FAILURE_TOO_LARGE,
		    "the input schema that follows is too large");
	}
	h->r->prefix = "/input_schema";
	rc = schema_compile(&s, SCHEMA_INPUT, b.p, b.len, h->r, e);
	schema_free(&s);
	tlv_put_u64(&c->fields, INSPECT_OK, 1);
	tlv_put(&c->fields, INSPECT_INPUT_SCHEMA, b.p, b.len);
	put_set(c, INSPECT_SECRET, h->secret[0], h->nsecret, HTTP_SECRET_NAME);
	put_set(
	    c, INSPECT_REQUIRE, h->require[0], h->nrequire, HTTP_REQUIRE_MAX);
	if (confirm)
		tlv_put_u64(&c->fields, INSPECT_CONFIRM, 1);
	buf_free(&b);
	return rc;
}

static int
check_spec(struct check *c, struct http *h, unsigned confirm, struct err *e)
{
	const size_t nmethods = sizeof(methods) / sizeof(methods[0]);
	const struct doc_node *top = &h->d->node[0], *v;
	struct path at;
	size_t m = 0;

	if (top->kind != DOC_OBJECT) {
		report_add(h->r, NULL, "must be an object");
		return 0;
	}
	for (uint32_t i = 0; i < top->count; i++) {
		size_t k = 0;

		v = doc_kid(h->d, top, i);
		while (k < sizeof(members) / sizeof(members[0]) &&
		    v != doc_get(h->d, top, members[k]))
			k++;
		at = (struct path){NULL, v->name, v->namelen, 0};
		if (k == sizeof(members) / sizeof(members[0]))
			report_add(h->r, &at, "is unknown");
	}
	v = doc_get(h->d, top, "method");
	while (m < nmethods && (v == NULL || !doc_is(v, methods[m].name)))
		m++;
	at = path_to(NULL, "method");
	if (m == nmethods)
		report_add(h->r, &at,
		    "must be GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE");
	else if (methods[m].destroys && confirm == 1)
		report_add(h->r, &at,
		    "%s replaces or deletes: each call is confirmed, leave "
		    "`confirm` out or make it true",
		    methods[m].name);
	if (http_parameters(h, top, m < nmethods && methods[m].bodiless, e) ==
	    -1)
		return -1;
	http_url(h, doc_get(h->d, top, "url"));
	for (unsigned i = 0; i < h->nparameter; i++)
		if (h->parameter[i].in == HTTP_PATH && !h->parameter[i].used) {
			struct path up = path_to(NULL, "parameters");
			struct path in = {&up, h->parameter[i].src->name,
			    h->parameter[i].src->namelen, 0};

			report_add(h->r, &in, "is not in the URL");
		}
	check_response(h, doc_get(h->d, top, "response"));
	check_redirects(h, top);
	(void)number(h, top, "timeout_ms", TIMEOUT_MIN_MS, TIMEOUT_MAX_MS);
	(void)number(h, top, "max_bytes", 1, ANSWER_MAX);
	if (h->r->n > 0)
		return 0;
	return conclude(
	    c, h, (m < nmethods && methods[m].destroys) || confirm == 2, e);
}

void
check_http(struct check *c, unsigned confirm, struct ipc_bytes spec)
{
	struct http *h = calloc(1, sizeof(*h));
	struct doc d = {0};
	struct report r;
	struct err e;
	int rc;

	check_begin(c, &r);
	if (h == NULL)
		rc = err_set(&e, FAILURE_BUSY, "out of memory");
	else
		rc = doc_parse(&d, spec.p, spec.n, &e);
	if (rc == 0 && h != NULL) {
		h->r = &r;
		h->d = &d;
		r.prefix = "/spec";
		rc = check_spec(c, h, confirm, &e);
		r.prefix = NULL;
	}
	check_end(c, &r, rc, FAILURE_INVALID_ARGUMENTS,
	    "the specification cannot be used", &e);
	doc_free(&d);
	free(h);
}
