#include <string.h>

#include "contexts.h"
#include "credentials.h"
#include "fetch.h"
#include "hosts.h"
#include "ids.h"
#include "limit.h"
#include "recipe.h"
#include "seal.h"
#include "stored.h"
#include "tlv.h"
#include "version.h"

/* Epochs (sandboxd processes) whose keys are kept. One machine has one
 * sandboxd, but requests for contexts of a few earlier epochs may still
 * arrive. */
enum { EPOCHS_MAX = 8 };

struct epoch_key {
	bool live;
	struct ipc_id epoch;
	uint8_t key[KEY_LEN];
	uint64_t counter; /* of the last nonce; 0: none used */
	uint64_t serial;  /* grows with each key made */
};

struct contexts {
	uint64_t serial;
	struct calls *calls;
	struct access *access; /* the newest; NULL: none was said */
	struct epoch_key row[EPOCHS_MAX];
};

struct contexts *
contexts_new(void)
{
	struct contexts *c = keys_memory(sizeof(struct contexts), NULL);

	if (c != NULL && (c->calls = calls_new()) == NULL)
		return NULL; /* main() ends the process */
	return c;
}

struct calls *
contexts_calls(struct contexts *c)
{
	return c->calls;
}

void
contexts_access(struct contexts *c, struct access *newest)
{
	c->access = newest;
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
 * Makes a fresh key for each request and never returns an old one. The counter
 * of nonces starts again with each key. So a nonce can't repeat under one key,
 * no matter whether the vault or sandboxd restarted.
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
	/* fields that come once, by tag; p is NULL if absent */
	struct tlv one[CTX_TAG_MAX + 1];
	size_t nmodules;
	struct ipc_bytes module[MODULES_PER_CALL_MAX];
	size_t nsecrets;
	struct ipc_bytes name[SECRETS_PER_CALL_MAX];
	struct ipc_bytes value[SECRETS_PER_CALL_MAX];
};

/* Each tag that allowed() accepts is an index into material.one. */
_Static_assert(CTX_TAG_MAX <= UINT8_MAX, "a tag is a byte");
#define L(SYMBOL, name, unit, min, max, context, version, reason) \
	_Static_assert((context) <= CTX_TAG_MAX, name);
LIMITS(L, L)
LIMITS_SERVER(L)
#undef L

/* Tells whether a run of this kind has our code alone. */
static bool
is_ours(uint8_t kind)
{
	return kind >= CONTEXT_MODULE && kind <= CONTEXT_NOTIFY;
}

static bool
allowed(uint8_t kind, uint8_t tag)
{
	if (tag > CTX_TAG_MAX)
		return false;
	if (kind == CONTEXT_GRANTS)
		return tag == CTX_SERVER_ID || tag == CTX_GRANT_SEAL ||
		    tag == CTX_GRANT_PREIMAGE;
	switch (tag) {
	case CTX_GRANT_SEAL:
	case CTX_GRANT_PREIMAGE:
	case CTX_TASK: /* tells that the call is a task; gives no right */
	case CTX_CALL_APPROVAL:
	case CTX_PREIMAGE:
	case CTX_APPROVAL:
		return kind == CONTEXT_TOOL;
	case CTX_SECRET_NAME:
	case CTX_SECRET_VALUE:
		return kind == CONTEXT_TOOL || kind == CONTEXT_NOTIFY;
	case CTX_NAME:
		return kind != CONTEXT_TOOL;
	case CTX_CODE:
	case CTX_MODULE:
	case CTX_KIND:
	case CTX_SPEC:
	case CTX_EXECUTABLE:
		return kind != CONTEXT_TOOL && !is_ours(kind);
	case CTX_ACCESS_SEAL:
	case CTX_ACCESS_DOCUMENT:
	case CTX_KEYS_URL:
		return is_ours(kind) && kind != CONTEXT_MODULE;
	case CTX_KEYS_HOST:
		return kind == CONTEXT_KEYS || kind == CONTEXT_TELEMETRY;
	case CTX_EXECUTABLE_DIGEST:
	case CTX_OUTPUT_SCHEMA:
		return kind == CONTEXT_TEST;
	case CTX_ARGS_SHA256:
	case CTX_HOLD_UNTIL_MS:
	case CTX_INTENT:
		return true;
	default:
		return limit_of_context(tag) != -1;
	}
}

/*
 * Checks a number of the material. admind may be hostile, and gives every
 * number that the version does not set. So admind can choose any value that an
 * administrator could have set for the server, but no other value. It can't
 * replace a value that the version sets (put_limits).
 */
