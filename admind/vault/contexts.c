#include <string.h>

#include "contexts.h"
#include "ids.h"
#include "seal.h"
#include "stored.h"
#include "tlv.h"
#include "version.h"

/* One machine has one sandboxd; a few earlier epochs may still have a context
 * on its way. */
enum { EPOCHS_MAX = 8 };

struct epoch_key {
	bool live;
	struct ipc_id epoch;
	uint8_t key[KEY_LEN];
	uint64_t counter; /* of the last nonce; 0: none used */
	uint64_t serial;  /* order of making */
};

struct contexts {
	uint64_t serial;
	struct epoch_key row[EPOCHS_MAX];
};

struct contexts *
contexts_new(void)
{
	return keys_memory(sizeof(struct contexts), NULL);
}

static struct epoch_key *
find(struct contexts *c, const struct ipc_id *epoch)
{
	for (size_t i = 0; i < EPOCHS_MAX; i++)
		if (c->row[i].live &&
		    memcmp(c->row[i].epoch.b, epoch->b, sizeof(epoch->b)) == 0)
			return &c->row[i];
	return NULL;
}

/*
 * A fresh key for each request, never the old one again: the counter starts
 * anew with it, so a nonce can never repeat under one key, whichever of the
 * two processes restarted.
 */
void
contexts_key(
    struct contexts *c, const struct ipc_id *epoch, uint8_t key[KEY_LEN])
{
	struct epoch_key *r = find(c, epoch);

	for (size_t i = 0; r == NULL && i < EPOCHS_MAX; i++)
		if (!c->row[i].live)
			r = &c->row[i];
	if (r == NULL) {
		r = &c->row[0];
		for (size_t i = 1; i < EPOCHS_MAX; i++)
			if (c->row[i].serial < r->serial)
				r = &c->row[i];
	}
	explicit_bzero(r, sizeof(*r));
	r->epoch = *epoch;
	random_bytes(r->key, KEY_LEN);
	r->serial = ++c->serial;
	r->live = true;
	memcpy(key, r->key, KEY_LEN);
}

/* SEAL_CONTEXT's material, taken apart; slices borrow from the frame. */
struct material {
	struct tlv one[CTX_VERSION_HASH + 1]; /* by tag; p NULL: absent */
	size_t nsecrets;
	struct ipc_bytes name[SECRETS_PER_CALL_MAX];
	struct ipc_bytes value[SECRETS_PER_CALL_MAX];
};

static bool
allowed(uint8_t kind, uint8_t tag)
{
	switch (tag) {
	case CTX_PREIMAGE:
	case CTX_APPROVAL:
	case CTX_SECRET_NAME:
	case CTX_SECRET_VALUE:
		return kind == CONTEXT_TOOL;
	case CTX_CODE:
	case CTX_NAME:
		return kind != CONTEXT_TOOL;
	case CTX_ARGS_SHA256:
	case CTX_TIMEOUT_MS:
	case CTX_MEMORY:
	case CTX_PROCESSES:
	case CTX_TMP:
	case CTX_RESULT:
	case CTX_HOLD_UNTIL_MS:
	case CTX_INTENT:
		return true;
	default:
		return false;
	}
}

/*
 * Strict: a tag that this kind may not carry, one that comes twice, a number
 * that is not 8 bytes, a name without its value right behind it refuse the
 * whole. So what is not understood is never passed on.
 */
