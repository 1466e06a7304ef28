/*
 * The live tail: ACTIVITY_FOLLOW asks for all events from now on, and gets them
 * as lines of JSON, several in each PART.
 *
 * The tail must not slow calls down. No line is made while there is no
 * follower. The lines between two sendings are bounded. A connection with much
 * to send gets no lines, because it also carries answers that people wait for.
 * Lines that are left out are counted, and followers get the count.
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "activity.h"
#include "context.h"
#include "ids.h"
#include "json_kv.h"
#include "login.h"
#include "outcome.h"
#include "tlv.h"

/* Reads other nodes' entries of the log after number $1, while there are
 * followers. Entries of the last 3 seconds wait, since an entry with a smaller
 * number may be committed later. */
static const struct db_stmt newest = {"follow_newest",
    "SELECT coalesce(max(seq), 0) FROM mcpbox.activity", DB_FAST};
static const struct db_stmt others = {"follow_others",
    "SELECT a.seq, json_build_object('type', 'activity',"
    " 'at', to_char(a.at AT TIME ZONE 'UTC',"
    " 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), 'node', a.node, 'kind', a.kind,"
    " 'level', a.level, 'principal', a.principal, 'listener', a.listener,"
    " 'subject', a.subject, 'failure_mode', a.failure, 'count', a.count)::text"
    " FROM mcpbox.activity a WHERE a.seq > $1::int8 AND a.node <> $2::text"
    " AND a.at < clock_timestamp() - interval '3 seconds'"
    " ORDER BY a.seq LIMIT 200",
    DB_FAST};

struct follower {
	TAILQ_ENTRY(follower) entry;
	struct op *op;
	uint64_t stream, until_ms, dropped;
	bool calls;
};
TAILQ_HEAD(follower_list, follower);

/* text[CALLS] has all lines. text[LOG] has no lines of calls, for followers
 * that want none. */
enum { LOG, CALLS, TEXTS };

struct follow {
	struct follower_list list;
	unsigned n, ncalls;
	struct buf text[TEXTS];
	uint64_t dropped[TEXTS];
	struct event *timer;
	int64_t seq;  /* number of the last entry that was sent */
	bool known;   /* seq is known */
	bool reading; /* the statement `others` runs */
};

static void flush(evutil_socket_t, short, void *);

int
follow_start(struct admind *a, struct err *err)
{
	struct follow *f = calloc(1, sizeof(*f));

	if (f == NULL ||
	    (f->timer = evtimer_new(a->proc.base, flush, a)) == NULL) {
		free(f);
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	}
	TAILQ_INIT(&f->list);
	for (int i = 0; i < TEXTS; i++)
		buf_init(&f->text[i], ACTIVITY_LINES_MAX);
	a->follow = f;
	return 0;
}

unsigned
follow_count(const struct admind *a)
{
	return a->follow != NULL ? a->follow->n : 0;
}

bool
follow_calls(const struct admind *a)
{
	return a->follow != NULL && a->follow->ncalls > 0;
}

static void
leave(struct admind *a, struct follower *who)
{
	TAILQ_REMOVE(&a->follow->list, who, entry);
	a->follow->n--;
	a->follow->ncalls -= who->calls;
	op_ok(who->op);
	free(who);
}

/* ---- lines ---- */

static void
put(struct admind *a, int text, const struct buf *json)
{
	static const struct timeval tv = {.tv_usec = ACTIVITY_GATHER_MS * 1000};
	struct follow *f = a->follow;
	struct buf *b = &f->text[text];

	if (json->failed || b->len + json->len + 1 > ACTIVITY_LINES_MAX) {
		f->dropped[text]++;
		if (a->metrics != NULL)
			a->metrics->lines_dropped++;
		return;
	}
	buf_put(b, json->p, json->len);
	buf_putc(b, '\n');
	if (!evtimer_pending(f->timer, NULL))
		(void)evtimer_add(f->timer, &tv);
}

void
follow_line(struct admind *a, const struct buf *json)
{
	if (a->follow == NULL || a->follow->n == 0)
		return;
	put(a, LOG, json);
	put(a, CALLS, json);
}

static void
send_lines(struct follower *who, const struct buf *text, uint64_t dropped)
{
	struct ipc_activity_lines m = {.lines = ipc_bytes(text->p, text->len)};
	struct ipc_peer *peer = who->op->link->peer;

	who->dropped += dropped;
	if (text->failed || peer == NULL)
		return;
	if (ipc_peer_queued(peer) > ACTIVITY_QUEUED_MAX) {
		for (size_t i = 0; i < text->len; i++)
			who->dropped += text->p[i] == '\n';
		return;
	}
	m.dropped = who->dropped;
	if (text->len == 0 && m.dropped == 0)
		return;
	who->dropped = 0;
	(void)ipc_answer(peer, who->op->request, IPC_ACTIVITY_LINES, &m);
}

static void
flush(evutil_socket_t fd, short what, void *arg)
{
	struct admind *a = arg;
	struct follow *f = a->follow;
	struct follower *who;

	TAILQ_FOREACH(who, &f->list, entry)
		send_lines(who, &f->text[who->calls ? CALLS : LOG],
		    f->dropped[who->calls ? CALLS : LOG]);
	for (int i = 0; i < TEXTS; i++) {
		buf_clear(&f->text[i]);
		f->dropped[i] = 0;
	}
}

