/*
 * Reads a runner's inspection of a tool's code. The inspection comes from a
 * process that may have run that code, so it is trusted no more than the tool's
 * author. All its claims are shown to the reviewer, and its schema must be one
 * that an author could have given.
 */
#include <stdlib.h>
#include <string.h>

#include "forms.h"
#include "ids.h"
#include "management_tools.h"
#include "num.h"
#include "schema.h"
#include "tlv.h"

enum {
	ERROR_TEXT_MAX = 4096, /* bytes of an error message */
	CONTEXT_LINES_MAX = 20,
	CONTEXT_LINE_MAX = 500, /* bytes */
};

/* Puts a string as a field, cut after `points` characters or `bytes` bytes.
 * U+0000 becomes a space, since neither C nor PostgreSQL takes it in text. */
static void
put_text(struct check *c, uint8_t tag, const uint8_t *s, size_t n,
    size_t points, size_t bytes)
{
	size_t len = 0;
	uint8_t *copy;

	while (len < n && (points > 0 || (s[len] & 0xc0) == 0x80)) {
		points -= (s[len] & 0xc0) != 0x80;
		len++;
	}
	if (len > bytes) {
		len = bytes;
		while (len > 0 && (s[len] & 0xc0) == 0x80)
			len--;
	}
	if ((copy = malloc(len + 1)) == NULL) {
		c->fields.failed = true;
		return;
	}
	for (size_t i = 0; i < len; i++)
		copy[i] = s[i] != 0 ? s[i] : ' ';
	tlv_put(&c->fields, tag, copy, len);
	free(copy);
}

static void
put_string(struct check *c, struct report *r, const struct doc *d,
    const struct doc_node *o, const char *name, uint8_t tag)
{
	const struct doc_node *v = doc_get(d, o, name);

	if (v == NULL || v->kind != DOC_STRING)
		report_add(r, NULL, "%s must be a string", name);
	else
		put_text(c, tag, v->str, v->len, SIZE_MAX, ERROR_TEXT_MAX);
}

/* Puts a line or column; absent and null mean unknown. */
static void
put_place(struct check *c, struct report *r, const struct doc *d,
    const struct doc_node *o, const char *name, uint8_t tag)
{
	const struct doc_node *v = doc_get(d, o, name);
	struct num num;
	uint64_t u;

	if (v == NULL || v->kind == DOC_NULL)
		return;
	num = num_read(v->raw, v->kind == DOC_NUMBER ? v->rawlen : 0);
	if (v->kind != DOC_NUMBER || !num_u64(&num, UINT32_MAX, &u))
		report_add(r, NULL, "%s must be a number or null", name);
	else
		tlv_put_u64(&c->fields, tag, u);
}

static void
broken_code(struct check *c, struct report *r, const struct doc *d)
{
	const struct doc_node *o = doc_get(d, &d->node[0], "error"), *list;

	if (o == NULL || o->kind != DOC_OBJECT) {
		report_add(r, NULL, "error must be an object");
		return;
	}
	put_string(c, r, d, o, "type", INSPECT_ERROR_TYPE);
	put_string(c, r, d, o, "message", INSPECT_ERROR_MESSAGE);
	put_place(c, r, d, o, "line", INSPECT_ERROR_LINE);
	put_place(c, r, d, o, "column", INSPECT_ERROR_COLUMN);
	list = doc_get(d, o, "code_context");
	if (list == NULL || list->kind == DOC_NULL)
		return;
	if (list->kind != DOC_ARRAY) {
		report_add(r, NULL, "code_context must be an array");
		return;
	}
	for (uint32_t i = 0; i < list->count && i < CONTEXT_LINES_MAX; i++) {
		const struct doc_node *v = doc_kid(d, list, i);

		if (v->kind != DOC_STRING)
			report_add(r, NULL, "code_context must hold strings");
		else
			put_text(c, INSPECT_ERROR_CONTEXT, v->str, v->len,
			    SIZE_MAX, CONTEXT_LINE_MAX);
	}
}

