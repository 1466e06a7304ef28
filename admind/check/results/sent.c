/*
 * Security argument.
 *
 * The run heard a collector, which may be anybody. Whoever controls the run can
 * say that spans arrived which did not, and can make admind wait; admind bounds
 * the wait. Nothing else follows from these numbers. Administrators see the
 * text escaped.
 */
#include "access_read.h"
#include "keys.h"
#include "sent.h"
#include "telemetry_fields.h"
#include "tlv.h"

enum {
	WHY_MAX = 300,        /* bytes of the run's own words */
	STATUS_MAX = 599,     /* RFC 9110 section 15 */
	RETRY_MAX_S = 1 << 20 /* admind takes minutes at most */
};

static uint64_t
number(struct access_doc *a, const struct access_at *said, const char *name,
    uint64_t max)
{
	struct access_at at = access_get(a, said, name);

	return access_number(a, &at, max, 0);
}

/* Returns how many bytes of the text are kept: whole characters. */
static size_t
kept(const struct doc_node *text)
{
	size_t n = text->len < WHY_MAX ? text->len : WHY_MAX;

	while (n > 0 && n < text->len && (text->str[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static int
read_result(
    const struct doc *d, struct report *r, struct buf *fields, struct err *e)
{
	struct access_doc a = {.d = d, .r = r, .fields = fields};
	const struct access_at top = {.v = &d->node[0], .root = true};
	const struct doc_node *failed;
	struct access_at said, why;

	if (top.v->kind != DOC_OBJECT)
		return err_set(e, FAILURE_INTERNAL, "the run said no object");
	failed = doc_get(d, top.v, "isError");
	if (failed != NULL && failed->kind == DOC_TRUE)
		return keys_run_failed(d, e);
	said = access_get(&a, &top, "structuredContent");
	if (said.v == NULL || said.v->kind != DOC_OBJECT)
		return err_set(e, FAILURE_INTERNAL, "the run said no status");
	tlv_put_u64(fields, SENT_COUNT, number(&a, &said, "sent", 2));
	tlv_put_u64(
	    fields, SENT_STATUS, number(&a, &said, "status", STATUS_MAX));
	tlv_put_u64(fields, SENT_RETRY_S,
	    number(&a, &said, "retry_after", RETRY_MAX_S));
	tlv_put_u64(
	    fields, SENT_REJECTED, number(&a, &said, "rejected", UINT32_MAX));
	why = access_get(&a, &said, "why");
	if (why.v != NULL && why.v->kind == DOC_STRING && why.v->len > 0)
		tlv_put(fields, SENT_WHY, why.v->str, kept(why.v));
	return 0;
}

void
check_sent(struct check *c, struct ipc_bytes result)
{
	struct doc d = {0};
	struct report r;
	struct err e;
	int rc;

	check_begin(c, &r);
	rc = doc_parse(&d, result.p, result.n, &e);
	if (rc == 0)
		rc = read_result(&d, &r, &c->fields, &e);
	check_end(c, &r, rc, FAILURE_INTERNAL, "the run's answer", &e);
	doc_free(&d);
}
