/*
 * The way back from an issuer:
 *
 *  state -> run with code and verifier -> ID token -> admind-check -> rule ->
 *  SIGNIN_GRANT
 *
 * The query is a stranger's. `state` counts only with both halves of the ticket
 * for which it was made: the half in the browser's cookie, and the half that
 * the page keeps. A program on another port can plant a cookie, but not the
 * page's half. So a code of one browser never counts for the ticket of another.
 * A state counts once and for ten minutes, also if the sign-in then fails.
 *
 * `iss` must be the issuer's if it is there (RFC 9207). It must be there if the
 * issuer says that it sends one, and if people sign in by more than one issuer.
 * So an answer of another issuer is not taken for this one's. The issuer's own
 * word would not do: a hostile one says nothing. It leads the browser on to
 * another issuer with the state of ours that it got. The other's code comes
 * back under that state, and would be sent to the hostile one (RFC 9700 section
 * 4.4).
 *
 * The run has no secret of ours. It gets the code and the verifier, which are
 * worth something only together and once, and reaches the issuer's hosts alone.
 * Records keep neither: the kept arguments are {}. admind-check judges the
 * token; the nonce is this sign-in's.
 *
 * The rules are asked at the end, in the document that holds then. If that
 * document has other words about this issuer's administrators than the one at
 * the beginning, the sign-in ends.
 *
 * This process never sees a login: the vault gives it for both halves of the
 * ticket, and this process has the ticket's hash alone.
 *
 * A hostile admind can grant a login to any browser. Such a login is BY_ISSUER.
 * It reads and changes things that a hostile admind reads and changes without a
 * login. The vault asks it for a proof for all else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "context.h"
#include "identities.h"
#include "ids.h"
#include "key_fetch.h"
#include "log.h"
#include "own_run.h"
#include "signin.h"
#include "tlv.h"

enum {
	TIMEOUT_MS = 30 * 1000, /* the run ends its requests after 20 s */
	WAIT_MS = QUEUE_MS + TIMEOUT_MS + 10 * 1000,
	RESULT_BYTES = 32 * 1024, /* a token of 8 KiB as JSON */
	SOURCE_MAX = 64,          /* an address */
	DETAIL_MAX = 4096
};

static const struct db_stmt audit = {"signin_audit",
    "SELECT mcpbox.audit_append($1::text, $2::text, $3::text, $4::text)",
    DB_SURE};

struct back {
	struct admind *a;
	struct op *op;
	struct ipc_hash basis, ticket;
	bool running;
	char issuer[ACCESS_NAME_MAX + 1];
	char nonce[STATE_SECRET_TEXT + 1];
	char source[SOURCE_MAX + 1];
	char subject[JWT_SUB_MAX + 1], name[OFFERS_NAME_MAX + 1];
};

static own_cb ran;
static ipc_answer_cb checked, granted;

static void
noted(void *arg, const struct pg_result *rows, const struct err *err)
{
	(void)arg;
	(void)rows;
	if (err != NULL)
		log_event(LOG_LV_WARN, "audit", "login_failed: %s", err->text);
}

/* Writes login_failed. The reason may have words of the issuer's, without
 * control characters: the run and admind-check saw to it. */
static void
note_failure(const struct back *b, const char *why)
{
	struct db_params p;
	struct jsonw w;
	struct buf d;

	buf_init(&d, DETAIL_MAX);
	jsonw_open(&w, &d);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "source", b->source);
	jsonw_kv_str(&w, "issuer", b->issuer);
	if (b->subject[0] != '\0')
		jsonw_kv_str(&w, "subject", b->subject);
	jsonw_kv_str(&w, "reason", why);
	jsonw_obj_end(&w);
	db_params_init(&p);
	db_p_str(&p, "unknown");
	db_p_str(&p, "login_failed");
	db_p_str(&p, b->name[0] != '\0' ? b->name : b->issuer);
	if (d.failed)
		db_p_str(&p, "{}");
	else
		db_p_text(&p, ipc_bytes(d.p, d.len));
	db_query(b->a->db, &audit, &p, noted, NULL);
	buf_free(&d);
}

static void
finish(struct back *b)
{
	if (b->running)
		b->a->signin->running--;
	explicit_bzero(b, sizeof(*b));
	free(b);
}

