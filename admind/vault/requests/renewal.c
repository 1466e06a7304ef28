#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anchors.h"
#include "ids.h"
#include "macs.h"
#include "renew.h"
#include "renewal.h"
#include "stored.h"
#include "vault.h"

static const struct {
	const char *name, *shown;
} kinds[] = {
#define K(NAME, name, shown) {name, shown},
    RENEWAL_KINDS(K)
#undef K
};

const char *
renewal_name(enum renewal_kind kind)
{
	return kinds[kind].name;
}

int
renewal_next(struct tlv_reader *r, struct renewal_row *out)
{
	struct ipc_bytes *const fields[] = {
	    &out->id, &out->place, &out->column, &out->value};
	struct tlv f;
	int rc;

	for (unsigned i = 0; i < 4; i++) {
		if ((rc = tlv_next(r, &f)) != 1)
			return i == 0 ? rc : -1;
		if (f.tag != RENEW_ID + i)
			return -1;
		*fields[i] = ipc_bytes(f.p, f.n);
	}
	return 1;
}

static int
renew_anchor(const struct keys *k, const struct renewal_row *r, struct buf *out,
    struct err *err)
{
	struct ipc_hash head, signature;
	char number[24], *end;
	uint64_t seq;

	if (r->place.n == 0 || r->place.n >= sizeof(number) ||
	    r->value.n != sizeof(signature.b) || r->column.n != HEX32_LEN ||
	    hex_decode((const char *)r->column.p, r->column.n, head.b) == -1)
		return err_set(err, FAILURE_FORBIDDEN, "not an anchor");
	memcpy(number, r->place.p, r->place.n);
	number[r->place.n] = '\0';
	seq = strtoull(number, &end, 10);
	memcpy(signature.b, r->value.p, sizeof(signature.b));
	if (*end != '\0' || anchors_check(k, seq, &head, &signature) == NULL ||
	    anchors_sign(k, seq, &head, &signature) == -1)
		return err_set(
		    err, FAILURE_FORBIDDEN, "the signature does not verify");
	buf_clear(out);
	buf_put(out, signature.b, sizeof(signature.b));
	return 0;
}

static int
renew_stored(const struct keys *k, enum stored_table table,
    const struct renewal_row *r, struct buf *out, struct err *err)
{
	const struct stored_place at = {table, r->place, r->column};
	struct buf plain;
	int rc = -1;

	buf_init(&plain, MACS_MAX);
	if (stored_open(k, &at, r->value.p, r->value.n, &plain, err) == 0)
		rc = stored_seal(k, &at, plain.p, plain.len, out, err);
	buf_free(&plain); /* wipes it */
	return rc;
}

/* Renews only the person's newest verifier, as far as we know. Older verifiers
 * are not renewed, because they could be used again after the next restart
 * (verifiers.h). */
static int
renew_verifier(struct vault *v, const struct renewal_row *r, struct buf *out,
    struct err *err)
{
	char name[SESSIONS_USER_MAX + 1], role[SESSIONS_ROLE_MAX + 1];
	char phc[SLOTS_ENCODED_MAX];
	struct ipc_id handle;
	uint64_t time_us;
	int rc;

	if (r->place.n >= sizeof(name) || r->column.n >= sizeof(role))
		return err_set(err, FAILURE_FORBIDDEN, "nobody's verifier");
	(void)snprintf(name, sizeof(name), "%.*s", (int)r->place.n,
	    (const char *)r->place.p);
	(void)snprintf(role, sizeof(role), "%.*s", (int)r->column.n,
	    (const char *)r->column.p);
	rc = verifiers_open(v->verifiers, v->keys, name, role, r->value, phc,
	    &handle, &time_us, err);
	explicit_bzero(phc, sizeof(phc));
	return rc == 0 ? renew_stored(v->keys, STORED_VERIFIERS, r, out, err)
		       : -1;
}

/* The same for a person's passkeys. */
static int
renew_passkeys(struct vault *v, const struct renewal_row *r, struct buf *out,
    struct err *err)
{
	char name[PASSKEYS_NAME_MAX + 1];
	struct passkeys set;

