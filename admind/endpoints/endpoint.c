/* See endpoint.h. */
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "endpoint.h"
#include "ipc_values.h"
#include "tlv.h"

static const unsigned both = 1u << LISTENER_LOCAL | 1u << LISTENER_TUNNEL;

static bool
same(struct ipc_bytes a, struct ipc_bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

struct endpoint *
endpoint_ref(struct endpoint *e)
{
	if (e != NULL)
		e->refs++;
	return e;
}

void
endpoint_unref(struct endpoint *e)
{
	if (e == NULL || --e->refs > 0)
		return;
	free(e->allow);
	free(e->deny);
	buf_free(&e->record);
	free(e);
}

/* ---- reading ---- */

/* Appends a line to a list. 0, or -1 if it has no bytes or a byte that would
 * make it several lines or groups (permit.h). */
static int
put_line(struct buf *b, const struct tlv *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->p[i] < ' ')
			return -1;
	if (t->n == 0)
		return -1;
	if (b->len > 0)
		buf_putc(b, '\n');
	buf_put(b, t->p, t->n);
	return 0;
}

static int
read_rename(struct endpoint *e, const struct tlv *field)
{
	struct endpoint_rename *r = &e->rename[e->nrenames];
	struct tlv_reader in;
	struct tlv t;
	int got;

	if (e->nrenames == ENDPOINT_RENAMES_MAX)
		return -1;
	tlv_open(&in, field->p, field->n);
	while ((got = tlv_next(&in, &t)) == 1) {
		struct ipc_bytes b = ipc_bytes(t.p, t.n);

		if (t.tag == RENAME_TOOL)
			r->tool = b;
		else if (t.tag == RENAME_AS)
			r->as = b;
		else if (t.tag == RENAME_DESCRIPTION)
			r->description = b;
		else
			return -1;
	}
	if (got == -1 || r->tool.n == 0 || r->as.n == 0 ||
	    r->tool.n > NAME_EXPOSED_MAX || r->as.n > NAME_EXPOSED_MAX ||
	    r->description.n > ENDPOINT_DESCRIPTION_MAX)
		return -1;
	for (unsigned i = 0; i < e->nrenames; i++)
		if (same(e->rename[i].tool, r->tool) ||
		    same(e->rename[i].as, r->as))
			return -1;
	e->nrenames++;
	return 0;
}

static int
read_field(struct endpoint *e, const struct tlv *t, struct buf list[2])
{
	struct ipc_bytes b = ipc_bytes(t->p, t->n);

	switch (t->tag) {
	case ENDPOINT_NAME:
		e->name = b;
		return b.n > 0 && b.n <= ENDPOINT_NAME_MAX ? 0 : -1;
	case ENDPOINT_ALLOW:
		return put_line(&list[0], t);
	case ENDPOINT_DENY:
		return put_line(&list[1], t);
	case ENDPOINT_RENAME:
		return read_rename(e, t);
	case ENDPOINT_INSTRUCTIONS:
		e->instructions = b;
		return b.n <= ENDPOINT_INSTRUCTIONS_MAX ? 0 : -1;
	case ENDPOINT_SEARCH:
		e->search = b.n == 1 && b.p[0] == 1;
		return b.n == 1 && b.p[0] <= 1 ? 0 : -1;
	case ENDPOINT_SET:
		e->set = b;
		return b.n > 0 && b.n <= ENDPOINT_NAME_MAX ? 0 : -1;
	case ENDPOINT_LISTENERS:
		if (b.n != 1 || b.p[0] == 0 || (b.p[0] & ~both) != 0)
			return -1;
		e->listeners = b.p[0];
		return 0;
	default:
		return -1;
	}
}