static void
refuse(struct back *b, enum failure failure, const char *text)
{
	log_event(LOG_LV_INFO, "signin_failed", "%s: %s", b->issuer, text);
	note_failure(b, text);
	op_refuse(b->op, failure, text);
	finish(b);
}

/* Finds the offer again: the document may be another one by now. */
static const struct offer *
again(struct back *b, struct offers *offers)
{
	const struct offer *o = NULL;
	struct err err;

	if (document_ready(b->a, &err) == 0) {
		offers_read(offers, b->a->access->now);
		o = offers_of(offers, &b->basis);
		err_set(&err, FAILURE_CONFLICT,
		    "the access document was changed during the sign-in");
	}
	if (o == NULL)
		refuse(b, err.failure, err.text);
	return o;
}

/* ---- the grant ---- */

static void
granted(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct back *b = arg;
	struct err err;

	if (f == NULL || f->type != IPC_OK) {
		answer_err(f, gone, &err);
		refuse(b, err.failure, err.text);
		return;
	}
	op_ok(b->op);
	finish(b);
}

static void
grant(struct back *b, struct ipc_bytes fields)
{
	static const char *const roles[] = {
	    "viewer", "reviewer", "administrator"};
	struct ipc_signin_grant m = {0};
	char principal[PRINCIPAL_MAX + 1];
	enum admin_role role = ADMIN_VIEWER;
	const struct offer *o;
	struct offers offers;
	struct claims claims;
	struct err err;

	if (claims_read(&claims, fields, &err) == -1) {
		refuse(b, err.failure, err.text);
		return;
	}
	if ((o = again(b, &offers)) == NULL)
		return;
	if (!ipc_streq(claims.issuer, b->issuer)) {
		refuse(b, FAILURE_INTERNAL,
		    "admind-check answered with malformed claims");
		return;
	}
	snprintf(b->subject, sizeof(b->subject), "%.*s", (int)claims.sub.n,
	    (const char *)claims.sub.p);
	offers_name(o->issuer->name, claims.sub, b->name);
	snprintf(
	    principal, sizeof(principal), "oidc:%s:%s", b->issuer, b->subject);
	if (!b->a->identities->ready) {
		refuse(b, FAILURE_STORAGE_UNAVAILABLE,
		    "withdrawn people are not known yet");
		return;
	}
	if (identities_withdrawn(b->a, principal)) {
		refuse(b, FAILURE_FORBIDDEN, "this person is withdrawn");
		return;
	}
	if (offers_role(b->a->access->now, o, &claims, &role) == -1) {
		refuse(b, FAILURE_FORBIDDEN,
		    "no rule of the access document makes this person an "
		    "administrator");
		return;
	}
	m.ticket = b->ticket;
	m.username = ipc_str(b->name);
	m.role = ipc_str(roles[role]);
	m.issuer = ipc_str(b->issuer);
	m.subject = ipc_str(b->subject);
	m.email = claims.email;
	m.basis = b->basis;
	ends_tell(b->a); /* the vault takes no basis that it was not told */
	if (ask(b->a->vault, IPC_SIGNIN_GRANT, &m, granted, b, &err) == -1)
		refuse(b, FAILURE_VAULT_UNAVAILABLE, err.text);
}

/* ---- the token ---- */

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_check_errors bad;
	struct back *b = arg;
	struct ipc_check_ok ok;
	struct err err;
	struct tlv t;
	char *summary;

	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &bad, &err) == 0) {
		summary = ipc_strdup(bad.summary);
		refuse(b,
		    bad.failure == FAILURE_UPSTREAM ? FAILURE_UPSTREAM
						    : FAILURE_UNAUTHENTICATED,
		    summary != NULL ? summary : "the token is not valid");
		free(summary);
		return;
	}
	if (f == NULL || f->type != IPC_CHECK_OK ||
	    ipc_decode(f, &ok, &err) == -1) {
		answer_err(f, gone, &err);
		refuse(b, err.failure, err.text);
		return;
	}
	if (tlv_find(ok.fields.p, ok.fields.n, JWT_NO_KEY, &t) == 1) {
		(void)keysets_lacks(
		    &b->a->access->keysets, ipc_str(b->issuer), now_boot_ms());
		refuse(b, FAILURE_ISSUER_UNAVAILABLE,
		    "the issuer signed with a key that it did not have before, "
		    "and its keys are fetched: sign in again");
		return;
	}
	grant(b, ok.fields);
}

