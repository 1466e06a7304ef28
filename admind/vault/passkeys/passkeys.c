#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "passkeys.h"
#include "stored.h"
#include "tlv.h"

/* Tags of a set, and of a passkey in it. Only a vault writes them, so a set of
 * another form is of a later release. */
enum { SET_TIME = 1, SET_HANDLE = 2, SET_PASSKEY = 3 };
enum {
	ROW_ID = 1,
	ROW_ALG,
	ROW_X,
	ROW_Y,
	ROW_COUNT,
	ROW_BACKUP,
	ROW_CAP,
	ROW_LABEL,
	ROW_CREATED,
	ROW_USED,
	ROW_TAGS
};

static void
put_row(struct buf *b, const struct passkey *k)
{
	tlv_put(b, ROW_ID, k->id, k->nid);
	tlv_put_u64(b, ROW_ALG, (uint64_t)-k->key.alg);
	tlv_put(b, ROW_X, k->key.x, sizeof(k->key.x));
	tlv_put(b, ROW_Y, k->key.y, sizeof(k->key.y));
	tlv_put_u64(b, ROW_COUNT, k->sign_count);
	tlv_put_u64(b, ROW_BACKUP, k->backup_eligible);
	tlv_puts(b, ROW_CAP, k->cap);
	tlv_puts(b, ROW_LABEL, k->label);
	tlv_put_u64(b, ROW_CREATED, k->created_ms);
	tlv_put_u64(b, ROW_USED, k->used_ms);
}

int
passkeys_seal(const struct verifiers *times, const struct keys *keys,
    const char *name, const struct passkeys *set, struct buf *out,
    uint64_t *time_us, struct err *err)
{
	struct stored_place at = {
	    STORED_PASSKEYS, ipc_str(name), ipc_str("passkeys")};
	uint64_t t = verifiers_now(times, name);
	struct buf b, row;
	int rc = -1;

	buf_init(&b, PASSKEYS_PLAIN_MAX);
	buf_init(&row, PASSKEYS_PLAIN_MAX);
	tlv_put_u64(&b, SET_TIME, t);
	tlv_put(&b, SET_HANDLE, set->handle.b, sizeof(set->handle.b));
	for (size_t i = 0; i < set->n; i++) {
		buf_clear(&row);
		put_row(&row, &set->row[i]);
		if (row.failed)
			b.failed = true;
		else
			tlv_put(&b, SET_PASSKEY, row.p, row.len);
	}
	if (b.failed)
		err_set(err, FAILURE_BUSY, "no memory for the passkeys");
	else if (stored_seal(keys, &at, b.p, b.len, out, err) == 0)
		rc = 0;
	if (rc == 0)
		*time_us = t;
	buf_free(&row);
	buf_free(&b);
	return rc;
}

static bool
take(const struct tlv *f, void *to, size_t n)
{
	if (f->n != n)
		return false;
	memcpy(to, f->p, n);
	return true;
}

/* Copies a text that has at most size - 1 bytes. */
static bool
take_text(const struct tlv *f, char *to, size_t size)
{
	if (f->n >= size)
		return false;
	if (f->n > 0)
		memcpy(to, f->p, f->n);
	to[f->n] = '\0';
	return true;
}

static bool
take_field(const struct tlv *f, struct passkey *k)
{
	uint64_t v = 0;

	if (f->n == sizeof(v) && f->tag != ROW_ID && f->tag != ROW_CAP &&
	    f->tag != ROW_LABEL)
		(void)tlv_u64(f, &v);
	switch (f->tag) {
	case ROW_ID:
		if (f->n == 0 || f->n > sizeof(k->id))
			return false;
		k->nid = f->n;
		return take(f, k->id, f->n);
	case ROW_ALG:
		k->key.alg = -(int)v;
		return v == -AUTHKEY_ES256 || v == -AUTHKEY_EDDSA;
	case ROW_X:
		return take(f, k->key.x, sizeof(k->key.x));
	case ROW_Y:
		return take(f, k->key.y, sizeof(k->key.y));
	case ROW_COUNT:
		k->sign_count = (uint32_t)v;
		return v <= UINT32_MAX;
	case ROW_BACKUP:
		k->backup_eligible = v == 1;
		return v <= 1;
	case ROW_CAP:
		return take_text(f, k->cap, sizeof(k->cap));
	case ROW_LABEL:
		return take_text(f, k->label, sizeof(k->label));
	case ROW_CREATED:
		k->created_ms = v;
		return true;
	case ROW_USED:
		k->used_ms = v;
		return true;
	default:
		return false;
	}
}

/* Reads a passkey: each tag once, in order. */
static bool
take_row(const struct tlv *list, struct passkey *k)
{
	struct tlv_reader r;
	struct tlv f;
	unsigned tag = ROW_ID;
	int rc;

	tlv_open(&r, list->p, list->n);
	while ((rc = tlv_next(&r, &f)) == 1)
		if (f.tag != tag++ || !take_field(&f, k))
			return false;
	return rc == 0 && tag == ROW_TAGS;
}

