/*
 * Bytes that a browser brings of a passkey.
 *
 * The first byte picks: 0 an attestation object, 1 authenticator data of an
 * assertion, 2 those of a registration, 3 client data, 4 a signature of ES256,
 * 5 of EdDSA. These must hold: an accepted credential has an id within the
 * bytes and a key that we verify with; client data of a random challenge that
 * are accepted begin with it; no signature of an unknown text verifies.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ceremony.h"
#include "ids.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
judge(const struct authdata *d, bool registers, struct ipc_bytes all)
{
	if (!registers) {
		if (d->id.n != 0)
			abort();
		return;
	}
	if (d->id.n == 0 || d->id.n > AUTHDATA_ID_MAX || d->id.p < all.p ||
	    d->id.p + d->id.n > all.p + all.n || !authkey_good(&d->key))
		abort();
}

static void
client(struct ipc_bytes b)
{
	static const uint8_t challenge[CLIENTDATA_CHALLENGE] = {1};
	static const char head[] =
	    "{\"type\":\"webauthn.get\",\"challenge\":"
	    "\"AQAAAAAAAAAAAAAAAAAAAAAA"
	    "AAAAAAAAAAAAAAAAAAA\",\"origin\":\"http://localhost:8000\"";

	if (clientdata_check(
		b, false, challenge, "http://localhost:8000", NULL) == 0 &&
	    (b.n < sizeof(head) || memcmp(b.p, head, sizeof(head) - 1) != 0))
		abort();
}

/* Verifies under the base point of the curve as the key (SEC 2, section 2.4.2;
 * RFC 8032 section 5.1). */
static void
signature(struct ipc_bytes b, int alg)
{
	struct authkey key = {AUTHKEY_ES256,
	    {0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6,
		0xe5, 0x63, 0xa4, 0x40, 0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d,
		0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2,
		0x96},
	    {0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb,
		0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b,
		0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51,
		0xf5}};
	struct ipc_hash h = {{0x55}};

	if (alg == AUTHKEY_EDDSA) {
		key.alg = alg;
		memset(key.x, 0x66, sizeof(key.x));
		key.x[0] = 0x58;
	}
	if (!authkey_good(&key) ||
	    authkey_verify(&key, ipc_str("a text"), &h, b))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ipc_bytes b = ipc_bytes(data + 1, size - 1);
	struct authdata d;

	if (size == 0)
		return 0;
	switch (data[0]) {
	case 0:
		if (authdata_attested(b, &d, NULL) == 0)
			judge(&d, true, b);
		break;
	case 1:
	case 2:
		if (authdata_read(b, data[0] == 2, &d, NULL) == 0)
			judge(&d, data[0] == 2, b);
		break;
	case 3:
		client(b);
		break;
	case 4:
		signature(b, AUTHKEY_ES256);
		break;
	case 5:
		signature(b, AUTHKEY_EDDSA);
		break;
	default:
		break;
	}
	return 0;
}