/* Asks admind-check about the run's answer, which goes unread. */
static void
check(struct back *b, struct ipc_bytes result)
{
	struct ipc_check_signin q = {.now_us = identities_now(b->a)};
	const struct offer *o;
	struct offers offers;
	struct err err;
	struct buf blob;

	if ((o = again(b, &offers)) == NULL)
		return;
	buf_init(&blob, RESULT_MAX);
	buf_put(&blob, o->issuer->record.p, o->issuer->record.n);
	keysets_put(
	    &b->a->access->keysets, o->issuer->name, now_boot_ms(), &blob);
	q.issuer_len = (uint32_t)blob.len;
	buf_put(&blob, result.p, result.n);
	q.client = o->client;
	q.nonce = ipc_str(b->nonce);
	q.issuer_result = ipc_bytes(blob.p, blob.len);
	if (blob.failed)
		refuse(b, FAILURE_BUSY, "out of memory");
	else if (ask(b->a->check, IPC_CHECK_SIGNIN, &q, checked, b, &err) == -1)
		refuse(b, err.failure, err.text);
	buf_free(&blob);
}

/* Takes the end of a run. A run that failed says why in its answer, too. */
static void
ran(void *arg, const struct own_end *e)
{
	struct back *b = arg;

	if (e->how != OWN_RAN || e->body.n == 0)
		refuse(b, e->failure, e->text);
	else
		check(b, e->body);
}

/* ---- the code ---- */

static void
exchange(struct back *b, const struct offer *o, const struct state *s,
    struct ipc_bytes code)
{
	char tool[EXPOSED_NAME_MAX + 1], verifier[STATE_SECRET_TEXT + 1];
	struct own_what own = {.kind = CONTEXT_KEYS,
	    .noun = "sign-in",
	    .tool = tool,
	    .principal = "issuers",
	    .client = "mcpbox",
	    .protocol = "",
	    .kept = ipc_str("{}"),
	    .timeout_ms = TIMEOUT_MS,
	    .wait_ms = WAIT_MS};
	const struct keyset *keys =
	    keysets_find(&b->a->access->keysets, o->issuer->name);
	struct buf args, material;
	struct jsonw w;

	if (keys == NULL) {
		refuse(b, FAILURE_ISSUER_UNAVAILABLE,
		    "the issuer's metadata are not there");
		return;
	}
	snprintf(tool, sizeof(tool), "signin:%s", b->issuer);
	state_verifier(b->a->signin->key, s, verifier);
	buf_init(&material, IPC_BLOB_MAX);
	key_fetch_material(b->a, keys, RESULT_BYTES, &material);
	buf_init(&args, ARGUMENTS_MAX);
	jsonw_open(&w, &args);
	jsonw_obj(&w);
	jsonw_name(&w, "exchange");
	jsonw_obj(&w);
	jsonw_kv_strn(&w, "client", o->client.p, o->client.n);
	jsonw_kv_strn(&w, "redirect", o->redirect.p, o->redirect.n);
	jsonw_kv_strn(&w, "code", code.p, code.n);
	jsonw_kv_str(&w, "verifier", verifier);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	explicit_bzero(verifier, sizeof(verifier));
	own.arguments = ipc_bytes(args.p, args.len);
	own.material = &material;
	if (args.failed) {
		refuse(b, FAILURE_BUSY, "out of memory");
	} else {
		b->running = true;
		b->a->signin->running++;
		own_run(b->a, &own, ran, b);
	}
	buf_free(&args);
	buf_free(&material);
}

/* Notes that a state is used. 1; 0: it was used before; -1: no room. */
static int
use(struct signin *s, const struct state *st)
{
	struct signin_used *room = NULL;
	uint64_t now = now_boot_ms();

	for (unsigned i = 0; i < SIGNIN_USED_MAX; i++) {
		struct signin_used *u = &s->used[i];

		if (u->until_ms <= now)
			room = room == NULL ? u : room;
		else if (memcmp(&u->id, &st->id, sizeof(u->id)) == 0)
			return 0;
	}
	if (room == NULL)
		return -1;
	room->id = st->id;
	room->until_ms = st->begun_ms + SIGNIN_TTL_MS;
	return 1;
}