/* Puts a docstring. It may become the tool's description, so it has the same
 * limit, and white space at its ends is dropped. */
static void
put_doc(struct check *c, const struct doc_node *v)
{
	const uint8_t *s = v->str;
	size_t n = v->len;

	while (n > 0 && strchr(" \t\r\n", s[0]) != NULL && s[0] != 0) {
		s++;
		n--;
	}
	while (n > 0 && strchr(" \t\r\n", s[n - 1]) != NULL && s[n - 1] != 0)
		n--;
	if (n > 0)
		put_text(c, INSPECT_DOC, s, n, DESCRIPTION_MAX, SIZE_MAX);
}

/* Puts the digest of the executable's bytes, as the runner found it. The digest
 * becomes part of the approved content, so only one form is accepted. */
static void
put_digest(struct check *c, struct report *r, const struct doc_node *v)
{
	uint8_t raw[32];

	if (v->kind != DOC_STRING || v->len != 2 * sizeof(raw) ||
	    hex_decode((const char *)v->str, v->len, raw) == -1)
		report_add(r, NULL,
		    "executable_digest must be 64 lower-case hex digits");
	else
		tlv_put(&c->fields, INSPECT_EXECUTABLE_DIGEST, v->str, v->len);
}

static int
good_code(struct check *c, struct report *r, const struct doc *d, struct err *e)
{
	const struct doc_node *top = &d->node[0], *v;
	struct schema s;
	int rc = 0;

	v = doc_get(d, top, "input_schema");
	if (v == NULL || v->kind != DOC_OBJECT) {
		report_add(r, NULL, "input_schema must be an object");
		return 0;
	}
	r->prefix = "/input_schema";
	rc = schema_compile(&s, SCHEMA_INPUT, v->raw, v->rawlen, r, e);
	schema_free(&s);
	r->prefix = NULL;
	tlv_put(&c->fields, INSPECT_INPUT_SCHEMA, v->raw, v->rawlen);

	v = doc_get(d, top, "doc");
	if (v != NULL && v->kind == DOC_STRING)
		put_doc(c, v);
	else if (v != NULL && v->kind != DOC_NULL)
		report_add(r, NULL, "doc must be a string or null");
	/* Only a command has an executable. A command is not async, so its
	 * inspection has no is_async. */
	v = doc_get(d, top, "executable_digest");
	if (v != NULL && v->kind != DOC_NULL) {
		put_digest(c, r, v);
		return rc;
	}
	v = doc_get(d, top, "is_async");
	if (v == NULL || (v->kind != DOC_TRUE && v->kind != DOC_FALSE))
		report_add(r, NULL, "is_async must be true or false");
	else
		tlv_put_u64(&c->fields, INSPECT_IS_ASYNC, v->kind == DOC_TRUE);
	return rc;
}

void
check_inspection(struct check *c, struct ipc_bytes json)
{
	const struct doc_node *ok;
	struct report r;
	struct doc d;
	struct err e;
	int rc;

	check_begin(c, &r);
	if ((rc = doc_parse(&d, json.p, json.n, &e)) == 0) {
		ok = doc_get(&d, &d.node[0], "ok");
		if (ok == NULL ||
		    (ok->kind != DOC_TRUE && ok->kind != DOC_FALSE)) {
			report_add(&r, NULL, "ok must be true or false");
		} else {
			tlv_put_u64(
			    &c->fields, INSPECT_OK, ok->kind == DOC_TRUE);
			if (ok->kind == DOC_TRUE)
				rc = good_code(c, &r, &d, &e);
			else
				broken_code(c, &r, &d);
		}
	}
	if (rc == -1 && e.failure == FAILURE_PARSE)
		e.failure = FAILURE_BAD_CODE;
	check_end(c, &r, rc, FAILURE_BAD_CODE,
	    "the code's inspection gave no usable answer", &e);
	doc_free(&d);
}