static bool
take_set(const struct buf *b, struct passkeys *set, uint64_t *time_us)
{
	static const struct ipc_id none;
	struct tlv_reader r;
	struct tlv f;
	int rc;

	tlv_open(&r, b->p, b->len);
	if (tlv_next(&r, &f) != 1 || f.tag != SET_TIME ||
	    tlv_u64(&f, time_us) == -1 || tlv_next(&r, &f) != 1 ||
	    f.tag != SET_HANDLE ||
	    !take(&f, set->handle.b, sizeof(set->handle.b)) ||
	    memcmp(set->handle.b, none.b, sizeof(none.b)) == 0)
		return false;
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (f.tag != SET_PASSKEY || set->n == PASSKEYS_MAX ||
		    !take_row(&f, &set->row[set->n]))
			return false;
		set->n++;
	}
	return rc == 0;
}

int
passkeys_open(struct verifiers *times, const struct keys *keys,
    const char *name, struct ipc_bytes stored, struct passkeys *out,
    struct err *err)
{
	struct stored_place at = {
	    STORED_PASSKEYS, ipc_str(name), ipc_str("passkeys")};
	struct passkeys *set = calloc(1, sizeof(*set));
	uint64_t t = 0;
	struct buf b;
	int rc = -1;

	buf_init(&b, PASSKEYS_PLAIN_MAX);
	if (set == NULL)
		err_set(err, FAILURE_BUSY, "no memory for the passkeys");
	else if (stored_open(keys, &at, stored.p, stored.n, &b, err) == -1)
		err_wrap(err, "passkeys");
	else if (!take_set(&b, set, &t))
		err_set(err, FAILURE_FORBIDDEN, "passkeys of unknown form");
	else if (!verifiers_current(times, name, t))
		err_set(err, FAILURE_FORBIDDEN,
		    "older passkeys than were seen before: somebody put them "
		    "back");
	else
		rc = 0;
	if (rc == 0) {
		verifiers_stored(times, name, t);
		*out = *set;
	}
	free(set);
	buf_free(&b);
	return rc;
}

struct passkey *
passkeys_find(struct passkeys *set, struct ipc_bytes id)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->row[i].nid == id.n && id.n > 0 &&
		    memcmp(set->row[i].id, id.p, id.n) == 0)
			return &set->row[i];
	return NULL;
}

struct passkey *
passkeys_add(struct passkeys *set, const struct authdata *d, struct err *err)
{
	struct passkey *k;

	if (passkeys_find(set, d->id) != NULL) {
		err_set(err, FAILURE_CONFLICT,
		    "this passkey is registered already");
		return NULL;
	}
	if (set->n == PASSKEYS_MAX) {
		err_set(err, FAILURE_CONFLICT,
		    "a person has at most 10 passkeys: remove one first");
		return NULL;
	}
	k = &set->row[set->n++];
	memset(k, 0, sizeof(*k));
	memcpy(k->id, d->id.p, d->id.n);
	k->nid = d->id.n;
	k->key = d->key;
	k->sign_count = d->sign_count;
	k->backup_eligible = d->backup_eligible;
	return k;
}

void
passkeys_drop(struct passkeys *set, struct passkey *k)
{
	size_t at = (size_t)(k - set->row);

	set->n--;
	memmove(k, k + 1, (set->n - at) * sizeof(*k));
	memset(&set->row[set->n], 0, sizeof(*k));
}

/* ---- names and roles ---- */

static bool
letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

bool
passkeys_name_ok(struct ipc_bytes b)
{
	const uint8_t *at = b.n > 0 ? memchr(b.p, '@', b.n) : NULL;
	size_t n = at != NULL ? (size_t)(at - b.p) : b.n;

	if (at == NULL) {
		if (n < 3 || n > 50 || !letter(b.p[0]))
			return false;
		for (size_t i = 1; i < n; i++)
			if (!letter(b.p[i]) && !digit(b.p[i]) && b.p[i] != '_')
				return false;
		return true;
	}
	if (n == 0 || n > 32 || b.n - n - 1 == 0 || b.n - n - 1 > 32)
		return false;
	for (size_t i = 0; i < b.n; i++) {
		uint8_t c = b.p[i];

		if (i < n ? !letter(c) && !digit(c) && c != '_' && c != '.' &&
			    c != '-'
			  : i > n && !(c >= 'a' && c <= 'z') && !digit(c) &&
			    c != '-')
			return false;
	}
	return true;
}

/* Returns 3 for the highest role, 0 for none. */
static int
rank(const char *role)
{
	return strcmp(role, "administrator") == 0 ? 3
	    : strcmp(role, "reviewer") == 0       ? 2
	    : strcmp(role, "viewer") == 0         ? 1
						  : 0;
}

const char *
passkeys_lesser(const char *role, const char *cap)
{
	int a = rank(role), b = rank(cap);

	if (a == 0 && b == 0)
		return "viewer";
	if (a == 0 || b == 0)
		return a == 0 ? cap : role;
	return a <= b ? role : cap;
}