/* Finds the offer that this state was made for, in this browser. NULL: another
 * process or another browser began, or the time is over. */
static const struct offer *
find(struct admind *a, const struct ipc_signin_back *m, struct state *s,
    const struct offers *offers)
{
	uint64_t now = now_boot_ms();

	if (state_read(s, m->state) == -1)
		return NULL;
	if (!ct_equal(s->ticket.b, m->ticket.b, sizeof(s->ticket.b)))
		return NULL;
	for (unsigned i = 0; i < offers->n; i++) {
		s->basis = offers->offer[i].basis;
		if (state_is(a->signin->key, s))
			return s->begun_ms <= now &&
				now - s->begun_ms < SIGNIN_TTL_MS
			    ? &offers->offer[i]
			    : NULL;
	}
	return NULL;
}

/* Judges the query's other parts. Returns NULL, or why they are refused. */
static const char *
judge(struct admind *a, const struct offers *offers, const struct offer *o,
    const struct ipc_signin_back *m)
{
	const struct keyset *k =
	    keysets_find(&a->access->keysets, o->issuer->name);
	struct ipc_bytes says = ipc_bytes(NULL, 0);

	if (k != NULL)
		says = ipc_bytes(k->sign_in.p, k->sign_in.len);
	if (m->iss.n > 0 &&
	    (m->iss.n != o->issuer->url.n ||
		memcmp(m->iss.p, o->issuer->url.p, m->iss.n) != 0))
		return "the answer is of another issuer (`iss`)";
	if (m->iss.n == 0 && offers_need_iss(offers, says))
		return offers->n > 1
		    ? "the answer has no `iss`, so it could be of another "
		      "issuer: one that sends none (RFC 9207) must be the only "
		      "issuer with `sign_in`"
		    : "the answer has no `iss`, and the issuer says that it "
		      "sends one";
	if (m->error.n > 0)
		return "the issuer refused (`error`)";
	if (m->code.n == 0 || m->code.n > SIGNIN_CODE_MAX)
		return "the answer has no usable code";
	return NULL;
}

static void
begin(struct back *b, const struct ipc_signin_back *m)
{
	struct signin *signin = b->a->signin;
	const struct offer *o;
	struct offers offers;
	const char *why;
	struct state s;
	int once;

	offers_read(&offers, b->a->access->now);
	o = find(b->a, m, &s, &offers);
	once = o == NULL                         ? 0
	    : signin->running >= SIGNIN_RUNS_MAX ? -1
						 : use(signin, &s);
	if (once != 1) {
		/* Strangers can cause this at will, so no row is written. */
		if (once == 0)
			op_refuse(b->op, FAILURE_NOT_FOUND,
			    "no sign-in waits for this, or not any more: begin "
			    "again, in one browser");
		else
			op_refuse(b->op, FAILURE_BUSY,
			    "too many people sign in at once");
		finish(b);
		return;
	}
	b->basis = s.basis;
	b->ticket = s.ticket;
	snprintf(b->issuer, sizeof(b->issuer), "%.*s", (int)o->issuer->name.n,
	    (const char *)o->issuer->name.p);
	state_nonce(signin->key, &s, b->nonce);
	if ((why = judge(b->a, &offers, o, m)) != NULL)
		refuse(b, FAILURE_UNAUTHENTICATED, why);
	else
		exchange(b, o, &s, m->code);
	explicit_bzero(&s, sizeof(s));
}

int
back_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_signin_back m;
	struct back *b;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (document_ready(l->a, &err) == -1) {
		link_refuse(l, m.request, err.failure, err.text);
		return 0;
	}
	if ((b = calloc(1, sizeof(*b))) == NULL ||
	    (b->op = op_new(l, m.request)) == NULL) {
		if (b == NULL)
			link_refuse(
			    l, m.request, FAILURE_BUSY, "out of memory");
		free(b);
		return 0;
	}
	b->a = l->a;
	snprintf(b->source, sizeof(b->source), "%.*s",
	    m.source.n < SOURCE_MAX ? (int)m.source.n : SOURCE_MAX,
	    (const char *)m.source.p);
	begin(b, &m);
	return 0;
}
