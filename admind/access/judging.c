/*
 * Frames that wait while their token is checked.
 *
 * A gateway's request with a signed token that is not remembered waits here,
 * once for all kinds of requests, before its handler sees it. Then it is
 * dispatched as if it came now, or refused. So handlers never meet an unknown
 * token, and a frame whose token was not judged never becomes a client without
 * a token (auth.c refuses it).
 *
 * Anyone at a listener can send tokens that were never seen. Each
 * costs one check. Each listener has its own queue, with bounds for frames and
 * for bytes, and few checks at admind-check at a time. Beyond the bounds the
 * answer is `busy`. So a flood at the tunnel delays new tokens of the tunnel,
 * but neither remembered tokens nor the other listener. Frames with the same
 * token wait for one check.
 *
 * A verdict that was asked for under another document counts for nothing: the
 * token is asked about again.
 *
 * A token that is bound to one request is checked once, too, but each of its
 * frames is admitted for itself: it is for one request at most, and the others
 * are another sender's.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "activity.h"
#include "auth.h"
#include "bound.h"
#include "credential_hash.h"
#include "identities.h"
#include "ids.h"
#include "log.h"

enum { SENTENCE_MAX = 160 };

struct frame {
	STAILQ_ENTRY(frame) entry;
	struct link *link;
	struct ipc_frame f; /* owned */
};
STAILQ_HEAD(frames, frame);

/* A token that is checked, or waits to be. */
struct judged {
	TAILQ_ENTRY(judged) entry;
	struct admind *a;
	enum listener listener;
	uint8_t via;
	bool asked;
	unsigned generation; /* of the document that was asked about */
	struct ipc_hash hash;
	struct buf token;
	struct frames frames;
};

/* The queue of one listener. */
struct queue {
	TAILQ_HEAD(, judged) waiting; /* asked ones, too */
	unsigned checks, frames;
	size_t bytes;
};

struct judging {
	struct queue of[LISTENER_TUNNEL + 1];
};

static struct queue *
queue_of(struct admind *a, enum listener listener)
{
	struct judging *j = a->judging;

	if (listener != LISTENER_LOCAL && listener != LISTENER_TUNNEL)
		return NULL;
	if (j == NULL) {
		j = a->judging = calloc(1, sizeof(*j));
		if (j == NULL)
			return NULL;
		for (int i = 0; i <= LISTENER_TUNNEL; i++)
			TAILQ_INIT(&j->of[i].waiting);
	}
	return &j->of[listener];
}

/* ---- frames ---- */

static size_t
bytes_of(const struct ipc_frame *f)
{
	return f->payload_len + f->blob_len;
}

static void
frame_free(struct admind *a, struct frame *x)
{
	struct queue *q = queue_of(a, x->link->listener);

	q->frames--;
	q->bytes -= bytes_of(&x->f);
	ipc_frame_free(&x->f);
	link_unref(x->link);
	free(x);
}

/* Takes the frame's contents over from the caller. */
static struct frame *
frame_take(struct link *l, struct ipc_frame *f)
{
	struct queue *q = queue_of(l->a, l->listener);
	struct frame *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	x->link = link_ref(l);
	x->f = *f;
	f->payload = NULL;
	f->blob = NULL;
	f->payload_len = f->blob_len = 0;
	f->fd = -1;
	q->frames++;
	q->bytes += bytes_of(&x->f);
	return x;
}

/* Reads the credential of a request. Returns false for other messages, and for
 * malformed ones, which their handlers refuse. */
static bool
credential_of(struct ipc_frame *f, uint8_t *via, struct ipc_bytes *credential)
{
	union {
		struct ipc_authenticate who;
		struct ipc_authorise call;
		struct ipc_task_get get;
		struct ipc_task_update update;
		struct ipc_task_cancel cancel;
	} m;

	switch (f->type) {
#define TAKE(TYPE, member)                                \
	case TYPE:                                        \
		if (ipc_decode(f, &m.member, NULL) == -1) \
			return false;                     \
		*via = m.member.via;                      \
		*credential = m.member.credential;        \
		return true
		TAKE(IPC_AUTHENTICATE, who);
		TAKE(IPC_AUTHORISE, call);
		TAKE(IPC_TASK_GET, get);
		TAKE(IPC_TASK_UPDATE, update);
		TAKE(IPC_TASK_CANCEL, cancel);
#undef TAKE
	default:
		return false;
	}
}

