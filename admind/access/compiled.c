/* Reads the fields of an access document. See rules.h. */
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "listener.h"
#include "permit.h"
#include "rules.h"
#include "signin_fields.h"
#include "telemetry_fields.h"
#include "tlv.h"

enum { LEEWAY_MAX_S = 300, MAX_AGE_MAX_S = 86400, US = 1000 * 1000 };

static int
malformed(struct err *err)
{
	return err_set(err, FAILURE_INTERNAL,
	    "admind-check answered with a malformed access document");
}

static struct ipc_bytes
value(const struct tlv *t)
{
	return ipc_bytes(t->p, t->n);
}

/* Returns whether this is [a-z][a-z0-9-]*, as names in a document are. */
static bool
name_ok(struct ipc_bytes b)
{
	if (b.n == 0 || b.n > ACCESS_NAME_MAX || b.p[0] < 'a' || b.p[0] > 'z')
		return false;
	for (size_t i = 1; i < b.n; i++)
		if (!((b.p[i] >= 'a' && b.p[i] <= 'z') ||
			(b.p[i] >= '0' && b.p[i] <= '9') || b.p[i] == '-'))
			return false;
	return true;
}

/* Returns whether this is printable ASCII without a quotation mark or a
 * backslash, so that it needs no escape in a header or in JSON. */
static bool
url_ok(struct ipc_bytes b)
{
	if (b.n == 0 || b.n > ACCESS_URL_MAX)
		return false;
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] <= ' ' || b.p[i] > '~' || b.p[i] == '"' ||
		    b.p[i] == '\\')
			return false;
	return true;
}

