/*
 * Security argument.
 *
 * These members make administrators, so they are as closed as the rest: an
 * unknown role is an error, and so is a rule of an issuer without `sign_in`.
 * The addresses of the sign-in come from the issuer's metadata, which are
 * fetched, so `sign_in` asks for `discovery`. Browsers come back to one exact
 * address. It is https, or http to 127.0.0.1, so that neither a network nor
 * another user of this machine reads the code.
 *
 * The records are apart from the issuer's own: its people with tokens are not
 * disturbed by a change of its sign-in.
 */
#include "access_signin.h"

#include "access_form.h"
#include "access_rule.h"
#include "admin_action.h"
#include "doc.h"
#include "signin_fields.h"
#include "tlv.h"

enum {
	SIGN_IN_MAX = 4 * 1024, /* bytes of a record: ten texts */
	RULE_MAX = 32 * 1024    /* 64 values of 254 bytes */
};

/* Reads `sign_in` of one issuer. */
static void
sign_in(struct access_doc *a, const struct access_at *issuer)
{
	static const struct access_member members[] = {{"client_id", true},
	    {"redirect", true}, {"scopes", false}, {NULL, false}};
	/* openid is asked for in any case. */
	static const struct access_list scopes = {
	    0, SIGN_IN_SCOPES_MAX, access_form_asked, ""};
	struct access_at at, offer, name, discovery;
	struct buf record;

	if (issuer->v->kind != DOC_OBJECT)
		return; /* reported already */
	offer = access_get(a, issuer, "sign_in");
	if (offer.v == NULL || !access_object(a, &offer, members))
		return;
	discovery = access_get(a, issuer, "discovery");
	if (discovery.v == NULL)
		access_fault(a, &offer,
		    "needs \"discovery\": true, since the issuer's metadata "
		    "say where people sign in");
	buf_init(&record, SIGN_IN_MAX);
	name = access_get(a, issuer, "name");
	if (name.v != NULL && name.v->kind == DOC_STRING &&
	    access_form_name(name.v->str, name.v->len) == NULL)
		tlv_put(&record, SIGN_IN_ISSUER, name.v->str, name.v->len);
	at = access_get(a, &offer, "client_id");
	if (access_text(a, &at, access_form_client))
		tlv_put(&record, SIGN_IN_CLIENT, at.v->str, at.v->len);
	at = access_get(a, &offer, "redirect");
	if (access_text(a, &at, access_form_redirect))
		tlv_put(&record, SIGN_IN_REDIRECT, at.v->str, at.v->len);
	at = access_get(a, &offer, "scopes");
	if (at.v == NULL) {
		tlv_puts(&record, SIGN_IN_SCOPE, "email");
		tlv_puts(&record, SIGN_IN_SCOPE, "profile");
	} else if (access_texts(a, &at, &scopes)) {
		access_put_texts(a, &at, &record, SIGN_IN_SCOPE);
	}
	access_put_record(a, ACCESS_SIGN_IN, &record);
}

/* Reports a rule whose issuer has no `sign_in`. */
static void
offered(struct access_doc *a, const struct access_at *rule,
    const struct access_at *issuers)
{
	struct access_at at = access_get(a, rule, "issuer");
	const struct doc_node *is, *name;

	if (at.v == NULL || at.v->kind != DOC_STRING || issuers->v == NULL ||
	    issuers->v->kind != DOC_ARRAY)
		return;
	for (uint32_t i = 0; i < issuers->v->count; i++) {
		is = doc_kid(a->d, issuers->v, i);
		if (is->kind != DOC_OBJECT)
			continue;
		name = doc_get(a->d, is, "name");
		if (name != NULL && doc_is(name, (const char *)at.v->str) &&
		    doc_get(a->d, is, "sign_in") == NULL)
			access_fault(a, &at,
			    "names an issuer without \"sign_in\": nobody could "
			    "sign in by it");
	}
}

static void
administrator(struct access_doc *a, const struct access_at *rule,
    const struct access_at *issuers)
{
	static const struct access_member members[] = {{"issuer", true},
	    {"claim", true}, {"values", false}, {"role", true}, {NULL, false}};
	/* In the order of enum admin_role, which begins with 0. */
	static const char *const roles[] = {
	    "viewer", "reviewer", "administrator", NULL};
	struct access_at at;
	struct buf record;

	if (!access_object(a, rule, members))
		return;
	buf_init(&record, RULE_MAX);
	access_rule_who(a, rule, issuers, &record);
	offered(a, rule, issuers);
	at = access_get(a, rule, "role");
	if (at.v != NULL)
		access_put_u8(&record, RULE_ROLE,
		    access_word(a, &at, roles, ADMIN_VIEWER));
	access_put_record(a, ACCESS_ADMINISTRATOR, &record);
}

void
access_signin_read(struct access_doc *a, const struct access_at *document,
    const struct access_at *issuers)
{
	struct access_at rules = access_get(a, document, "administrators"), one;
	uint32_t n = 0;

	if (issuers->v != NULL && issuers->v->kind == DOC_ARRAY)
		n = issuers->v->count;
	for (uint32_t i = 0; i < n && i < ACCESS_ISSUERS_MAX; i++) {
		one = access_entry(a, issuers, i);
		sign_in(a, &one);
	}
	n = access_count(a, &rules, ACCESS_ADMINISTRATORS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		one = access_entry(a, &rules, i);
		administrator(a, &one, issuers);
	}
}
