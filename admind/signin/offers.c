/* See offers.h. */
#include "offers.h"

#include <string.h>

#include "ids.h"
#include "tlv.h"

/* The digits of a hash in a name. 64 bits: an issuer's people can choose their
 * `sub` at some issuers, and would have to hit one name of another. */
enum { DIGITS = 16 };

static bool
same(struct ipc_bytes a, struct ipc_bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static struct ipc_bytes
field(struct ipc_bytes record, uint8_t tag)
{
	struct tlv f;

	if (tlv_find(record.p, record.n, tag, &f) != 1)
		return ipc_bytes(NULL, 0);
	return ipc_bytes(f.p, f.n);
}

/* ---- the document ---- */

/* Reads an administrators' rule of this issuer. Returns false if it is of
 * another one, or not as admind-check makes it. */
static bool
read_rule(const struct tlv *t, const struct issuer *is, struct rule *rule,
    enum admin_role *role)
{
	struct ipc_bytes record = ipc_bytes(t->p, t->n);
	struct ipc_bytes claim = field(record, RULE_CLAIM);
	struct ipc_bytes who = field(record, RULE_ROLE);
	struct tlv_reader r;
	unsigned values = 0;
	struct tlv f;
	int rc;

	if (t->tag != ACCESS_ADMINISTRATOR ||
	    !same(field(record, RULE_ISSUER), is->name))
		return false;
	tlv_open(&r, record.p, record.n);
	while ((rc = tlv_next(&r, &f)) == 1)
		if (f.tag == RULE_VALUE) {
			if (f.n == 0)
				return false;
			values++;
		}
	if (rc != 0 || claim.n != 1 || claim.p[0] < RULE_SUB ||
	    claim.p[0] > RULE_ANY || who.n != 1 ||
	    who.p[0] > ADMIN_ADMINISTRATOR ||
	    (values == 0) != (claim.p[0] == RULE_ANY))
		return false;
	*rule = (struct rule){.issuer = is,
	    .claim = (enum rule_claim)claim.p[0],
	    .record = record};
	*role = (enum admin_role)who.p[0];
	return true;
}

/* Adds bytes with their length, so that two lists never have one hash. */
static void
add(struct sha256_pieces *h, struct ipc_bytes b)
{
	uint32_t n = (uint32_t)b.n;

	sha256_add(h, &n, sizeof(n));
	sha256_add(h, b.p, b.n);
}

static bool
basis(const struct compiled *c, struct offer *o)
{
	struct sha256_pieces *h = sha256_begin();
	struct tlv_reader r;
	struct tlv t;

	if (h == NULL)
		return false;
	add(h, o->issuer->record);
	add(h, o->record);
	tlv_open(&r, c->fields.p, c->fields.len);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == ACCESS_ADMINISTRATOR &&
		    same(field(ipc_bytes(t.p, t.n), RULE_ISSUER),
			o->issuer->name))
			add(h, ipc_bytes(t.p, t.n));
	sha256_end(h, &o->basis);
	sha256_free(h);
	return true;
}

void
offers_read(struct offers *out, const struct compiled *c)
{
	struct tlv_reader r;
	struct tlv t;

	out->n = 0;
	if (c == NULL)
		return;
	tlv_open(&r, c->fields.p, c->fields.len);
	while (tlv_next(&r, &t) == 1 && out->n < ACCESS_ISSUERS_MAX) {
		struct offer *o = &out->offer[out->n];
		struct ipc_bytes record = ipc_bytes(t.p, t.n);

		if (t.tag != ACCESS_SIGN_IN)
			continue;
		*o = (struct offer){.record = record,
		    .issuer = issuers_named(c, field(record, SIGN_IN_ISSUER)),
		    .client = field(record, SIGN_IN_CLIENT),
		    .redirect = field(record, SIGN_IN_REDIRECT)};
		if (o->issuer != NULL && o->issuer->fetched &&
		    o->client.n > 0 && o->redirect.n > 0 &&
		    offers_named(out, o->issuer->name) == NULL && basis(c, o))
			out->n++;
	}
}

const struct offer *
offers_named(const struct offers *all, struct ipc_bytes name)
{
	for (unsigned i = 0; i < all->n; i++)
		if (same(all->offer[i].issuer->name, name))
			return &all->offer[i];
	return NULL;
}

const struct offer *
offers_of(const struct offers *all, const struct ipc_hash *basis_of)
{
	for (unsigned i = 0; i < all->n; i++)
		if (memcmp(&all->offer[i].basis, basis_of, sizeof(*basis_of)) ==
		    0)
			return &all->offer[i];
	return NULL;
}

bool
offers_need_iss(const struct offers *all, struct ipc_bytes sign_in)
{
	struct ipc_bytes says = field(sign_in, KEYS_SIGN_IN_ISS);

	return all->n > 1 || (says.n == 1 && says.p[0] == 1);
}