static int
take_apart(
    const struct ipc_seal_context *m, struct material *out, struct err *err)
{
	bool named = false;
	struct tlv_reader r;
	struct tlv f;
	int rc;

	memset(out, 0, sizeof(*out));
	tlv_open(&r, m->material.p, m->material.n);
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (!allowed(m->kind, f.tag))
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "context material: tag %u is not allowed in a "
			    "context of kind %u",
			    f.tag, m->kind);
		if (named != (f.tag == CTX_SECRET_VALUE))
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "context material: a secret's name and value must "
			    "follow each other");
		named = f.tag == CTX_SECRET_NAME;
		if (named) {
			if (out->nsecrets == SECRETS_PER_CALL_MAX)
				return err_set(err, FAILURE_LIMIT,
				    "more than %d secrets in one call",
				    SECRETS_PER_CALL_MAX);
			out->name[out->nsecrets] = ipc_bytes(f.p, f.n);
			continue;
		}
		if (f.tag == CTX_SECRET_VALUE) {
			out->value[out->nsecrets++] = ipc_bytes(f.p, f.n);
			continue;
		}
		if (out->one[f.tag].p != NULL)
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "context material: tag %u comes twice", f.tag);
		if (((f.tag >= CTX_TIMEOUT_MS && f.tag <= CTX_RESULT) ||
			f.tag == CTX_HOLD_UNTIL_MS) &&
		    f.n != 8)
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "context material: tag %u is not a number", f.tag);
		out->one[f.tag] = f;
	}
	if (rc == -1 || named)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material is cut off");
	if (out->one[CTX_ARGS_SHA256].p == NULL ||
	    out->one[CTX_ARGS_SHA256].n != 32 ||
	    out->one[CTX_TIMEOUT_MS].p == NULL)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material has no arguments digest or no timeout");
	return 0;
}

static void
copy(struct buf *out, const struct material *m, uint8_t tag)
{
	if (m->one[tag].p != NULL)
		tlv_put(out, tag, m->one[tag].p, m->one[tag].n);
}

/* A limit that was reviewed binds; else what admind says (its settings). */
static void
limit(struct buf *out, const struct material *m, uint8_t tag,
    const uint8_t *fields, size_t n, uint8_t field)
{
	struct tlv f;

	if (fields != NULL && tlv_find(fields, n, field, &f) == 1)
		tlv_put(out, tag, f.p, f.n);
	else
		copy(out, m, tag);
}

static bool
version_names_secret(const uint8_t *fields, size_t n, struct ipc_bytes name)
{
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, fields, n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == VERSION_SECRET && f.n == name.n &&
		    memcmp(f.p, name.p, name.n) == 0)
			return true;
	return false;
}

/*
 * The one place where a stored secret becomes plaintext. admind chooses what
 * it sends and may be hostile; a value gets in only if
 *   - the approval seal over exactly this pre-image verified (the caller did),
 *   - pre-image and seal both name the secret, so a human saw its name,
 *   - the stored value opens with an AAD of the server named by that
 *     pre-image and this name: another server's or another key's does not.
 * It leaves only inside the AEAD under a key that sandboxd and we have.
 */
static int
put_secrets(struct buf *out, const struct material *m, const struct keys *k,
    const uint8_t *fields, size_t n, const uint8_t *seal, size_t sealn,
    struct err *err)
{
	struct tlv server;
	struct buf value;

	if (tlv_find(fields, n, VERSION_SERVER_NAME, &server) != 1)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "the version names no server");
	for (size_t i = 0; i < m->nsecrets; i++) {
		struct stored_place at = {"server_secrets",
		    ipc_bytes(server.p, server.n), m->name[i]};
		struct ipc_bytes name = m->name[i];

		for (size_t j = 0; j < i; j++)
			if (m->name[j].n == name.n &&
			    memcmp(m->name[j].p, name.p, name.n) == 0)
				return err_set(err, FAILURE_INVALID_REQUEST,
				    "a secret comes twice");
		if (!version_names_secret(fields, n, name) ||
		    !seal_names_secret(seal, sealn, name))
			return err_set(err, FAILURE_FORBIDDEN,
			    "a secret is outside the approved version");
		buf_init(&value, SECRET_VALUE_MAX);
		if (stored_open(k->secrets, &at, m->value[i].p, m->value[i].n,
			&value, err) == -1) {
			buf_free(&value);
			return -1;
		}
		tlv_put(out, CTX_SECRET_NAME, name.p, name.n);
		tlv_put(out, CTX_SECRET_VALUE, value.p, value.len);
		buf_free(&value);
	}
	return 0;
}

/*
 * The plaintext for an approved version: name, code, secrets and limits come
 * from the sealed content; admind adds only what a human does not review (the
 * arguments' digest, its default limits, times, the intent row).
 */
