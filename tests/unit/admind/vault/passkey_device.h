/*
 * An authenticator in software, for tests of passkeys: it makes the bytes that
 * a browser would bring, right or wrong in one place.
 */
#ifndef PASSKEY_DEVICE_H
#define PASSKEY_DEVICE_H

#include <openssl/evp.h>

#include "buf.h"
#include "ceremony.h"

enum {
	DEVICE_UP = 0x01,
	DEVICE_UV = 0x04,
	DEVICE_BE = 0x08,
	DEVICE_BS = 0x10,
	DEVICE_AT = 0x40,
	DEVICE_ED = 0x80
};

struct device {
	EVP_PKEY *key;
	int alg;
	uint8_t id[32];
	uint8_t flags;
	uint32_t count;
	const char *rp_id;
};

/* Makes a device with a fresh key; flags UP and UV, counter 0. */
struct device device_new(int alg);
void device_free(struct device *);
/* The device's COSE_Key, id and authenticator data, appended to b. */
void device_cose(const struct device *, struct buf *b);
void device_auth(const struct device *, bool registers, struct buf *b);
/* Appends a byte string of CBOR. */
void device_blob(struct ipc_bytes, struct buf *b);
/* An attestation object with these authenticator data. */
void device_attest(struct ipc_bytes auth, struct buf *b);
/* Client data with these members. */
void device_client(bool registers, const uint8_t *challenge, const char *origin,
    struct buf *b);
/* Signs authenticator data and client data. */
void device_sign(const struct device *, struct ipc_bytes auth,
    struct ipc_bytes client, struct buf *b);

#endif