int
offers_role(const struct compiled *c, const struct offer *o,
    const struct claims *claims, enum admin_role *role)
{
	struct tlv_reader r;
	struct rule rule;
	struct tlv t;

	tlv_open(&r, c->fields.p, c->fields.len);
	while (tlv_next(&r, &t) == 1)
		if (read_rule(&t, o->issuer, &rule, role) &&
		    rules_fit(&rule, claims))
			return 0;
	return -1;
}

/* ---- names ---- */

static bool
is_word(struct ipc_bytes s)
{
	if (s.n == 0 || s.n > OFFERS_SUB_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= 'A' && s.p[i] <= 'Z') ||
			(s.p[i] >= 'a' && s.p[i] <= 'z') ||
			(s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '_' ||
			s.p[i] == '.' || s.p[i] == '-'))
			return false;
	return true;
}

/* Tells whether a name could be the digits of another subject's hash. */
static bool
looks_hashed(struct ipc_bytes s)
{
	if (s.n != DIGITS)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') ||
			(s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
	return true;
}

void
offers_name(struct ipc_bytes issuer, struct ipc_bytes sub,
    char out[OFFERS_NAME_MAX + 1])
{
	struct ipc_hash h;
	size_t n = sub.n;

	if (is_word(sub) && !looks_hashed(sub)) {
		memcpy(out, sub.p, n);
	} else {
		sha256(sub.p, sub.n, &h);
		hex_encode(&h, DIGITS / 2, out);
		n = DIGITS;
	}
	out[n++] = '@';
	memcpy(out + n, issuer.p, issuer.n);
	out[n + issuer.n] = '\0';
}

/* ---- addresses ---- */

/* Returns the host of an https URL, with its port if it names one. */
static struct ipc_bytes
authority(struct ipc_bytes url)
{
	static const char scheme[] = "https://";
	size_t start = sizeof(scheme) - 1, n;

	if (url.n <= start || memcmp(url.p, scheme, start) != 0)
		return ipc_bytes(NULL, 0);
	for (n = start; n < url.n && url.p[n] != '/' && url.p[n] != '?'; n++)
		;
	return ipc_bytes(url.p + start, n - start);
}

/* Drops the port that https has anyway. */
static struct ipc_bytes
without_port(struct ipc_bytes host)
{
	static const char usual[] = ":443";
	size_t n = sizeof(usual) - 1;

	if (host.n > n && memcmp(host.p + host.n - n, usual, n) == 0)
		host.n -= n;
	return host;
}

bool
offers_covers(struct ipc_bytes source, struct ipc_bytes url)
{
	struct ipc_bytes host = without_port(authority(url));
	struct tlv_reader r;
	struct tlv t;

	tlv_open(&r, source.p, source.n);
	while (host.n > 0 && tlv_next(&r, &t) == 1) {
		struct ipc_bytes one = ipc_bytes(t.p, t.n);

		if (t.tag == ISSUER_KEYS_URL)
			one = authority(one);
		else if (t.tag != ISSUER_KEYS_HOST)
			continue;
		if (same(without_port(one), host))
			return true;
	}
	return false;
}

/* Appends a value of a query. All but the unreserved characters of RFC 3986 are
 * escaped. */
static void
escaped(struct buf *out, const void *text, size_t n)
{
	const uint8_t *p = text;

	for (size_t i = 0; i < n; i++)
		if ((p[i] >= 'A' && p[i] <= 'Z') ||
		    (p[i] >= 'a' && p[i] <= 'z') ||
		    (p[i] >= '0' && p[i] <= '9') || p[i] == '-' ||
		    p[i] == '.' || p[i] == '_' || p[i] == '~')
			buf_putc(out, (char)p[i]);
		else
			buf_putf(out, "%%%02X", p[i]);
}

static void
param(struct buf *out, const char *name, const void *value, size_t n)
{
	buf_putf(out, "&%s=", name);
	escaped(out, value, n);
}

void
offers_url(struct buf *out, const struct offer *o, struct ipc_bytes endpoint,
    const char *state, const char *nonce, const char *challenge)
{
	struct tlv_reader r;
	struct tlv t;

	buf_put(out, endpoint.p, endpoint.n);
	buf_putc(out, memchr(endpoint.p, '?', endpoint.n) != NULL ? '&' : '?');
	buf_puts(out, "response_type=code");
	param(out, "client_id", o->client.p, o->client.n);
	param(out, "redirect_uri", o->redirect.p, o->redirect.n);
	buf_puts(out, "&scope=openid");
	tlv_open(&r, o->record.p, o->record.n);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == SIGN_IN_SCOPE &&
		    !ipc_streq(ipc_bytes(t.p, t.n), "openid")) {
			buf_puts(out, "%20");
			escaped(out, t.p, t.n);
		}
	param(out, "state", state, strlen(state));
	param(out, "nonce", nonce, strlen(nonce));
	param(out, "code_challenge", challenge, strlen(challenge));
	buf_puts(out, "&code_challenge_method=S256");
}
