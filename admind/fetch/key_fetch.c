/*
 * The fetch of one issuer's public keys:
 *
 *  keysets_due -> run (own_run.h) -> CHECK_KEYS -> keysets_good
 *
 * A hostile admind that starts such a run gains requests to issuers that an
 * administrator wrote into the access document, since the vault checks the
 * address and makes the list of hosts (fetch.c there). The run's answer goes
 * unread to admind-check. An answer that comes after the document named another
 * source is dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "context.h"
#include "identities.h"
#include "ids.h"
#include "key_fetch.h"
#include "log.h"
#include "own_run.h"
#include "signin_fields.h"

enum {
	/* The run itself ends its requests after 20 s. */
	TIMEOUT_MS = 30 * 1000,
	WAIT_MS = QUEUE_MS + TIMEOUT_MS + 10 * 1000,
	/* A key set of 64 KiB as a JSON text, with its escapes. */
	RESULT_BYTES = 256 * 1024,
	/* After trouble of our own processes. Each try leaves a record. */
	TROUBLE_MS = KEYSETS_ASK_MS
};

struct fetch {
	struct admind *a;
	char name[ACCESS_NAME_MAX + 1];
	struct buf source;
};

static own_cb ran;
static ipc_answer_cb checked;

/* Frees the fetch. Returns the set that it was for, or NULL if the document
 * does not have it any more. */
static struct keyset *
end(struct fetch *x)
{
	struct keyset *s =
	    keysets_find(&x->a->access->keysets, ipc_str(x->name));

	if (s != NULL &&
	    (!s->running || s->source.len != x->source.len ||
		memcmp(s->source.p, x->source.p, x->source.len) != 0))
		s = NULL;
	buf_free(&x->source);
	free(x);
	return s;
}

static void
failed(struct fetch *x, struct ipc_bytes why, uint64_t again_ms)
{
	struct keyset *s = end(x);
	bool news;

	if (s == NULL)
		return;
	news = !ipc_streq(why, s->why);
	keysets_bad(s, why, now_boot_ms(), again_ms);
	if (news)
		log_event(
		    LOG_LV_WARN, "issuer_keys", "%s: %s", s->name, s->why);
}

void
key_fetch_material(struct admind *a, const struct keyset *s,
    uint64_t result_bytes, struct buf *out)
{
	struct tlv_reader r;
	struct tlv t;

	tlv_put(out, CTX_ACCESS_SEAL, a->access->seal.p, a->access->seal.len);
	tlv_put(out, CTX_ACCESS_DOCUMENT, a->access->document.p,
	    a->access->document.len);
	tlv_put_u64(out, CTX_RESULT, result_bytes);
	tlv_open(&r, s->source.p, s->source.len);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == ISSUER_KEYS_URL)
			tlv_put(out, CTX_KEYS_URL, t.p, t.n);
		else if (t.tag == ISSUER_KEYS_HOST)
			tlv_put(out, CTX_KEYS_HOST, t.p, t.n);
}

static void
begin(struct admind *a, struct keyset *s)
{
	char tool[EXPOSED_NAME_MAX + 1] = "keys:";
	struct own_what own = {.kind = CONTEXT_KEYS,
	    .noun = "fetch of keys",
	    .tool = tool,
	    .principal = "issuers",
	    .client = "mcpbox",
	    .protocol = "",
	    .timeout_ms = TIMEOUT_MS,
	    .wait_ms = WAIT_MS};
	struct fetch *x = calloc(1, sizeof(*x));
	bool discovery = false;
	struct buf args, material;
	struct jsonw w;
	struct tlv t;

	keysets_begin(s, now_boot_ms());
	if (x == NULL) {
		keysets_bad(
		    s, ipc_str("out of memory"), now_boot_ms(), TROUBLE_MS);
		return;
	}
	x->a = a;
	memcpy(x->name, s->name, sizeof(x->name));
	memcpy(tool + strlen(tool), s->name, strlen(s->name) + 1);
	buf_init(&x->source, IPC_FRAME_MAX);
	buf_put(&x->source, s->source.p, s->source.len);
	buf_init(&material, IPC_BLOB_MAX);
	key_fetch_material(a, s, RESULT_BYTES, &material);
	discovery =
	    tlv_find(s->source.p, s->source.len, ISSUER_DISCOVERY, &t) == 1;
	buf_init(&args, ARGUMENTS_KEPT);
	jsonw_open(&w, &args);
	jsonw_obj(&w);
	jsonw_kv_bool(&w, "discovery", discovery);
	jsonw_obj_end(&w);
	own.arguments = own.kept = ipc_bytes(args.p, args.len);
	own.material = &material;
	if (args.failed || x->source.failed)
		failed(x, ipc_str("out of memory"), TROUBLE_MS);
	else
		own_run(a, &own, ran, x);
	buf_free(&args);
	buf_free(&material);
}