static int
check_number(const struct tlv *f, struct err *err)
{
	int l = limit_of_context(f->tag);
	uint64_t v;

	if (l == -1 && f->tag != CTX_HOLD_UNTIL_MS)
		return 0;
	if (tlv_u64(f, &v) == -1)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material: tag %u is not a number", f->tag);
	return l == -1 ? 0 : limit_check((enum limit)l, v, err);
}

/* Takes a module's digest. Digests must ascend, so that each set of modules has
 * just one form. */
static int
take_module(struct material *out, const struct tlv *f, struct err *err)
{
	if (f->n != 32 || out->nmodules == MODULES_PER_CALL_MAX)
		return err_set(err, FAILURE_LIMIT,
		    "context material: more than %d modules, or one that is "
		    "no digest",
		    MODULES_PER_CALL_MAX);
	if (out->nmodules > 0 &&
	    memcmp(out->module[out->nmodules - 1].p, f->p, 32) >= 0)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material: modules are not in order");
	out->module[out->nmodules++] = ipc_bytes(f->p, f->n);
	return 0;
}

/*
 * Reads the material strictly. The whole material is refused if it has a tag
 * that this kind may not carry, a repeated tag, a number that is not 8 bytes,
 * or a name without its value right after it. So only fields that are
 * understood are passed on.
 */
static int
take_apart(
    const struct ipc_seal_context *m, struct material *out, struct err *err)
{
	bool named = false, sealed = false;
	struct tlv_reader r;
	size_t ngrants = 0;
	struct tlv f;
	int rc, taken;

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
		if ((taken = hosts_take(&f, &sealed, &ngrants, err)) == -1)
			return -1;
		if (taken == 1)
			continue;
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
		if (f.tag == CTX_MODULE) {
			if (take_module(out, &f, err) == -1)
				return -1;
			continue;
		}
		if (f.tag == CTX_KEYS_HOST) /* fetch.c counts them */
			continue;
		if (out->one[f.tag].p != NULL)
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "context material: tag %u comes twice", f.tag);
		if (check_number(&f, err) == -1)
			return -1;
		out->one[f.tag] = f;
	}
	if (rc == -1 || named || sealed)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material is cut off");
	if (m->kind == CONTEXT_GRANTS)
		return out->one[CTX_SERVER_ID].n == sizeof(struct ipc_id)
		    ? 0
		    : err_set(err, FAILURE_INVALID_REQUEST,
			  "context material names no server");
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

/*
 * Adds the limits. A version's value was reviewed, so it is used. For a limit
 * that the version does not set, admind's value (from its settings) is used. A
 * version's value outside of bounds that were narrowed later is moved to the
 * nearest bound. If this lowers the value, the call gets less than a person
 * agreed to. If this raises the value, the call gets the least with which a
 * tool can run (limit.h). The caller has checked the version, so each limit is
 * there at most once, with 8 bytes.
 */