struct endpoint *
endpoint_new(struct ipc_bytes record, struct err *err)
{
	struct endpoint *e = calloc(1, sizeof(*e));
	struct buf list[2]; /* allow, deny */
	struct tlv_reader r;
	struct tlv t;
	int got = -1;

	if (e == NULL) {
		err_set(err, FAILURE_BUSY, "out of memory");
		return NULL;
	}
	e->refs = 1;
	for (int i = 0; i < 2; i++)
		buf_init(&list[i], ACCESS_DOCUMENT_MAX);
	buf_init(&e->record, ACCESS_DOCUMENT_MAX);
	buf_put(&e->record, record.p, record.n);
	if (!e->record.failed) {
		tlv_open(&r, e->record.p, e->record.len);
		while ((got = tlv_next(&r, &t)) == 1)
			if (read_field(e, &t, list) == -1)
				break;
	}
	for (int i = 0; i < 2; i++)
		buf_putc(&list[i], '\0');
	if (e->record.failed || list[0].failed || list[1].failed) {
		err_set(err, FAILURE_BUSY, "out of memory");
	} else if (got != 0 || e->name.n == 0 || e->listeners == 0) {
		err_set(err, FAILURE_INTERNAL,
		    "admind-check answered with a malformed endpoint");
	} else {
		e->allow = (char *)list[0].p;
		e->deny = (char *)list[1].p;
		return e;
	}
	buf_free(&list[0]);
	buf_free(&list[1]);
	endpoint_unref(e);
	return NULL;
}

/* ---- names ---- */

struct ipc_bytes
endpoint_own(const struct endpoint *e, struct ipc_bytes name)
{
	const struct endpoint_rename *taken = NULL;

	for (unsigned i = 0; e != NULL && i < e->nrenames; i++) {
		if (same(e->rename[i].as, name))
			return e->rename[i].tool;
		if (same(e->rename[i].tool, name))
			taken = &e->rename[i];
	}
	return taken == NULL ? name : ipc_bytes(NULL, 0);
}

struct ipc_bytes
endpoint_shown(const struct endpoint *e, struct ipc_bytes own,
    const struct endpoint_rename **rename)
{
	bool taken = false;

	*rename = NULL;
	for (unsigned i = 0; e != NULL && i < e->nrenames; i++) {
		if (same(e->rename[i].tool, own)) {
			*rename = &e->rename[i];
			return e->rename[i].as;
		}
		taken |= same(e->rename[i].as, own);
	}
	return taken ? ipc_bytes(NULL, 0) : own;
}

/* ---- rights ---- */

/* Appends the patterns of one more group: a name has to be in each. */
static void
put_group(struct buf *b, const char *list)
{
	buf_puts(b, b->len > 0 ? "\n" PERMIT_AND "\n" : PERMIT_AND "\n");
	buf_puts(b, list);
}

/* Appends patterns of names that are denied. */
static void
put_list(struct buf *b, const char *list)
{
	if (b->len > 0 && list[0] != '\0')
		buf_putc(b, '\n');
	buf_puts(b, list);
}

int
endpoint_narrow(const struct endpoint *e, const struct permit *own,
    unsigned scopes, const char *allow, const char *deny, struct permit *out)
{
	struct buf may, not;

	buf_init(&may, 4 * ACCESS_DOCUMENT_MAX);
	buf_init(&not, 4 * ACCESS_DOCUMENT_MAX);
	buf_puts(&may, own->allow);
	buf_puts(&not, own->deny);
	memset(out, 0, sizeof(*out));
	out->scopes = own->scopes;
	if (allow != NULL) {
		out->scopes &= scopes;
		put_group(&may, allow);
		put_list(&not, deny);
	}
	put_group(&may, e->allow);
	put_list(&not, e->deny);
	buf_putc(&may, '\0');
	buf_putc(&not, '\0');
	if (may.failed || not.failed) {
		buf_free(&may);
		buf_free(&not);
		return -1;
	}
	out->allow = (const char *)may.p;
	out->deny = (const char *)not.p;
	out->at = e->search ? PERMIT_AT_SEARCH : PERMIT_AT_ENDPOINT;
	return 0;
}

/* Returns whether the endpoint says the same about names. */
static bool
same_names(const struct endpoint *a, const struct endpoint *b)
{
	if (a->nrenames != b->nrenames)
		return false;
	for (unsigned i = 0; i < a->nrenames; i++)
		if (!same(a->rename[i].tool, b->rename[i].tool) ||
		    !same(a->rename[i].as, b->rename[i].as))
			return false;
	return true;
}

bool
endpoint_covers(const struct endpoint *is, const struct endpoint *was)
{
	const struct permit p = {0, is->allow, is->deny, PERMIT_WHOLE};
	const struct permit q = {0, was->allow, was->deny, PERMIT_WHOLE};

	return (was->listeners & ~is->listeners) == 0 &&
	    is->search == was->search && same(is->set, was->set) &&
	    same_names(is, was) && permit_covers(&p, &q);
}
