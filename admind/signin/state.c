#include "state.h"

#include <string.h>

#include "ids.h"

enum {
	ID = sizeof(struct ipc_id),
	HASH = sizeof(struct ipc_hash),
	READ = ID + 8 + HASH, /* bytes that `state` carries in the clear */
	ALL = READ + HASH     /* and its MAC */
};

_Static_assert((ALL * 8 + 5) / 6 == STATE_TEXT, "base64url of ALL bytes");

/* Computes a MAC over all parts, for one purpose. All parts but the purpose
 * have fixed lengths, so two different sign-ins never have the same input. */
static void
mac(const uint8_t key[KEY_LEN], const char *purpose, const struct state *s,
    struct ipc_hash *out)
{
	uint8_t in[16 + READ + HASH] = {0}, *p = in + 16;

	memcpy(in, purpose, strnlen(purpose, 16));
	memcpy(p, s->id.b, ID);
	p += ID;
	for (int i = 0; i < 8; i++)
		*p++ = (uint8_t)(s->begun_ms >> (56 - 8 * i));
	memcpy(p, s->ticket.b, HASH);
	memcpy(p + HASH, s->basis.b, HASH);
	hmac_sha256(key, in, sizeof(in), out);
}

void
state_make(
    const uint8_t key[KEY_LEN], const struct state *s, char out[STATE_TEXT + 1])
{
	uint8_t raw[ALL], *p = raw;
	struct ipc_hash tag;

	mac(key, "state", s, &tag);
	memcpy(p, s->id.b, ID);
	p += ID;
	for (int i = 0; i < 8; i++)
		*p++ = (uint8_t)(s->begun_ms >> (56 - 8 * i));
	memcpy(p, s->ticket.b, HASH);
	memcpy(p + HASH, tag.b, HASH);
	b64url_encode(raw, sizeof(raw), out);
}

int
state_read(struct state *s, struct ipc_bytes text)
{
	uint8_t raw[ALL + 2], *p = raw;

	memset(s, 0, sizeof(*s));
	if (text.n != STATE_TEXT ||
	    b64url_decode((const char *)text.p, text.n, raw) != ALL)
		return -1;
	memcpy(s->id.b, p, ID);
	p += ID;
	for (int i = 0; i < 8; i++)
		s->begun_ms = s->begun_ms << 8 | *p++;
	memcpy(s->ticket.b, p, HASH);
	memcpy(s->mac.b, p + HASH, HASH);
	return 0;
}

bool
state_is(const uint8_t key[KEY_LEN], const struct state *s)
{
	struct ipc_hash tag;

	mac(key, "state", s, &tag);
	return ct_equal(tag.b, s->mac.b, HASH);
}

static void
secret(const uint8_t key[KEY_LEN], const char *purpose, const struct state *s,
    char out[STATE_SECRET_TEXT + 1])
{
	struct ipc_hash h;

	mac(key, purpose, s, &h);
	b64url_encode(&h, sizeof(h), out);
	explicit_bzero(&h, sizeof(h));
}

void
state_verifier(const uint8_t key[KEY_LEN], const struct state *s,
    char out[STATE_SECRET_TEXT + 1])
{
	secret(key, "verifier", s, out);
}

void
state_nonce(const uint8_t key[KEY_LEN], const struct state *s,
    char out[STATE_SECRET_TEXT + 1])
{
	secret(key, "nonce", s, out);
}

void
state_challenge(const char *verifier, char out[STATE_SECRET_TEXT + 1])
{
	struct ipc_hash h;

	sha256(verifier, strlen(verifier), &h);
	b64url_encode(&h, sizeof(h), out);
}
