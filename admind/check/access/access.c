/*
 * Security argument.
 *
 * An administrator wrote the document, or an attacker in an administrator's
 * browser; the vault asks for a login. This check keeps a document from meaning
 * something else than it says. Members are closed, so a misspelt "clients" is
 * an error and not "any client". An empty list never means "all". Rules name
 * issuers and sets that exist. A name means one issuer, and an issuer's URL is
 * there once, so that `iss` chooses one. Everything that admind gets is typed
 * and bounded; admind reads no JSON.
 */
#include <string.h>

#include "access.h"
#include "access_endpoint.h"
#include "access_form.h"
#include "access_issuer.h"
#include "access_read.h"
#include "access_rule.h"
#include "access_signin.h"
#include "bounds.h"
#include "notifications.h"
#include "telemetry.h"
#include "tlv.h"

enum {
	/* Bytes of the record of a rule or a set: 256 patterns of 64 bytes
	 * twice, 64 values of 254. */
	RECORD_MAX = 64 * 1024,
	SCOPES_MAX = 4 /* there are no more */
};

static void
rule(struct access_doc *a, const struct access_at *r,
    const struct access_at *issuers, const struct access_at *sets)
{
	static const struct access_member members[] = {{"issuer", true},
	    {"claim", true}, {"values", false}, {"set", true}, {NULL, false}};
	struct access_at at;
	struct buf record;

	if (!access_object(a, r, members))
		return;
	buf_init(&record, RECORD_MAX);
	access_rule_who(a, r, issuers, &record);
	at = access_get(a, r, "set");
	if (access_rule_names(a, &at, sets,
		"must be the name of a permission set of this document"))
		tlv_put(&record, RULE_SET, at.v->str, at.v->len);
	access_put_record(a, ACCESS_RULE, &record);
}

static void
set(struct access_doc *a, const struct access_at *s)
{
	static const struct access_member members[] = {{"name", true},
	    {"scopes", true}, {"allow", true}, {"deny", false},
	    {"calls_per_minute", false}, {NULL, false}};
	static const struct access_list scopes = {1, SCOPES_MAX,
	    access_form_scope,
	    "must have an entry: without one nothing is allowed"};
	/* An empty list allows, or denies, nothing, as in an API token. */
	static const struct access_list patterns = {
	    0, ACCESS_PATTERNS_MAX, access_form_pattern, ""};
	struct access_at at;
	struct buf record;
	uint64_t rate;

	if (!access_object(a, s, members))
		return;
	buf_init(&record, RECORD_MAX);
	at = access_get(a, s, "name");
	if (access_text(a, &at, access_form_name))
		tlv_put(&record, SET_NAME, at.v->str, at.v->len);
	at = access_get(a, s, "scopes");
	if (access_texts(a, &at, &scopes))
		access_put_texts(a, &at, &record, SET_SCOPE);
	at = access_get(a, s, "allow");
	if (access_texts(a, &at, &patterns))
		access_put_texts(a, &at, &record, SET_ALLOW);
	at = access_get(a, s, "deny");
	if (access_texts(a, &at, &patterns))
		access_put_texts(a, &at, &record, SET_DENY);
	at = access_get(a, s, "calls_per_minute");
	if (at.v != NULL) {
		rate = access_number(a, &at, ACCESS_RATE_MAX, 1);
		if (rate == 0)
			access_fault(a, &at,
			    "must be 1 or more: without it the usual limit "
			    "holds");
		tlv_put_u64(&record, SET_RATE, rate);
	}
	access_put_record(a, ACCESS_SET, &record);
}

static void
document(struct access_doc *a)
{
	static const struct access_member members[] = {{"resource", false},
	    {"issuers", false}, {"rules", false}, {"permission_sets", false},
	    {"administrators", false}, {"endpoints", false},
	    {"telemetry", false}, {"notifications", false}, {NULL, false}};
	const struct access_at top = {.v = &a->d->node[0], .root = true};
	struct access_at resource, issuers, rules, sets, endpoints, one;
	uint32_t n;

	if (!access_object(a, &top, members))
		return;
	resource = access_get(a, &top, "resource");
	issuers = access_get(a, &top, "issuers");
	rules = access_get(a, &top, "rules");
	sets = access_get(a, &top, "permission_sets");
	endpoints = access_get(a, &top, "endpoints");
	if (access_text(a, &resource, access_form_resource))
		tlv_put(a->fields, ACCESS_RESOURCE, resource.v->str,
		    resource.v->len);
	n = access_count(a, &issuers, ACCESS_ISSUERS_MAX);
	if (n > 0 && resource.v == NULL)
		access_fault(a, &top,
		    "must have \"resource\", this server's https URL, since "
		    "there are issuers");
	for (uint32_t i = 0; i < n; i++) {
		one = access_entry(a, &issuers, i);
		access_issuer_read(a, &one, &resource, &endpoints);
		access_unique(a, &issuers, i, "name");
		access_unique(a, &issuers, i, "issuer");
	}
	n = access_count(a, &rules, ACCESS_RULES_MAX);
	for (uint32_t i = 0; i < n; i++) {
		one = access_entry(a, &rules, i);
		rule(a, &one, &issuers, &sets);
	}
	n = access_count(a, &sets, ACCESS_SETS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		one = access_entry(a, &sets, i);
		set(a, &one);
		access_unique(a, &sets, i, "name");
	}
	access_signin_read(a, &top, &issuers);
	one = access_get(a, &top, "telemetry");
	telemetry_read(a, &one);
	one = access_get(a, &top, "notifications");
	notifications_read(a, &one);
	access_endpoints_read(a, &endpoints, &sets);
}

void
check_access(struct check *c, struct ipc_bytes text)
{
	struct access_doc a = {.fields = &c->fields};
	struct report r;
	struct doc d;
	struct err e;
	int rc;

	check_begin(c, &r);
	if (text.n > ACCESS_DOCUMENT_MAX) {
		memset(&d, 0, sizeof(d));
		rc = err_set(&e, FAILURE_TOO_LARGE,
		    "the access document has more than %d bytes",
		    ACCESS_DOCUMENT_MAX);
	} else if ((rc = doc_parse(&d, text.p, text.n, &e)) == 0) {
		a.d = &d;
		a.r = &r;
		document(&a);
	} else if (e.failure == FAILURE_PARSE) {
		err_wrap(&e, "the access document is not JSON");
		e.failure = FAILURE_INVALID_PARAMS;
	}
	check_end(c, &r, rc, FAILURE_INVALID_PARAMS,
	    "the access document cannot be used", &e);
	doc_free(&d);
}