static bool
same(struct ipc_bytes a, struct ipc_bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static int
read_issuer(struct compiled *c, struct ipc_bytes record, struct err *err)
{
	const unsigned known = 1u << LISTENER_LOCAL | 1u << LISTENER_TUNNEL;
	struct issuer *s = &c->issuer[c->nissuers];
	uint64_t leeway = 0, age = 0;
	struct tlv_reader r;
	struct tlv t;
	int got;

	if (c->nissuers == ACCESS_ISSUERS_MAX)
		return malformed(err);
	s->record = record;
	tlv_open(&r, record.p, record.n);
	while ((got = tlv_next(&r, &t)) == 1) {
		bool byte = t.n == 1;

		switch (t.tag) {
		case ISSUER_NAME:
			s->name = value(&t);
			break;
		case ISSUER_URL:
			s->url = value(&t);
			break;
		case ISSUER_VIA:
			if (!byte || t.p[0] > VIA_ASSERTION)
				return malformed(err);
			s->via = t.p[0];
			break;
		case ISSUER_LISTENERS:
			if (!byte || (t.p[0] & ~known) != 0)
				return malformed(err);
			s->listeners = t.p[0];
			break;
		case ISSUER_LEEWAY_S:
			if (tlv_u64(&t, &leeway) == -1 || leeway > LEEWAY_MAX_S)
				return malformed(err);
			break;
		case ISSUER_MAX_AGE_S:
			if (tlv_u64(&t, &age) == -1 || age > MAX_AGE_MAX_S)
				return malformed(err);
			break;
		case ISSUER_SCOPES:
			if (!byte)
				return malformed(err);
			s->narrows = t.p[0] != 0;
			break;
		case ISSUER_BOUND:
			if (!byte)
				return malformed(err);
			s->bound = t.p[0] != 0;
			break;
		case ISSUER_KEYS_URL:
			s->fetched = true;
			break;
		default: /* admind-check itself will ask for the others */
			break;
		}
	}
	if (got == -1 || !name_ok(s->name) || !url_ok(s->url) ||
	    s->listeners == 0)
		return malformed(err);
	s->leeway_us = leeway * US;
	s->max_age_us = age * US;
	for (unsigned i = 0; i < c->nissuers; i++)
		if (same(c->issuer[i].name, s->name) ||
		    same(c->issuer[i].url, s->url))
			return malformed(err);
	c->nissuers++;
	return 0;
}

/* Appends a line to a list. 0, or -1 if it has no bytes or a byte that would
 * make it several lines. */
static int
put_line(struct buf *b, const struct tlv *t)
{
	if (t->n == 0 || memchr(t->p, '\n', t->n) != NULL ||
	    memchr(t->p, '\0', t->n) != NULL)
		return -1;
	if (b->len > 0)
		buf_putc(b, '\n');
	buf_put(b, t->p, t->n);
	return 0;
}

static int
read_set(struct compiled *c, struct ipc_bytes record, struct err *err)
{
	struct access_set *s = &c->set[c->nsets];
	struct buf list[3]; /* scopes, allow, deny */
	struct tlv_reader r;
	struct tlv t;
	uint64_t rate = 0;
	int got, rv = -1;

	if (c->nsets == ACCESS_SETS_MAX)
		return malformed(err);
	for (int i = 0; i < 3; i++)
		buf_init(&list[i], ACCESS_DOCUMENT_MAX);
	s->record = record;
	tlv_open(&r, record.p, record.n);
	while ((got = tlv_next(&r, &t)) == 1) {
		if (t.tag == SET_NAME)
			s->name = value(&t);
		else if (t.tag == SET_RATE && tlv_u64(&t, &rate) == 0 &&
		    rate > 0 && rate <= ACCESS_RATE_MAX)
			s->per_minute = (int64_t)rate;
		else if (t.tag < SET_SCOPE || t.tag > SET_DENY ||
		    put_line(&list[t.tag - SET_SCOPE], &t) == -1)
			break;
	}
	if (got != 0 || !name_ok(s->name)) {
		malformed(err);
		goto out;
	}
	for (unsigned i = 0; i < c->nsets; i++)
		if (same(c->set[i].name, s->name)) {
			malformed(err);
			goto out;
		}
	for (int i = 0; i < 3; i++)
		buf_putc(&list[i], '\0');
	if (list[0].failed || list[1].failed || list[2].failed) {
		err_set(err, FAILURE_BUSY, "out of memory");
		goto out;
	}
	s->scopes = permit_scopes((const char *)list[0].p);
	s->allow = (char *)list[1].p;
	s->deny = (char *)list[2].p;
	list[1].p = list[2].p = NULL; /* the set owns them */
	list[1].len = list[2].len = 0;
	c->nsets++;
	rv = 0;
out:
	for (int i = 0; i < 3; i++)
		buf_free(&list[i]);
	return rv;
}

static int
read_rule(struct compiled *c, struct ipc_bytes record, struct err *err)
{
	struct rule *rule = &c->rule[c->nrules];
	unsigned values = 0;
	struct tlv_reader r;
	struct tlv t;
	int got;

	if (c->nrules == ACCESS_RULES_MAX)
		return malformed(err);
	rule->record = record;
	tlv_open(&r, record.p, record.n);
	while ((got = tlv_next(&r, &t)) == 1) {
		switch (t.tag) {
		case RULE_ISSUER:
			rule->issuer = issuers_named(c, value(&t));
			break;
		case RULE_CLAIM:
			if (t.n != 1 || t.p[0] < RULE_SUB || t.p[0] > RULE_ANY)
				return malformed(err);
			rule->claim = (enum rule_claim)t.p[0];
			break;
		case RULE_VALUE:
			if (t.n == 0)
				return malformed(err);
			values++;
			break;
		case RULE_SET:
			for (unsigned i = 0; i < c->nsets; i++)
				if (same(c->set[i].name, value(&t)))
					rule->set = &c->set[i];
			break;
		default:
			return malformed(err);
		}
	}
	if (got == -1 || rule->issuer == NULL || rule->set == NULL ||
	    rule->claim == 0 || (values == 0) != (rule->claim == RULE_ANY) ||
	    values > ACCESS_VALUES_MAX)
		return malformed(err);
	c->nrules++;
	return 0;
}

static int
read_telemetry(struct compiled *c, struct ipc_bytes record, struct err *err)
{
	struct telemetry *t = &c->telemetry;
	struct tlv_reader r;
	struct tlv f;
	int got;

	if (t->record.n > 0)
		return malformed(err);
	t->record = record;
	tlv_open(&r, record.p, record.n);
	while ((got = tlv_next(&r, &f)) == 1)
		if (f.tag == TELEMETRY_URL)
			t->url = value(&f);
		else if (f.tag == TELEMETRY_SPANS && f.n == 1)
			t->spans = f.p[0] != 0;
		else if (f.tag == TELEMETRY_METRICS && f.n == 1)
			t->metrics = f.p[0] != 0;
		else if (f.tag == TELEMETRY_PRINCIPALS && f.n == 1)
			t->principals = f.p[0] != 0;
		else if (f.tag != TELEMETRY_HOST &&
		    (f.tag != TELEMETRY_EVERY_S ||
			tlv_u64(&f, &t->every_s) == -1))
			return malformed(err);
	if (got == -1 || !url_ok(t->url) || (!t->spans && !t->metrics) ||
	    t->every_s < TELEMETRY_EVERY_MIN_S ||
	    t->every_s > TELEMETRY_EVERY_MAX_S)
		return malformed(err);
	return 0;
}

static int
read_notify(struct compiled *c, struct ipc_bytes record, struct err *err)
{
	struct notify *n = &c->notify[c->nnotify];
	struct tlv_reader r;
	struct tlv f;
	int got;

	if (c->nnotify == NOTIFY_TARGETS_MAX)
		return malformed(err);
	tlv_open(&r, record.p, record.n);
	while ((got = tlv_next(&r, &f)) == 1)
		if (f.tag == NOTIFY_NAME)
			n->name = value(&f);
		else if (f.tag == NOTIFY_TEXT)
			n->text = value(&f);
		else if (f.tag == NOTIFY_SERVER)
			n->server = value(&f);
		else if (f.tag == NOTIFY_KEY)
			n->key = value(&f);
		else
			return malformed(err);
	if (got == -1 || !name_ok(n->name) || n->text.n == 0 ||
	    (n->server.n > 0) != (n->key.n > 0))
		return malformed(err);
	for (unsigned i = 0; i < c->nnotify; i++)
		if (same(c->notify[i].name, n->name))
			return malformed(err);
	c->nnotify++;
	return 0;
}

static int
read_endpoint(struct compiled *c, struct ipc_bytes record, struct err *err)
{
	struct endpoint *e;
	bool named = false;

	if (c->nendpoints == ENDPOINTS_MAX)
		return malformed(err);
	e = endpoint_new(record, err);
	if (e == NULL)
		return -1;
	c->endpoint[c->nendpoints++] = e; /* freed with the document */
	for (unsigned i = 0; i < c->nsets; i++)
		named |= same(c->set[i].name, e->set);
	for (unsigned i = 0; i + 1 < c->nendpoints; i++)
		if (same(c->endpoint[i]->name, e->name))
			return malformed(err);
	return name_ok(e->name) && (e->set.n == 0 || named) ? 0
							    : malformed(err);
}

/* Reads the rules, or all fields but the rules: a rule names others. Endpoints
 * come after all sets. */
static int
read_all(struct compiled *c, bool rules, struct err *err)
{
	struct tlv_reader r;
	struct tlv t;
	int got, rc = 0;

	tlv_open(&r, c->fields.p, c->fields.len);
	while (rc == 0 && (got = tlv_next(&r, &t)) != 0) {
		if (got == -1)
			return malformed(err);
		/* admind/signin reads these itself. */
		if (t.tag == ACCESS_SIGN_IN || t.tag == ACCESS_ADMINISTRATOR)
			continue;
		if (t.tag == ACCESS_TELEMETRY) {
			if (!rules)
				rc = read_telemetry(c, value(&t), err);
			continue;
		}
		if (t.tag == ACCESS_NOTIFY) {
			if (!rules)
				rc = read_notify(c, value(&t), err);
			continue;
		}
		if (t.tag == ACCESS_PANEL) {
			c->panel = value(&t);
			continue;
		}
		if (t.tag < ACCESS_RESOURCE || t.tag > ACCESS_ENDPOINT)
			return malformed(err);
		if (rules == (t.tag == ACCESS_RULE)) {
			if (t.tag == ACCESS_RULE)
				rc = read_rule(c, value(&t), err);
			else if (t.tag == ACCESS_ISSUER)
				rc = read_issuer(c, value(&t), err);
			else if (t.tag == ACCESS_SET)
				rc = read_set(c, value(&t), err);
			else if (t.tag == ACCESS_ENDPOINT)
				rc = read_endpoint(c, value(&t), err);
			else if (c->resource.n > 0 || !url_ok(value(&t)))
				rc = malformed(err);
			else
				c->resource = value(&t);
		}
	}
	return rc;
}

struct compiled *
compiled_new(struct ipc_bytes fields, struct err *err)
{
	struct compiled *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		err_set(err, FAILURE_BUSY, "out of memory");
		return NULL;
	}
	buf_init(&c->fields, IPC_BLOB_MAX);
	buf_put(&c->fields, fields.p, fields.n);
	if (c->fields.failed)
		err_set(err, FAILURE_BUSY, "out of memory");
	else if (read_all(c, false, err) == 0 && read_all(c, true, err) == 0) {
		if (c->nissuers == 0 || c->resource.n > 0)
			return c;
		malformed(err);
	}
	compiled_free(c);
	return NULL;
}

void
compiled_free(struct compiled *c)
{
	if (c == NULL)
		return;
	for (unsigned i = 0; i < c->nsets; i++) {
		free(c->set[i].allow);
		free(c->set[i].deny);
	}
	for (unsigned i = 0; i < c->nendpoints; i++)
		endpoint_unref(c->endpoint[i]);
	buf_free(&c->fields);
	free(c);
}