/* ---- verdicts ---- */

static void pump(struct admind *, enum listener);

static void
judged_free(struct judged *g)
{
	buf_free(&g->token);
	free(g);
}

/* Takes a token out of its queue and frees it. Its frames go to `out`, which
 * only the caller has: a handler may change queues, never that list. */
static void
take_out(struct judged *g, struct frames *out)
{
	struct queue *q = queue_of(g->a, g->listener);

	TAILQ_REMOVE(&q->waiting, g, entry);
	STAILQ_INIT(out);
	STAILQ_CONCAT(out, &g->frames);
	judged_free(g);
}

static void
dispatch_all(struct admind *a, struct frames *list)
{
	struct frame *x;

	while ((x = STAILQ_FIRST(list)) != NULL) {
		STAILQ_REMOVE_HEAD(list, entry);
		/* A malformed frame ends its connection, as when it comes. */
		if (x->link->peer != NULL &&
		    a->dispatch(x->link, &x->f) == -1 && x->link->peer != NULL)
			ipc_peer_close(x->link->peer);
		frame_free(a, x);
	}
}

static void
refuse_all(struct admind *a, struct frames *list, const char *principal,
    const struct err *err)
{
	struct frame *x;

	while ((x = STAILQ_FIRST(list)) != NULL) {
		STAILQ_REMOVE_HEAD(list, entry);
		auth_refused_token(x->link, principal, err);
		link_refuse(x->link, x->f.request, err->failure, err->text);
		frame_free(a, x);
	}
}

/* Admits the frames of a token that is bound to one request. Only a request's
 * first frame can be the one. */
static void
admit_all(struct admind *a, struct frames *list, struct ipc_bytes fields,
    const char *principal)
{
	char ticket[BOUND_TICKET_LEN + 1];
	struct ipc_authenticate m = {0};
	struct bound_request rq;
	struct frames one;
	struct frame *x;
	struct err err;
	int rc;

	while ((x = STAILQ_FIRST(list)) != NULL) {
		if (x->f.type != IPC_AUTHENTICATE) {
			rc = err_set(&err, FAILURE_UNAUTHENTICATED,
			    "the token is bound to one request: a later step "
			    "needs its ticket");
		} else if ((rc = ipc_decode(&x->f, &m, &err)) == 0) {
			rq =
			    (struct bound_request){m.method, m.target, &m.body};
			rc = identities_admit(
			    a, fields, &rq, m.endpoint, ticket, &err);
		}
		STAILQ_REMOVE_HEAD(list, entry);
		if (rc == 0) {
			auth_admitted(
			    x->link, x->f.request, m.endpoint, ticket);
			frame_free(a, x);
			continue;
		}
		STAILQ_INIT(&one);
		STAILQ_INSERT_TAIL(&one, x, entry);
		refuse_all(a, &one, principal, &err);
	}
}

/* Writes a sentence of admind-check as a header may carry it (RFC 6750 section
 * 3: no quotation mark, no backslash, ASCII alone), and short. */
static void
put_sentence(struct err *err, enum failure f, struct ipc_bytes text)
{
	char out[SENTENCE_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < text.n && n < SENTENCE_MAX; i++)
		out[n++] = text.p[i] == '"' || text.p[i] == '\\' ? '\''
		    : text.p[i] < ' ' || text.p[i] > '~'         ? '?'
							 : (char)text.p[i];
	out[n] = '\0';
	err_set(err, f, "%s", n > 0 ? out : "the token is not valid");
}

/* Sets err from an answer that is not CHECK_OK. Returns whether the
 * token itself was refused. */
