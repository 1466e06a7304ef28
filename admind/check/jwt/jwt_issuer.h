/* One issuer of the access document: the record ACCESS_ISSUER, as CHECK_ACCESS
 * made it and CHECK_JWT brings it back. */
#ifndef JWT_ISSUER_H
#define JWT_ISSUER_H

#include <stdbool.h>

#include "access_fields.h"
#include "bytes.h"
#include "tlv.h"

struct jwt_issuer {
	struct ipc_bytes record; /* enum issuer_field; holds the lists */
	struct ipc_bytes name, url;
	uint64_t leeway_s, max_age_s;
	unsigned algorithms; /* mask of 1 << enum jwt_algorithm */
	unsigned via;        /* enum credential_via */
	unsigned listeners;  /* mask of 1 << enum listener */
	bool email_trusted;  /* every `email` counts */
	bool scopes;         /* the token's scopes narrow the set */
	bool id_tokens;      /* ID tokens are accepted */
	bool bound;          /* each token is bound to one request */
	bool fetched;        /* its keys are fetched; there may be none */
};

/* One key of an issuer. */
struct jwt_issuer_key {
	struct ipc_bytes id; /* p NULL: absent */
	unsigned algorithm;  /* 0: any that fits */
	struct ipc_bytes spki;
};

/* Reads a record, which must outlive the issuer. 0, or -1 if it is not one that
 * CHECK_ACCESS makes. */
int jwt_issuer_read(struct ipc_bytes record, struct jwt_issuer *);
/* Tells whether a list of the issuer has this value. */
bool jwt_issuer_lists(
    const struct jwt_issuer *, uint8_t tag, struct ipc_bytes value);
/* Tells whether a list of the issuer has a value at all. */
bool jwt_issuer_has(const struct jwt_issuer *, uint8_t tag);
/* Opens the fields of the issuer, for jwt_issuer_next_key(). */
void jwt_issuer_open(const struct jwt_issuer *, struct tlv_reader *);
/* Reads the next key. 1, 0 at the end, -1 if the record is malformed. */
int jwt_issuer_next_key(struct tlv_reader *, struct jwt_issuer_key *);

#endif