static int
build_tool(struct buf *out, const struct material *m, const struct keys *k,
    struct err *err)
{
	const struct tlv *pre = &m->one[CTX_PREIMAGE];
	const struct tlv *app = &m->one[CTX_APPROVAL];
	const uint8_t *fields, *seal;
	struct tlv name, code;
	struct ipc_hash hash;
	size_t n, sealn;

	if (pre->p == NULL || app->p == NULL)
		return err_set(err, FAILURE_NOT_APPROVED,
		    "a tool's context needs its version and its approval");
	if (seal_check(k->approvals, app->p, app->n, pre->p, pre->n, &seal,
		&sealn, &hash, err) == -1 ||
	    version_check(pre->p, pre->n, &fields, &n, err) == -1)
		return -1;
	if (tlv_find(fields, n, VERSION_EXPOSED_NAME, &name) != 1 ||
	    tlv_find(fields, n, VERSION_CODE, &code) != 1)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "the version has no name or no code");
	tlv_put(out, CTX_NAME, name.p, name.n);
	tlv_put(out, CTX_CODE, code.p, code.n);
	copy(out, m, CTX_ARGS_SHA256);
	limit(out, m, CTX_TIMEOUT_MS, fields, n, VERSION_TIMEOUT_MS);
	limit(out, m, CTX_MEMORY, fields, n, VERSION_MEMORY_BYTES);
	limit(out, m, CTX_PROCESSES, fields, n, VERSION_PROCESSES);
	limit(out, m, CTX_TMP, fields, n, VERSION_TMP_BYTES);
	limit(out, m, CTX_RESULT, fields, n, VERSION_RESULT_BYTES);
	copy(out, m, CTX_HOLD_UNTIL_MS);
	copy(out, m, CTX_INTENT);
	tlv_put(out, CTX_VERSION_HASH, hash.b, sizeof(hash.b));
	return put_secrets(out, m, k, fields, n, seal, sealn, err);
}

/* Inspections and test runs: anybody's code, so nothing but that code. */
static int
build_plain(struct buf *out, const struct material *m, struct err *err)
{
	if (m->one[CTX_CODE].p == NULL || m->one[CTX_NAME].p == NULL)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material has no name or no code");
	copy(out, m, CTX_NAME);
	copy(out, m, CTX_CODE);
	for (unsigned tag = CTX_ARGS_SHA256; tag <= CTX_INTENT; tag++)
		copy(out, m, (uint8_t)tag);
	return 0;
}

int
contexts_seal(struct contexts *c, const struct keys *k,
    const struct ipc_seal_context *msg, struct buf *out, struct err *err)
{
	struct context_binding b;
	struct epoch_key *e;
	struct material m;
	struct buf plain;
	int rc = -1;

	if (msg->kind < CONTEXT_TOOL || msg->kind > CONTEXT_TEST ||
	    msg->listener < LISTENER_LOCAL || msg->listener > LISTENER_ADMIND)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "unknown context kind or listener");
	/* Unapproved code must never be reachable from a gateway. */
	if (msg->kind != CONTEXT_TOOL && msg->listener != LISTENER_ADMIND)
		return err_set(err, FAILURE_FORBIDDEN,
		    "only admind may run an inspection or a test");
	if ((e = find(c, &msg->epoch)) == NULL || e->counter == UINT64_MAX)
		return err_set(err, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox has no context key for this epoch yet");
	if (take_apart(msg, &m, err) == -1)
		return -1;
	buf_init(&plain, IPC_BLOB_MAX - 64);
	if (msg->kind == CONTEXT_TOOL)
		rc = build_tool(&plain, &m, k, err);
	else
		rc = build_plain(&plain, &m, err);
	if (rc == -1)
		goto out;
	if (plain.failed) {
		rc = err_set(err, FAILURE_TOO_LARGE, "context is too large");
		goto out;
	}
	b.epoch = msg->epoch;
	b.execution = msg->execution;
	b.listener = msg->listener;
	b.kind = msg->kind;
	rc = context_seal(
	    e->key, ++e->counter, &b, plain.p, plain.len, out, err);
out:
	buf_free(&plain);
	return rc;
}
