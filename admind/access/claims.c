/* Reads the claims of a token. See rules.h. */
#include <string.h>

#include "permit.h"
#include "rules.h"
#include "tlv.h"
#include "utf8.h"

static int
malformed(struct err *err)
{
	return err_set(err, FAILURE_INTERNAL,
	    "admind-check answered with malformed claims");
}

/* Returns whether this can be the end of a principal's name: no space, no
 * control character, nothing outside ASCII. So two names that look the same are
 * the same, and a NOTIFY or a log line has one word for it. */
static bool
sub_ok(struct ipc_bytes b)
{
	if (b.n == 0 || b.n > JWT_SUB_MAX)
		return false;
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] < '!' || b.p[i] > '~')
			return false;
	return true;
}

/* Returns whether this is text for the database and for people. */
static bool
text_ok(struct ipc_bytes b)
{
	if (b.n == 0 || b.n > ACCESS_VALUE_MAX || !utf8_valid(b.p, b.n))
		return false;
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] < ' ' || b.p[i] == 0x7f)
			return false;
	return true;
}

/* Adds the scopes that a scope implies, as permit_scopes() does. */
static unsigned
implied(unsigned scopes)
{
	if ((scopes & PERMIT_CALL) != 0)
		scopes |= PERMIT_READ;
	if ((scopes & PERMIT_EDIT) != 0)
		scopes |= PERMIT_MANAGE;
	return scopes;
}

static int
read_field(struct claims *c, const struct tlv *t)
{
	const unsigned known =
	    PERMIT_READ | PERMIT_CALL | PERMIT_MANAGE | PERMIT_EDIT;
	struct ipc_bytes b = ipc_bytes(t->p, t->n);

	switch (t->tag) {
	case JWT_ISSUER:
		c->issuer = b;
		return 0;
	case JWT_SUB:
		c->sub = b;
		return sub_ok(b) ? 0 : -1;
	case JWT_EMAIL:
		c->email = b;
		return text_ok(b) ? 0 : -1;
	case JWT_CLIENT:
		c->client = b;
		return text_ok(b) ? 0 : -1;
	case JWT_GROUP:
		if (c->ngroups == JWT_GROUPS_MAX || !text_ok(b))
			return -1;
		c->group[c->ngroups++] = b;
		return 0;
	case JWT_SCOPES:
		if (b.n != 1 || (b.p[0] & ~known) != 0)
			return -1;
		c->scopes = implied(b.p[0]);
		return 0;
	case JWT_EXP_US:
		return tlv_u64(t, &c->exp_us);
	case JWT_IAT_US:
		return tlv_u64(t, &c->iat_us);
	case JWT_ENDPOINT:
		if (b.n == 0 || b.n > ACCESS_NAME_MAX ||
		    c->nendpoints == ENDPOINTS_MAX)
			return -1;
		c->endpoint[c->nendpoints++] = b;
		return 0;
	case JWT_BOUND:
		c->bound = b;
		return b.n > 0 ? 0 : -1;
	default:
		return -1;
	}
}

int
claims_read(struct claims *out, struct ipc_bytes fields, struct err *err)
{
	struct claims c = {0};
	struct tlv_reader r;
	struct tlv t;
	int got;

	tlv_open(&r, fields.p, fields.n);
	while ((got = tlv_next(&r, &t)) == 1)
		if (read_field(&c, &t) == -1)
			return malformed(err);
	if (got == -1 || c.issuer.n == 0 || c.sub.n == 0 || c.exp_us == 0)
		return malformed(err);
	*out = c;
	return 0;
}
