/*
 * Endpoints without I/O (endpoint.h): their records, the names of tools,
 * rights, and losses by another document.
 */
#include "endpoint.h"
#include "ipc_values.h"
#include "tlv.h"
#include "unit.h"

enum { BOTH = 1 << LISTENER_LOCAL | 1 << LISTENER_TUNNEL };

static void
u8(struct buf *b, uint8_t tag, unsigned value)
{
	uint8_t v = (uint8_t)value;

	tlv_put(b, tag, &v, 1);
}

static void
renamed(struct buf *b, const char *tool, const char *as, const char *text)
{
	struct buf r;

	buf_init(&r, IPC_FRAME_MAX);
	tlv_puts(&r, RENAME_TOOL, tool);
	tlv_puts(&r, RENAME_AS, as);
	if (text != NULL)
		tlv_puts(&r, RENAME_DESCRIPTION, text);
	tlv_put(b, ENDPOINT_RENAME, r.p, r.len);
	buf_free(&r);
}

static struct endpoint *
made(const struct buf *b)
{
	struct err err;
	struct endpoint *e = endpoint_new(ipc_bytes(b->p, b->len), &err);

	if (e == NULL)
		assert_int_equal(err.failure, FAILURE_INTERNAL);
	return e;
}

/* One with the patterns a__*, less a__c, and two renames. */
static void
home(struct buf *b)
{
	buf_init(b, IPC_BLOB_MAX);
	tlv_puts(b, ENDPOINT_NAME, "home");
	tlv_puts(b, ENDPOINT_ALLOW, "a__*");
	tlv_puts(b, ENDPOINT_ALLOW, "b");
	tlv_puts(b, ENDPOINT_DENY, "a__c");
	renamed(b, "a__search", "search", "Finds.");
	renamed(b, "gone", "b", NULL);
	u8(b, ENDPOINT_SEARCH, 0);
	u8(b, ENDPOINT_LISTENERS, BOTH);
}

static void
reading(void **state)
{
	struct endpoint *e;
	struct buf b;
	size_t n;

	(void)state;
	home(&b);
	e = made(&b);
	assert_non_null(e);
	assert_true(ipc_streq(e->name, "home"));
	assert_string_equal(e->allow, "a__*\nb");
	assert_string_equal(e->deny, "a__c");
	assert_int_equal(e->nrenames, 2);
	assert_int_equal(e->listeners, BOTH);
	assert_false(e->search);
	endpoint_unref(e);
	/* Each fault that admind-check could make is refused. */
	n = b.len;
#define REFUSED(put)            \
	do {                    \
		put;            \
		e = made(&b);   \
		assert_null(e); \
		b.len = n;      \
	} while (0)
	REFUSED(u8(&b, ENDPOINT_LISTENERS, 0));
	REFUSED(u8(&b, ENDPOINT_LISTENERS, 1 << 7));
	REFUSED(u8(&b, ENDPOINT_SEARCH, 2));
	REFUSED(tlv_puts(&b, ENDPOINT_ALLOW, ""));
	REFUSED(tlv_puts(&b, ENDPOINT_ALLOW, "x\n*"));
	REFUSED(tlv_puts(&b, ENDPOINT_ALLOW, PERMIT_AND));
	REFUSED(tlv_puts(&b, ENDPOINT_NAME, ""));
	REFUSED(renamed(&b, "a__search", "other", NULL));
	REFUSED(renamed(&b, "other", "search", NULL));
	REFUSED(renamed(&b, "", "x", NULL));
	REFUSED(renamed(&b, "x", "", NULL));
	REFUSED(tlv_puts(&b, 99, "x"));
	REFUSED(buf_putc(&b, 1));
#undef REFUSED
	b.len = 0;
	assert_null(made(&b));
	buf_free(&b);
}

/* A name at an endpoint means one tool or none. */
static void
names(void **state)
{
	const struct endpoint_rename *r;
	struct endpoint *e;
	struct buf b;

	(void)state;
	home(&b);
	e = made(&b);
	assert_true(ipc_streq(endpoint_own(e, ipc_str("search")), "a__search"));
	assert_int_equal(endpoint_own(e, ipc_str("a__search")).n, 0);
	assert_true(ipc_streq(endpoint_own(e, ipc_str("a__d")), "a__d"));
	/* `b` belongs to a tool that need not be there. */
	assert_true(ipc_streq(endpoint_own(e, ipc_str("b")), "gone"));
	assert_true(
	    ipc_streq(endpoint_shown(e, ipc_str("a__search"), &r), "search"));
	assert_true(ipc_streq(r->description, "Finds."));
	assert_true(ipc_streq(endpoint_shown(e, ipc_str("a__d"), &r), "a__d"));
	assert_null(r);
	assert_int_equal(endpoint_shown(e, ipc_str("b"), &r).n, 0);
	assert_true(ipc_streq(endpoint_own(NULL, ipc_str("b")), "b"));
	assert_true(ipc_streq(endpoint_shown(NULL, ipc_str("b"), &r), "b"));
	endpoint_unref(e);
	/* Two tools may change their names. */
	b.len = 0;
	tlv_puts(&b, ENDPOINT_NAME, "home");
	renamed(&b, "x", "y", NULL);
	renamed(&b, "y", "x", NULL);
	u8(&b, ENDPOINT_LISTENERS, BOTH);
	e = made(&b);
	assert_true(ipc_streq(endpoint_own(e, ipc_str("x")), "y"));
	assert_true(ipc_streq(endpoint_own(e, ipc_str("y")), "x"));
	assert_true(ipc_streq(endpoint_shown(e, ipc_str("x"), &r), "y"));
	assert_true(ipc_streq(endpoint_shown(e, ipc_str("y"), &r), "x"));
	endpoint_unref(e);
	buf_free(&b);
}

