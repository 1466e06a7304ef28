#include <string.h>

#include "jwt_issuer.h"

static bool
read_u8(const struct tlv *f, unsigned *v)
{
	if (f->n != 1)
		return false;
	*v = f->p[0];
	return true;
}

static bool
read_bool(const struct tlv *f, bool *v)
{
	unsigned u = 0;
	bool good = read_u8(f, &u) && u <= 1;

	*v = u != 0;
	return good;
}

/* Reads one field into the issuer. Lists stay in the record. */
static bool
field(struct jwt_issuer *is, const struct tlv *f)
{
	bool discovery;
	unsigned u = 0;

	switch (f->tag) {
	case ISSUER_NAME:
		is->name = ipc_bytes(f->p, f->n);
		return true;
	case ISSUER_URL:
		is->url = ipc_bytes(f->p, f->n);
		return true;
	case ISSUER_ALGORITHM:
		if (!read_u8(f, &u) || u < JWT_RS256 || u > JWT_EDDSA)
			return false;
		is->algorithms |= 1u << u;
		return true;
	case ISSUER_VIA:
		return read_u8(f, &is->via);
	case ISSUER_LISTENERS:
		return read_u8(f, &is->listeners);
	case ISSUER_LEEWAY_S:
		return tlv_u64(f, &is->leeway_s) == 0;
	case ISSUER_MAX_AGE_S:
		return tlv_u64(f, &is->max_age_s) == 0;
	case ISSUER_EMAIL:
		return read_bool(f, &is->email_trusted);
	case ISSUER_SCOPES:
		return read_bool(f, &is->scopes);
	case ISSUER_ID_TOKENS:
		return read_bool(f, &is->id_tokens);
	case ISSUER_BOUND:
		return read_bool(f, &is->bound);
	case ISSUER_AUDIENCE:
	case ISSUER_ENDPOINT:
	case ISSUER_TYPE:
	case ISSUER_CLIENT:
	case ISSUER_KEY:
	case ISSUER_KEYS_HOST:
		return true;
	case ISSUER_KEYS_URL:
		is->fetched = true;
		return true;
	case ISSUER_DISCOVERY:
		return read_bool(f, &discovery);
	default:
		return false;
	}
}

/* A record without one of the fields that narrow is refused: a field that got
 * lost on the way must not open anything. */
int
jwt_issuer_read(struct ipc_bytes record, struct jwt_issuer *out)
{
	static const uint8_t needed[] = {ISSUER_NAME, ISSUER_URL,
	    ISSUER_AUDIENCE, ISSUER_ALGORITHM, ISSUER_VIA, ISSUER_LISTENERS,
	    ISSUER_LEEWAY_S, ISSUER_MAX_AGE_S, ISSUER_TYPE, ISSUER_EMAIL,
	    ISSUER_SCOPES, ISSUER_ID_TOKENS, ISSUER_BOUND};
	struct jwt_issuer is = {.record = record};
	struct tlv_reader r;
	uint32_t seen = 0;
	struct tlv f;
	int rc;

	tlv_open(&r, record.p, record.n);
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (!field(&is, &f))
			return -1;
		seen |= 1u << f.tag;
	}
	for (size_t i = 0; i < sizeof(needed); i++)
		if ((seen & 1u << needed[i]) == 0)
			rc = -1;
	/* Keys that are fetched may not be there yet. */
	if ((seen & 1u << ISSUER_KEY) == 0 && !is.fetched)
		rc = -1;
	if (rc == 0)
		*out = is;
	return rc;
}

bool
jwt_issuer_lists(
    const struct jwt_issuer *is, uint8_t tag, struct ipc_bytes value)
{
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, is->record.p, is->record.n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == tag && f.n == value.n &&
		    (f.n == 0 || memcmp(f.p, value.p, f.n) == 0))
			return true;
	return false;
}

bool
jwt_issuer_has(const struct jwt_issuer *is, uint8_t tag)
{
	struct tlv f;

	return tlv_find(is->record.p, is->record.n, tag, &f) == 1;
}

void
jwt_issuer_open(const struct jwt_issuer *is, struct tlv_reader *r)
{
	tlv_open(r, is->record.p, is->record.n);
}

int
jwt_issuer_next_key(struct tlv_reader *r, struct jwt_issuer_key *key)
{
	struct tlv_reader inside;
	struct tlv f, k;
	unsigned u = 0;
	int rc;

	while ((rc = tlv_next(r, &f)) == 1 && f.tag != ISSUER_KEY)
		;
	if (rc != 1)
		return rc;
	memset(key, 0, sizeof(*key));
	tlv_open(&inside, f.p, f.n);
	while ((rc = tlv_next(&inside, &k)) == 1)
		switch (k.tag) {
		case KEY_ID:
			key->id = ipc_bytes(k.p, k.n);
			break;
		case KEY_ALGORITHM:
			if (!read_u8(&k, &u))
				return -1;
			key->algorithm = u;
			break;
		case KEY_SPKI:
			key->spki = ipc_bytes(k.p, k.n);
			break;
		default:
			return -1;
		}
	return rc == 0 && key->spki.n > 0 ? 1 : -1;
}