static bool
read_refusal(struct ipc_frame *f, enum failure gone, struct err *err)
{
	struct ipc_check_errors bad;

	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &bad, err) == 0) {
		/* A failure of the platform is not the token's. */
		if (bad.failure < FAILURE_COUNT &&
		    failure_info(bad.failure)->side == FAILURE_PLATFORM) {
			put_sentence(
			    err, (enum failure)bad.failure, bad.summary);
			return false;
		}
		put_sentence(err, FAILURE_UNAUTHENTICATED, bad.summary);
		return true;
	}
	answer_err(f, gone, err);
	if (f == NULL)
		err_set(
		    err, FAILURE_BUSY, "the checking process did not answer");
	return false;
}

/*
 * Refuses a token if it asks for a key that its issuer's fetched keys lack.
 * If the issuer was asked just now, that is a verdict on the token. If not,
 * the token can't be judged, and a client must not throw it away. Returns
 * whether the fields say so. *absent: the verdict is on the token.
 */
static bool
lacks_key(
    struct admind *a, struct ipc_bytes fields, bool *absent, struct err *err)
{
	struct tlv t;

	if (tlv_find(fields.p, fields.n, JWT_NO_KEY, &t) != 1)
		return false;
	*absent = keysets_lacks(&a->access->keysets, ipc_bytes(t.p, t.n),
		      now_boot_ms()) == KEYSETS_ABSENT;
	if (*absent)
		err_set(err, FAILURE_UNAUTHENTICATED,
		    "the token's `kid` is no key of its issuer, whose keys "
		    "were fetched just now");
	else
		err_set(err, FAILURE_ISSUER_UNAVAILABLE,
		    "the keys of the token's issuer must be fetched first");
	return true;
}

static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct judged *g = arg;
	struct admind *a = g->a;
	enum listener listener = g->listener;
	struct ipc_hash hash = g->hash;
	char principal[PRINCIPAL_MAX + 1] = "";
	struct ipc_check_ok ok;
	struct frames mine;
	struct err err;
	bool good, absent = false;

	queue_of(a, listener)->checks--;
	g->asked = false;
	if (g->generation != a->access->generation && f != NULL) {
		if (STAILQ_EMPTY(&g->frames))
			take_out(g, &mine);
		pump(a, listener);
		return;
	}
	good = f != NULL && f->type == IPC_CHECK_OK &&
	    ipc_decode(f, &ok, &err) == 0;
	if (good && lacks_key(a, ok.fields, &absent, &err)) {
		good = false;
		if (absent)
			identities_refused(a, listener, g->via, &hash);
	} else if (good)
		good = identities_learn(a, listener, g->via, &hash, ok.fields,
			   principal, &err) == 0;
	else if (read_refusal(f, gone, &err))
		identities_refused(a, listener, g->via, &hash);
	take_out(g, &mine);
	if (good && identities_bound(a, ok.fields))
		admit_all(a, &mine, ok.fields, principal);
	else if (good)
		dispatch_all(a, &mine);
	else
		refuse_all(a, &mine, principal, &err);
	pump(a, listener);
}

/* Asks about one token. 0, or -1 with err. */
static int
ask_about(struct judged *g, struct err *err)
{
	struct admind *a = g->a;
	struct ipc_check_jwt m = {.listener = (uint8_t)g->listener,
	    .via = g->via,
	    .now_us = identities_now(a),
	    .token_len = (uint32_t)g->token.len};
	struct buf both;
	int rc;

	buf_init(&both, IPC_BLOB_MAX);
	buf_put(&both, g->token.p, g->token.len);
	issuers_put(a->access->now, &a->access->keysets, now_boot_ms(),
	    g->listener, g->via, &both);
	m.token_issuers = ipc_bytes(both.p, both.len);
	if (both.failed)
		rc = err_set(err, FAILURE_BUSY, "out of memory");
	else
		rc = ask(a->check, IPC_CHECK_JWT, &m, answered, g, err);
	buf_free(&both);
	return rc;
}

