/* The access document, as far as administrators sign in by it. Pure: bytes in,
 * structs out (docs/decisions/0105). */
#ifndef OFFERS_H
#define OFFERS_H

#include "admin_action.h"
#include "buf.h"
#include "crypto.h"
#include "err.h"
#include "rules.h"
#include "signin_fields.h"

enum {
	OFFERS_SUB_MAX = 32, /* of a `sub` that is a name as it is */
	/* NAME@ISSUER */
	OFFERS_NAME_MAX = OFFERS_SUB_MAX + 1 + ACCESS_NAME_MAX
};

/* One issuer by which administrators sign in. The bytes are the document's. */
struct offer {
	const struct issuer *issuer;
	struct ipc_bytes record; /* its scopes are fields SIGN_IN_SCOPE */
	struct ipc_bytes client, redirect;
	/* SHA-256 of the issuer's record without fetched keys, of this record,
	 * and of each rule of its administrators, in their order. As long as it
	 * is the same, so is everybody's role. */
	struct ipc_hash basis;
};

struct offers {
	struct offer offer[ACCESS_ISSUERS_MAX];
	unsigned n;
};

/* Reads the offers of a document, which must outlive them. NULL: none. Records
 * that admind-check can't have made offer nothing. */
void offers_read(struct offers *, const struct compiled *);
const struct offer *offers_named(const struct offers *, struct ipc_bytes name);
const struct offer *offers_of(
    const struct offers *, const struct ipc_hash *basis);
/* Returns the role of the first rule that fits. 0, or -1: none fits. */
int offers_role(const struct compiled *, const struct offer *,
    const struct claims *, enum admin_role *);
/* Returns whether an answer of an issuer must have `iss` (RFC 9207): where
 * administrators sign in by more than one issuer, or where the issuer says that
 * it sends one. sign_in: fields of enum keys_signin_field of its metadata. */
bool offers_need_iss(const struct offers *, struct ipc_bytes sign_in);
/* Writes NAME@ISSUER of a subject. A `sub` that can't be a name, or that looks
 * like a hash, is the first 16 hex digits of its SHA-256. So two people of an
 * issuer never have one name, and no password's administrator has an @. */
void offers_name(struct ipc_bytes issuer, struct ipc_bytes sub,
    char out[OFFERS_NAME_MAX + 1]);
/* Returns whether the address of the issuer's sign-in is at the issuer's own
 * host, or at one of its key_hosts. source: as in a keyset. */
bool offers_covers(struct ipc_bytes source, struct ipc_bytes url);
/* Appends the address to which the browser goes. */
void offers_url(struct buf *, const struct offer *, struct ipc_bytes endpoint,
    const char *state, const char *nonce, const char *challenge);

#endif