static int
put_limits(struct buf *out, const struct material *m, const uint8_t *fields,
    size_t n, struct err *err)
{
	struct tlv f;
	uint64_t v;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *t = limit_info((enum limit)i);

		if (t->context == 0)
			continue;
		if (tlv_find(fields, n, (uint8_t)t->version, &f) != 1) {
			copy(out, m, (uint8_t)t->context);
			continue;
		}
		if (tlv_u64(&f, &v) == -1)
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "the version's %s is not a number", t->name);
		v = v < t->min ? t->min : v > t->max ? t->max : v;
		tlv_put_u64(out, (uint8_t)t->context, v);
	}
	return 0;
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
 * Adds the secrets. Only from here does the plaintext of a stored secret leave
 * the vault. admind chooses what it sends and may be hostile. So a value is
 * added only if
 *   - the approval seal over exactly this pre-image is valid (the caller
 *     checked the seal),
 *   - pre-image and seal both name the secret, so a human saw its name,
 *   - the stored value opens with an AAD made of this name and of the server
 *     that the pre-image names. A value of another server or of another secret
 *     does not open.
 * The value leaves the vault only encrypted, under a key that only sandboxd and
 * we have.
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
		struct stored_place at = {
		    STORED_SECRETS, ipc_bytes(server.p, server.n), m->name[i]};
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
		if (stored_open(k, &at, m->value[i].p, m->value[i].n, &value,
			err) == -1) {
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
 * Adds the return key of a source. A run of a source may make the value of the
 * first secret that the source's version names (credentials.h). The runner
 * seals that value for us under the return key. In the context the return key
 * comes before the secrets.
 */
static void
put_return_key(struct buf *out, const struct keys *k,
    const struct ipc_id *execution, const struct ipc_hash *version,
    const uint8_t *fields, size_t n)
{
	char hex[HEX32_LEN + 1];
	uint8_t key[KEY_LEN];
	struct tlv server, secret, f;

	if (tlv_find(fields, n, VERSION_OBJECT, &f) != 1 ||
	    !ipc_streq(ipc_bytes(f.p, f.n), "source") ||
	    tlv_find(fields, n, VERSION_SECRET, &secret) != 1 ||
	    tlv_find(fields, n, VERSION_SERVER_NAME, &server) != 1)
		return;
	credentials_key(k, execution, version, ipc_bytes(server.p, server.n),
	    ipc_bytes(secret.p, secret.n), key);
	hex_encode(key, sizeof(key), hex);
	tlv_puts(out, CTX_SECRET_NAME, CREDENTIAL_KEY_NAME);
	tlv_put(out, CTX_SECRET_VALUE, hex, HEX32_LEN);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(hex, sizeof(hex));
}

/*
 * Checks and uses up the approval of a call. If a person set that calls of the
 * version must be confirmed, this call gets no context until a person approved
 * it. The caller's name and the listener are taken from the intent row.
 * sandboxd returns that row in the record of the call. So a hostile admind that
 * lies about the caller writes a wrong name into its own books, and needs an
 * approval of a call by that caller. For any other version admind may bring an
 * approval because of admind's own policy. Such an approval must be valid, too,
 * and is used up.
 */
static int
confirm(struct contexts *c, const struct keys *k, const struct material *m,
    const struct ipc_hash *version, const uint8_t *fields, size_t n,
    const struct tlv *name, struct err *err)
{
	const struct tlv *seal = &m->one[CTX_CALL_APPROVAL];
	const struct tlv *intent = &m->one[CTX_INTENT];
	const struct tlv *args = &m->one[CTX_ARGS_SHA256];
	struct calls_run run = {.version = *version,
	    .tool = ipc_bytes(name->p, name->n),
	    .args_sha256 = ipc_bytes(args->p, args->n)};
	const struct calls_time now = {now_us(), now_boot_ms()};
	uint64_t wanted = 0, until_ms;
	struct ipc_hash call;
	struct tlv f;

	if (tlv_find(fields, n, VERSION_CONFIRM, &f) == 1 &&
	    tlv_u64(&f, &wanted) == -1)
		wanted = 1;
	if (wanted == 0 && seal->p == NULL)
		return 0;
	if (intent->p == NULL ||
	    tlv_find(intent->p, intent->n, INTENT_LISTENER, &f) != 1 ||
	    tlv_u64(&f, &run.listener) == -1 ||
	    tlv_find(intent->p, intent->n, INTENT_PRINCIPAL, &f) != 1)
		return err_set(err, FAILURE_NOT_CONFIRMED,
		    "nobody has confirmed this call");
	run.principal = ipc_bytes(f.p, f.n);
	if (calls_check(c->calls, k, ipc_bytes(seal->p, seal->n), &run, &now,
		&call, &until_ms, err) == -1)
		return -1;
	return calls_use(c->calls, &call, until_ms, &now, err);
}

/*
 * Builds the plaintext for an approved version: name, code, secrets and limits
 * come from the sealed content; admind adds only fields that a human does not
 * review (the arguments' digest, its default limits, times, the intent row).
 */
static int
build_tool(struct contexts *c, struct buf *out, const struct material *m,
    struct ipc_bytes material, const struct ipc_id *execution,
    const struct keys *k, struct err *err)
{
	const struct tlv *pre = &m->one[CTX_PREIMAGE];
	const struct tlv *app = &m->one[CTX_APPROVAL];
	const uint8_t *fields, *seal;
	struct ipc_hash hash;
	struct tlv name;
	size_t n, sealn;

	if (pre->p == NULL || app->p == NULL)
		return err_set(err, FAILURE_NOT_APPROVED,
		    "a tool's context needs its version and its approval");
	if (seal_check(k, app->p, app->n, pre->p, pre->n, &seal, &sealn, &hash,
		err) == -1 ||
	    version_check(pre->p, pre->n, &fields, &n, err) == -1)
		return -1;
	if (tlv_find(fields, n, VERSION_EXPOSED_NAME, &name) != 1)
		return err_set(
		    err, FAILURE_INVALID_REQUEST, "the version has no name");
	tlv_put(out, CTX_NAME, name.p, name.n);
	copy(out, m, CTX_ARGS_SHA256);
	if (recipe_kind(out, fields, n, err) == -1 ||
	    recipe_result(out, fields, n, err) == -1 ||
	    put_limits(out, m, fields, n, err) == -1)
		return -1;
	copy(out, m, CTX_HOLD_UNTIL_MS);
	copy(out, m, CTX_INTENT);
	copy(out, m, CTX_TASK);
	tlv_put(out, CTX_VERSION_HASH, hash.b, sizeof(hash.b));
	put_return_key(out, k, execution, &hash, fields, n);
	if (put_secrets(out, m, k, fields, n, seal, sealn, err) == -1 ||
	    hosts_put(out, k, material, fields, n, err) == -1)
		return -1;
	/* confirm() is last, so that a failure for another reason uses up no
	 * approval. */
	return confirm(c, k, m, &hash, fields, n, &name, err);
}

/*
 * Builds the plaintext of an inspection or a test run. Such a run has untrusted
 * code or an untrusted command, so it gets no secrets and no network. The
 * modules are files that an administrator recorded. admind may name any of
 * them, because a run without secrets and network may see every module.
 */
static int
build_plain(struct buf *out, const struct material *m, struct err *err)
{
	bool code = m->one[CTX_CODE].p != NULL;
	bool command = m->one[CTX_KIND].p != NULL &&
	    m->one[CTX_SPEC].p != NULL && m->one[CTX_EXECUTABLE].p != NULL;

	if (m->one[CTX_NAME].p == NULL || code == command)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material has no name, or not just one of code "
		    "and command");
	copy(out, m, CTX_NAME);
	for (unsigned tag = CTX_CODE; tag <= CTX_EXECUTABLE_DIGEST; tag++)
		if (tag != CTX_NAME)
			copy(out, m, (uint8_t)tag);
	for (size_t i = 0; i < m->nmodules; i++)
		tlv_put(out, CTX_MODULE, m->module[i].p, m->module[i].n);
	copy(out, m, CTX_OUTPUT_SCHEMA);
	return 0;
}