/* Asks about the oldest tokens of a listener, as many as may be asked about. */
static void
pump(struct admind *a, enum listener listener)
{
	struct queue *q = queue_of(a, listener);
	struct judged *g, *next;
	struct frames mine;
	struct err err;

	for (g = TAILQ_FIRST(&q->waiting);
	    g != NULL && q->checks < JUDGING_CHECKS_MAX; g = next) {
		next = TAILQ_NEXT(g, entry);
		if (g->asked)
			continue;
		g->generation = a->access->generation;
		if (ask_about(g, &err) == 0) {
			g->asked = true;
			q->checks++;
			continue;
		}
		take_out(g, &mine);
		refuse_all(a, &mine, "", &err);
		next = TAILQ_FIRST(&q->waiting);
	}
}

/* ---- the way in ---- */

static struct judged *
judged_of(struct link *l, uint8_t via, struct ipc_bytes token)
{
	struct queue *q = queue_of(l->a, l->listener);
	struct ipc_hash hash;
	struct judged *g;

	credential_hash(via, token.p, token.n, &hash);
	TAILQ_FOREACH(g, &q->waiting, entry)
		if (memcmp(&g->hash, &hash, sizeof(hash)) == 0)
			return g;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	g->a = l->a;
	g->listener = l->listener;
	g->via = via;
	g->hash = hash;
	STAILQ_INIT(&g->frames);
	buf_init(&g->token, JWT_MAX);
	buf_put(&g->token, token.p, token.n);
	if (g->token.failed) {
		judged_free(g);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&q->waiting, g, entry);
	return g;
}

bool
judging_takes(struct link *l, struct ipc_frame *f)
{
	struct queue *q;
	struct ipc_bytes token;
	struct judged *g = NULL;
	struct frame *x = NULL;
	uint8_t via;

	if (l->role != IPC_ROLE_GATEWAY || !credential_of(f, &via, &token) ||
	    !auth_is_signed(via, token) ||
	    !identities_unknown(l->a, l->listener, via, token))
		return false;
	q = queue_of(l->a, l->listener);
	if (q != NULL && q->frames < JUDGING_FRAMES_MAX &&
	    q->bytes + bytes_of(f) <= JUDGING_BYTES_MAX)
		g = judged_of(l, via, token);
	if (g != NULL)
		x = frame_take(l, f);
	/* A flood of unknown tokens does not keep out remembered people: the
	 * old verdict holds once more. It never holds past the token's end. */
	if (x == NULL && identities_known(l->a, via, token)) {
		if (q != NULL)
			pump(l->a, l->listener);
		return false;
	}
	if (x == NULL) {
		auth_refused(l, ipc_bytes(NULL, 0), FAILURE_BUSY);
		link_refuse(l, f->request, FAILURE_BUSY,
		    "too many new tokens are being checked");
	} else {
		STAILQ_INSERT_TAIL(&g->frames, x, entry);
	}
	if (q != NULL)
		pump(l->a, l->listener);
	return true;
}

void
judging_link_gone(struct link *l)
{
	struct queue *q;
	struct judged *g, *next;
	struct frame *x, *after;

	if (l->a->judging == NULL || l->role != IPC_ROLE_GATEWAY)
		return;
	q = queue_of(l->a, l->listener);
	for (g = TAILQ_FIRST(&q->waiting); g != NULL; g = next) {
		next = TAILQ_NEXT(g, entry);
		for (x = STAILQ_FIRST(&g->frames); x != NULL; x = after) {
			after = STAILQ_NEXT(x, entry);
			if (x->link != l)
				continue;
			STAILQ_REMOVE(&g->frames, x, frame, entry);
			frame_free(l->a, x);
		}
		/* One that was asked about ends with its answer. */
		if (STAILQ_EMPTY(&g->frames) && !g->asked) {
			TAILQ_REMOVE(&q->waiting, g, entry);
			judged_free(g);
		}
	}
}

unsigned
judging_count(const struct admind *a)
{
	const struct judging *j = a->judging;

	return j == NULL
	    ? 0
	    : j->of[LISTENER_LOCAL].frames + j->of[LISTENER_TUNNEL].frames;
}