	if (r->place.n >= sizeof(name))
		return err_set(err, FAILURE_FORBIDDEN, "nobody's passkeys");
	(void)snprintf(name, sizeof(name), "%.*s", (int)r->place.n,
	    (const char *)r->place.p);
	if (passkeys_open(
		v->passkey_times, v->keys, name, r->value, &set, err) == -1)
		return -1;
	return renew_stored(v->keys, STORED_PASSKEYS, r, out, err);
}

/* Renews a seal. admind names its purpose, and a seal of another purpose does
 * not verify. */
static int
renew_seal(const struct keys *k, const struct renewal_row *r, struct buf *out,
    struct err *err)
{
	static const struct {
		const char *name;
		enum macs_purpose purpose;
	} known[] = {{"version", MACS_VERSION}, {"call", MACS_CALL},
	    {"grant", MACS_GRANT}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (ipc_streq(r->column, known[i].name))
			return macs_renew(k, known[i].purpose, r->value.p,
			    r->value.n, out, err);
	return err_set(err, FAILURE_FORBIDDEN, "a seal of nothing known");
}

/* Renews the policy that is in force, and no other. */
static int
renew_policy(struct vault *v, const struct renewal_row *r, struct buf *out,
    struct err *err)
{
	struct policy *now = &v->policy;
	struct ipc_hash hash;

	policy_take(v->keys, r->value, now);
	sha256(r->value.p, r->value.n, &hash);
	if (!ct_equal(hash.b, now->seal.b, sizeof(hash.b)))
		return err_set(err, FAILURE_FORBIDDEN,
		    "it is not ours, or not the newest one");
	return macs_renew(
	    v->keys, MACS_POLICY, r->value.p, r->value.n, out, err);
}

/* Renews the access document that holds, and no older one. One that is dated
 * ahead is renewed, too: it may hold when the clock is right. */
static int
renew_access(struct vault *v, const struct renewal_row *r, struct buf *out,
    struct err *err)
{
	struct access a;

	if (access_read(v->keys, r->value, &a, err) == -1)
		return -1;
	access_take(&a, now_us(), &v->access);
	if (a.serial < v->access.serial)
		return err_set(
		    err, FAILURE_FORBIDDEN, "it is not the newest one");
	return macs_renew(
	    v->keys, MACS_ACCESS, r->value.p, r->value.n, out, err);
}

int
renewal_make(struct vault *v, enum renewal_kind kind,
    const struct renewal_row *r, struct buf *out, struct err *err)
{
	const struct keys *k = v->keys;

	switch (kind) {
	case RENEWAL_SECRET:
		return renew_stored(k, STORED_SECRETS, r, out, err);
	case RENEWAL_VERIFIER:
		return renew_verifier(v, r, out, err);
	case RENEWAL_PASSKEYS:
		return renew_passkeys(v, r, out, err);
	case RENEWAL_SEAL:
		return renew_seal(k, r, out, err);
	case RENEWAL_FIRST:
		return macs_renew(
		    k, MACS_FIRST, r->value.p, r->value.n, out, err);
	case RENEWAL_POLICY:
		return renew_policy(v, r, out, err);
	case RENEWAL_ACCESS:
		return renew_access(v, r, out, err);
	case RENEWAL_ANCHOR:
		return renew_anchor(k, r, out, err);
	case RENEWAL_COUNT:
		break;
	}
	return err_set(err, FAILURE_INTERNAL, "nothing rests in this way");
}

void
renewal_tell(enum renewal_kind kind, const struct renewal_row *r,
    const struct err *why, char *line, size_t size)
{
	struct ipc_bytes what = kind == RENEWAL_SECRET ? r->place : r->id;
	bool key = kind == RENEWAL_SECRET;
	int n;

	n = snprintf(line, size, "%s %.*s%s%.*s: %s\n", kinds[kind].shown,
	    (int)what.n, (const char *)what.p, key ? "/" : "",
	    key ? (int)r->column.n : 0, (const char *)r->column.p, why->text);
	if (n < 0 || (size_t)n >= size)
		line[size - 2] = '\n';
}