/* Takes the end of a run. A run that failed says why in its answer, too. */
static void
ran(void *arg, const struct own_end *e)
{
	struct ipc_check_keys q = {.result = e->body};
	struct fetch *x = arg;
	struct err err;

	if (e->how != OWN_RAN)
		failed(x, ipc_str(e->text),
		    failure_info(e->failure)->side == FAILURE_PLATFORM
			? TROUBLE_MS
			: KEYSETS_AGAIN_MS);
	else if (e->body.n == 0)
		failed(x, ipc_str(e->text), KEYSETS_AGAIN_MS);
	else if (ask(x->a->check, IPC_CHECK_KEYS, &q, checked, x, &err) == -1)
		failed(x, ipc_str(err.text), TROUBLE_MS);
}

/* Takes the age, the keys and the way to sign in out of the fields of
 * admind-check, which has read hostile bytes. 0, or -1 if they are malformed.
 */
static int
read_fields(struct ipc_bytes fields, uint64_t *age_s, struct buf *keys,
    struct buf *sign_in)
{
	struct tlv_reader r;
	unsigned n = 0;
	struct tlv t;
	int rc;

	tlv_open(&r, fields.p, fields.n);
	while ((rc = tlv_next(&r, &t)) == 1)
		if (t.tag == ISSUER_KEY && n++ < ACCESS_KEYS_FETCHED_MAX)
			tlv_put(keys, ISSUER_KEY, t.p, t.n);
		else if (t.tag >= KEYS_SIGN_IN_URL &&
		    t.tag <= KEYS_SIGN_IN_FAULT)
			tlv_put(sign_in, t.tag, t.p, t.n);
		else if (t.tag != KEYS_MAX_AGE_S || tlv_u64(&t, age_s) == -1)
			return -1;
	return rc == 0 && n > 0 && !keys->failed ? 0 : -1;
}

static void
good(struct fetch *x, struct ipc_bytes keys, struct ipc_bytes sign_in,
    uint64_t age_s)
{
	struct admind *a = x->a;
	struct keyset *s = end(x);
	bool changed, gone;

	if (s == NULL)
		return;
	changed =
	    s->keys.len != keys.n || memcmp(s->keys.p, keys.p, keys.n) != 0;
	gone = keysets_good(s, keys, age_s, now_us());
	keysets_sign_in(s, sign_in);
	/* Verdicts under way were asked for with the keys before. */
	if (changed)
		a->access->generation++;
	if (gone)
		identities_stale(a, s->name);
	if (changed)
		log_event(LOG_LV_INFO, "issuer_keys", "%s: %u keys", s->name,
		    s->nkeys);
}

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_check_errors bad;
	struct fetch *x = arg;
	struct ipc_check_ok ok;
	uint64_t age_s = 0;
	struct buf keys, sign_in;
	struct err err;

	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &bad, &err) == 0) {
		failed(x, bad.summary, KEYSETS_AGAIN_MS);
		return;
	}
	if (f == NULL || f->type != IPC_CHECK_OK ||
	    ipc_decode(f, &ok, &err) == -1) {
		answer_err(f, gone, &err);
		failed(x, ipc_str(err.text), TROUBLE_MS);
		return;
	}
	buf_init(&keys, IPC_FRAME_MAX);
	buf_init(&sign_in, IPC_FRAME_MAX);
	if (read_fields(ok.fields, &age_s, &keys, &sign_in) == 0)
		good(x, ipc_bytes(keys.p, keys.len),
		    ipc_bytes(sign_in.p, sign_in.len), age_s);
	else
		failed(x, ipc_str("admind-check answered with malformed keys"),
		    KEYSETS_AGAIN_MS);
	buf_free(&keys);
	buf_free(&sign_in);
}

void
key_fetch_tick(struct admind *a)
{
	struct access *x = a->access;
	struct keyset *s;

	if (x == NULL || !x->ready || x->now == NULL || !a->sandbox_ready)
		return;
	while ((s = keysets_due(&x->keysets, now_boot_ms())) != NULL)
		begin(a, s);
}
