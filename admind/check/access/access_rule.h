/* The people that a rule of an access document is for. */
#ifndef ACCESS_RULE_H
#define ACCESS_RULE_H

#include "access_read.h"

/* Checks that a member is the `name` of an entry of a list. Returns false if it
 * is absent, or, which is reported as `fault`, no such name. */
bool access_rule_names(struct access_doc *, const struct access_at *member,
    const struct access_at *list, const char *fault);
/* Checks issuer, claim and values, and appends RULE_ISSUER, RULE_CLAIM and each
 * RULE_VALUE. */
void access_rule_who(struct access_doc *, const struct access_at *rule,
    const struct access_at *issuers, struct buf *record);

#endif
