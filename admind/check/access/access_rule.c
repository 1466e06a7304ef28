#include <string.h>

#include "access_form.h"
#include "access_rule.h"
#include "tlv.h"

bool
access_rule_names(struct access_doc *a, const struct access_at *at,
    const struct access_at *list, const char *fault)
{
	const struct doc_node *name;

	if (at->v == NULL)
		return false;
	for (uint32_t i = 0; at->v->kind == DOC_STRING && list->v != NULL &&
	    list->v->kind == DOC_ARRAY && i < list->v->count;
	    i++) {
		name = doc_get(a->d, doc_kid(a->d, list->v, i), "name");
		if (name != NULL && name->kind == DOC_STRING &&
		    name->len == at->v->len &&
		    memcmp(name->str, at->v->str, name->len) == 0)
			return true;
	}
	access_fault(a, at, fault);
	return false;
}

/* Puts the values of a rule, in the form that its claim has. */
static void
values(struct access_doc *a, const struct access_at *rule, unsigned claim,
    struct buf *record)
{
	static access_form *const forms[] = {[RULE_SUB] = access_form_sub,
	    [RULE_EMAIL] = access_form_email,
	    [RULE_EMAIL_DOMAIN] = access_form_domain,
	    [RULE_GROUP] = access_form_value,
	    [RULE_CLIENT] = access_form_value};
	struct access_list list = {1, ACCESS_VALUES_MAX, NULL,
	    "must have an entry (the claim \"any\" is for everyone)"};
	struct access_at at = access_get(a, rule, "values");

	if (claim == RULE_ANY) {
		if (at.v != NULL)
			access_fault(a, &at,
			    "must be absent: the claim \"any\" has no values");
		return;
	}
	if (at.v == NULL) {
		report_add(a->r, &rule->path, "must have \"values\"");
		return;
	}
	list.form = forms[claim];
	if (access_texts(a, &at, &list))
		access_put_texts(a, &at, record, RULE_VALUE);
}

void
access_rule_who(struct access_doc *a, const struct access_at *rule,
    const struct access_at *issuers, struct buf *record)
{
	/* In the order of enum rule_claim, which begins with 1. */
	static const char *const claims[] = {
	    "sub", "email", "email_domain", "group", "client", "any", NULL};
	struct access_at at = access_get(a, rule, "issuer");
	unsigned claim;

	if (access_rule_names(a, &at, issuers,
		"must be the name of an issuer of this document"))
		tlv_put(record, RULE_ISSUER, at.v->str, at.v->len);
	at = access_get(a, rule, "claim");
	claim = RULE_SUB + access_word(a, &at, claims, RULE_ANY);
	if (at.v != NULL && claim <= RULE_ANY) {
		access_put_u8(record, RULE_CLAIM, claim);
		values(a, rule, claim, record);
	}
}