void
follow_call(struct admind *a, const struct follow_call *c)
{
	char id[UUID_TEXT_LEN + 1];
	struct jsonw w;
	struct buf b;

	if (!follow_calls(a))
		return;
	buf_init(&b, IPC_FRAME_MAX / 4);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "call");
	json_kv_time(&w, "at", c->ended_us);
	jsonw_kv_str(&w, "node", a->node);
	uuid_text(&c->id, id);
	jsonw_kv_str(&w, "id", id);
	jsonw_kv_str(&w, "kind", c->kind);
	json_kv_bytes(&w, "tool", c->tool);
	json_kv_bytes(&w, "principal", c->principal);
	jsonw_kv_str(&w, "listener", listener_name(c->listener));
	jsonw_kv_str(&w, "outcome", outcome_name(c->outcome));
	if (c->failure != FAILURE_NONE)
		jsonw_kv_str(
		    &w, "failure_mode", failure_info(c->failure)->name);
	jsonw_kv_int(&w, "duration_ms",
	    c->started_us != 0 && c->ended_us > c->started_us
		? (int64_t)((c->ended_us - c->started_us) / 1000)
		: 0);
	jsonw_kv_int(&w, "cpu_us", (int64_t)c->cpu_us);
	if (c->connections > 0) {
		jsonw_kv_int(&w, "connections", c->connections);
		jsonw_kv_int(&w, "connections_refused", c->net_refused);
		jsonw_kv_int(&w, "network_bytes", (int64_t)c->net_bytes);
	}
	jsonw_obj_end(&w);
	put(a, CALLS, &b);
	buf_free(&b);
}

/* The bytes come from sandboxd. The JSON writer turns any bytes into a valid
 * string, so they need no check. */
void
follow_record(struct admind *a, struct ipc_bytes intent, struct follow_call *c)
{
	static const char *const kinds[] = {
	    NULL, "tool", "inspect", "test", "management"};
	struct tlv_reader r;
	uint64_t n;
	struct tlv f;

	c->kind = "tool";
	tlv_open(&r, intent.p, intent.n);
	while (tlv_next(&r, &f) == 1) {
		if (f.tag == INTENT_TOOL && f.n <= EXPOSED_NAME_MAX)
			c->tool = ipc_bytes(f.p, f.n);
		else if (f.tag == INTENT_PRINCIPAL && f.n <= PRINCIPAL_MAX)
			c->principal = ipc_bytes(f.p, f.n);
		else if (f.tag == INTENT_LISTENER && tlv_u64(&f, &n) == 0)
			c->listener = n;
		else if (f.tag == INTENT_KIND && tlv_u64(&f, &n) == 0 &&
		    n >= 1 && n <= INTENT_KIND_MANAGEMENT)
			c->kind = kinds[n];
	}
	follow_call(a, c);
}

/* ---- followers ---- */

static void
logged_in(struct op *op)
{
	struct follow *f = op->a->follow;
	struct follower *who;

	if (op->link->peer == NULL) {
		op_free(op);
		return;
	}
	if (f->n >= ACTIVITY_FOLLOWERS_MAX ||
	    (who = calloc(1, sizeof(*who))) == NULL) {
		op_refuse(op, FAILURE_BUSY, "as many listen as can");
		return;
	}
	who->op = op;
	who->stream = op->number;
	who->calls = op->id.b[0] != 0;
	who->until_ms = now_boot_ms() + ACTIVITY_FOLLOW_MS;
	TAILQ_INSERT_TAIL(&f->list, who, entry);
	f->n++;
	f->ncalls += who->calls;
	/* Answers at once, so that the follower knows that it is allowed. */
	(void)ipc_answer(op->link->peer, op->request, IPC_ACTIVITY_LINES,
	    &(struct ipc_activity_lines){0});
}

int
follow_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_activity_follow m;
	struct ipc_activity_leave gone;
	struct follower *who, *next;
	struct op *op;

	if (f->type == IPC_ACTIVITY_LEAVE) {
		if (ipc_decode(f, &gone, NULL) == -1)
			return -1;
		for (who = TAILQ_FIRST(&l->a->follow->list); who != NULL;
		    who = next) {
			next = TAILQ_NEXT(who, entry);
			if (who->op->link == l && who->stream == gone.stream)
				leave(l->a, who);
		}
		return 0;
	}
	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->number = m.stream;
	op->id.b[0] = m.calls != 0;
	op->least = ADMIN_VIEWER;
	op->scope = SCRIPT_READ;
	login_check(op, m.token, logged_in);
	return 0;
}

static void
told_others(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct follow *f = a->follow;
	struct ipc_bytes text;
	struct buf b;

	f->reading = false;
	if (err != NULL)
		return;
	for (int i = 0; i < db_nrows(rows); i++) {
		f->seq = db_int(rows, i, 0);
		if (!f->known)
			continue;
		text = db_bytes(rows, i, 1);
		buf_init(&b, IPC_FRAME_MAX / 4);
		buf_put(&b, text.p, text.n);
		follow_line(a, &b);
		buf_free(&b);
	}
	f->known = true;
}

static void
read_others(struct admind *a)
{
	struct follow *f = a->follow;
	struct db_params p;

	if (f->reading || !db_is_up(a->db))
		return;
	f->reading = true;
	db_params_init(&p);
	if (!f->known) {
		db_query(a->db, &newest, &p, told_others, a);
		return;
	}
	db_p_i64(&p, f->seq);
	db_p_str(&p, a->node);
	db_query(a->db, &others, &p, told_others, a);
}

void
follow_tick(struct admind *a)
{
	struct follower *who, *next;
	uint64_t now;

	if (follow_count(a) == 0) {
		a->follow->known = false;
		return;
	}
	read_others(a);
	now = now_boot_ms();
	for (who = TAILQ_FIRST(&a->follow->list); who != NULL; who = next) {
		next = TAILQ_NEXT(who, entry);
		if (who->op->link->peer == NULL || now >= who->until_ms)
			leave(a, who);
	}
}
