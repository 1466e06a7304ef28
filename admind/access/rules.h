/*
 * The access document in memory, the claims of a signed token, and the decision
 * between them. Pure: bytes in, structs out (docs/decisions/0090).
 *
 *  compiled.c  the document, from the fields that admind-check made
 *  claims.c    the claims, likewise
 *  issuers.c   which issuer a token may be of
 *  rules.c     which permission set the claims get, and which rights follow
 *
 * admind-check reads hostile bytes and may have been taken over by them. So its
 * fields are read strictly: a length, a number or a name that can't be is an
 * error, and the document or the token counts for nothing.
 */
#ifndef RULES_H
#define RULES_H

#include <stdbool.h>

#include "access_fields.h"
#include "bounds.h"
#include "buf.h"
#include "bytes.h"
#include "err.h"
#include "ipc_values.h"
#include "keysets.h"
#include "notify_fields.h"

struct endpoint; /* endpoint.h */

struct issuer {
	struct ipc_bytes record; /* the whole record, with its keys */
	struct ipc_bytes name, url;
	unsigned listeners;             /* mask of 1 << enum listener */
	uint8_t via;                    /* enum credential_via */
	uint64_t leeway_us, max_age_us; /* max_age_us 0: not asked */
	bool narrows; /* the token's scopes narrow those of the set */
	bool bound;   /* each token is bound to one request */
	bool fetched; /* its keys are fetched (keysets.h) */
};

struct rule {
	const struct issuer *issuer;
	const struct access_set *set;
	enum rule_claim claim;
	struct ipc_bytes record; /* its values are fields RULE_VALUE */
};

struct access_set {
	struct ipc_bytes record, name;
	unsigned scopes;    /* mask of enum permit_scope */
	char *allow, *deny; /* one pattern a line; owned */
	int64_t per_minute; /* calls of each principal; 0: the usual limit */
};

/* The collector of telemetry (docs/decisions/0107). */
struct telemetry {
	struct ipc_bytes record, url; /* empty: nothing is sent */
	bool spans, metrics, principals;
	uint64_t every_s;
};

/* A target of notifications (docs/decisions/0112). */
struct notify {
	struct ipc_bytes name, text;
	struct ipc_bytes server, key; /* of its secret, or empty */
};

/* A document. All bytes point into `fields`. */
struct compiled {
	struct buf fields;
	struct ipc_bytes resource; /* empty: there are no issuers */
	struct issuer issuer[ACCESS_ISSUERS_MAX];
	struct rule rule[ACCESS_RULES_MAX];
	struct access_set set[ACCESS_SETS_MAX];
	struct endpoint *endpoint[ENDPOINTS_MAX]; /* referenced */
	unsigned nissuers, nrules, nsets, nendpoints;
	struct telemetry telemetry;
	struct notify notify[NOTIFY_TARGETS_MAX];
	unsigned nnotify;
	struct ipc_bytes panel; /* for links in notifications; empty: none */
};

/* The claims of a token, borrowed from the fields. */
struct claims {
	struct ipc_bytes issuer, sub, email, client;
	struct ipc_bytes group[JWT_GROUPS_MAX];
	unsigned ngroups;
	/* The token is for these endpoints alone; none: for the whole. */
	struct ipc_bytes endpoint[ENDPOINTS_MAX];
	unsigned nendpoints;
	unsigned scopes; /* mask of enum permit_scope; 0 if it names none */
	uint64_t exp_us, iat_us; /* iat_us 0: not in the token */
	struct ipc_bytes bound;  /* record of enum bound_field, or empty */
};

/* Reads the fields of CHECK_ACCESS, which are copied. Returns NULL with err if
 * they are malformed, or without memory. */
struct compiled *compiled_new(struct ipc_bytes fields, struct err *);
void compiled_free(struct compiled *); /* NULL is harmless */

/* Reads the fields of CHECK_JWT, which must outlive the claims. 0 or -1. */
int claims_read(struct claims *, struct ipc_bytes fields, struct err *);

/* Returns the issuer of this name, or NULL. */
const struct issuer *issuers_named(
    const struct compiled *, struct ipc_bytes name);
/* Returns whether any issuer serves this listener in this header. */
bool issuers_serve(const struct compiled *, unsigned listener, uint8_t via);
/* Returns whether any issuer serves this listener. */
bool issuers_at(const struct compiled *, unsigned listener);
/* Returns whether any issuer of this listener binds its tokens to a request. */
bool issuers_bind(const struct compiled *, unsigned listener);
/* Appends the records of those issuers, as fields ACCESS_ISSUER. Fetched keys
 * that serve now (since boot) are put into them. */
void issuers_put(const struct compiled *, const struct keysets *,
    uint64_t now_ms, unsigned listener, uint8_t via, struct buf *);
/* Makes the sets of fetched keys those of this document; NULL: of none. */
void issuers_follow(const struct compiled *, struct keysets *);
/* Returns the latest moment (Unix time in us) at which a token with these
 * claims, accepted at now_us, may still be used. It is `exp`; or, if the token
 * was accepted after that, `exp` and the issuer's leeway. It is earlier if the
 * issuer asks for an age. */
uint64_t issuers_until(
    const struct issuer *, const struct claims *, uint64_t now_us);

/* Returns whether the claims are those of a rule's issuer and have one of its
 * values. None of the values is empty. */
bool rules_fit(const struct rule *, const struct claims *);
/* Returns the set of the first rule that fits; NULL: none does. */
const struct access_set *rules_set(
    const struct compiled *, const struct claims *);
/* Returns the endpoint of this name at this listener, or NULL. */
struct endpoint *rules_endpoint(
    const struct compiled *, struct ipc_bytes name, unsigned listener);
/* Returns the set of this name, or NULL. */
const struct access_set *rules_set_named(
    const struct compiled *, struct ipc_bytes name);
/* Returns the scopes that a person gets: those of the set, and of the token if
 * the issuer narrows. */
unsigned rules_scopes(
    const struct issuer *, const struct access_set *, const struct claims *);
/* Returns whether all that the documents say about this issuer's people is the
 * same: the issuer's record, its rules in their order, and the rights of their
 * sets. Nothing ends by another rate. */
bool rules_same(
    const struct compiled *, const struct compiled *, struct ipc_bytes issuer);

#endif