/*
 * Builds the plaintext for our own code: a name and limits. admind can't choose
 * the program or the hosts that it connects to. sandboxd takes both from its
 * own configuration for an installer of modules. fetch_put() adds them for the
 * other kinds. So admind gains no more than by any request for a module.
 */
static int
build_ours(struct buf *out, const struct material *m, struct err *err)
{
	if (m->one[CTX_NAME].p == NULL)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material has no name");
	for (unsigned tag = CTX_NAME; tag < CTX_ACCESS_SEAL; tag++)
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

	if (((msg->kind < CONTEXT_TOOL || msg->kind > CONTEXT_TEST) &&
		msg->kind != CONTEXT_GRANTS && !is_ours(msg->kind)) ||
	    msg->listener < LISTENER_LOCAL || msg->listener > LISTENER_ADMIND)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "unknown context kind or listener");
	/* A gateway must never reach unapproved code. */
	if (msg->kind != CONTEXT_TOOL && msg->listener != LISTENER_ADMIND)
		return err_set(err, FAILURE_FORBIDDEN,
		    "only admind may run an inspection, a test or code of "
		    "ours, or change grants");
	if ((e = find(c, &msg->epoch)) == NULL || e->counter == UINT64_MAX)
		return err_set(err, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox has no context key for this epoch yet");
	if (take_apart(msg, &m, err) == -1)
		return -1;
	buf_init(&plain, IPC_BLOB_MAX - 64);
	if (msg->kind == CONTEXT_TOOL)
		rc = build_tool(
		    c, &plain, &m, msg->material, &msg->execution, k, err);
	else if (msg->kind == CONTEXT_GRANTS)
		rc = hosts_grants(&plain, k, msg->material,
		    (const struct ipc_id *)m.one[CTX_SERVER_ID].p, err);
	else if (is_ours(msg->kind))
		rc = build_ours(&plain, &m, err);
	else
		rc = build_plain(&plain, &m, err);
	if (rc == 0 && is_ours(msg->kind) && msg->kind != CONTEXT_MODULE)
		rc = fetch_put(
		    &plain, k, c->access, msg->kind, msg->material, err);
	if (rc == 0 && plain.failed)
		rc = err_set(err, FAILURE_TOO_LARGE, "context is too large");
	if (rc == -1)
		goto out;
	b = (struct context_binding){.epoch = msg->epoch,
	    .execution = msg->execution,
	    .listener = msg->listener,
	    .kind = msg->kind};
	rc = context_seal(
	    e->key, ++e->counter, &b, plain.p, plain.len, out, err);
out:
	buf_free(&plain);
	return rc;
}