static bool
may(const struct permit *p, const char *name)
{
	return permit_name(p, name, ipc_bytes(NULL, 0), ipc_bytes(NULL, 0));
}

static void
free_permit(struct permit *p)
{
	free((char *)(uintptr_t)p->allow);
	free((char *)(uintptr_t)p->deny);
}

/* Every right is one of the token's, of the set's and of the endpoint's. */
static void
narrowing(void **state)
{
	const struct permit all = {15, "*", "", PERMIT_WHOLE};
	const struct permit some = {
	    PERMIT_CALL | PERMIT_READ, "a__d\nc__*", "a__e", PERMIT_WHOLE};
	const struct permit none = {15, "", "", PERMIT_WHOLE};
	struct endpoint *e;
	struct permit p;
	struct buf b;

	(void)state;
	home(&b);
	e = made(&b);
	assert_int_equal(endpoint_narrow(e, &all, 0, NULL, NULL, &p), 0);
	assert_int_equal(p.scopes, 15);
	assert_true(may(&p, "a__d") && may(&p, "b"));
	assert_false(may(&p, "a__c") || may(&p, "c__d"));
	assert_false(permit_everything(&p));
	free_permit(&p);
	assert_int_equal(endpoint_narrow(e, &some, 0, NULL, NULL, &p), 0);
	assert_int_equal(p.scopes, PERMIT_CALL | PERMIT_READ);
	assert_true(may(&p, "a__d"));
	assert_false(may(&p, "a__e") || may(&p, "c__d") || may(&p, "b"));
	free_permit(&p);
	assert_int_equal(endpoint_narrow(e, &none, 0, NULL, NULL, &p), 0);
	assert_false(may(&p, "a__d"));
	free_permit(&p);
	/* With a set. */
	assert_int_equal(
	    endpoint_narrow(e, &all, PERMIT_READ, "a__*", "a__d", &p), 0);
	assert_int_equal(p.scopes, PERMIT_READ);
	assert_true(may(&p, "a__e"));
	assert_false(may(&p, "a__d") || may(&p, "a__c") || may(&p, "b"));
	free_permit(&p);
	assert_int_equal(endpoint_narrow(e, &all, 15, "", "", &p), 0);
	assert_false(may(&p, "a__e"));
	free_permit(&p);
	endpoint_unref(e);
	buf_free(&b);
}

/* A new document takes something, or nothing. */
static void
losses(void **state)
{
	struct endpoint *was, *is;
	struct buf b;

	(void)state;
	home(&b);
	was = made(&b);
#define NOW(change, covers)                                         \
	do {                                                        \
		buf_free(&b);                                       \
		home(&b);                                           \
		change;                                             \
		is = made(&b);                                      \
		assert_non_null(is);                                \
		assert_int_equal(endpoint_covers(is, was), covers); \
		endpoint_unref(is);                                 \
	} while (0)
	NOW((void)0, true);
	NOW(tlv_puts(&b, ENDPOINT_ALLOW, "d"), true);
	NOW(tlv_puts(&b, ENDPOINT_INSTRUCTIONS, "Other."), true);
	NOW(tlv_puts(&b, ENDPOINT_DENY, "d"), false);
	NOW(renamed(&b, "d", "e", NULL), false);
	NOW(u8(&b, ENDPOINT_SEARCH, 1), false);
	NOW(tlv_puts(&b, ENDPOINT_SET, "use"), false);
	NOW(u8(&b, ENDPOINT_LISTENERS, 1 << LISTENER_LOCAL), false);
#undef NOW
	buf_clear(&b);
	tlv_puts(&b, ENDPOINT_NAME, "home");
	u8(&b, ENDPOINT_LISTENERS, BOTH);
	is = made(&b);
	assert_false(endpoint_covers(is, was));
	endpoint_unref(is);
	endpoint_unref(was);
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reading),
	    cmocka_unit_test(names), cmocka_unit_test(narrowing),
	    cmocka_unit_test(losses)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
