/* See records.h. */
#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "kept.h"
#include "ledger.h"
#include "log.h"
#include "records.h"
#include "tlv.h"

struct records {
	struct table by_id;
	TAILQ_HEAD(, record) list; /* oldest first */
	size_t bytes;              /* of payloads */
	unsigned under_way;
	struct ipc_peer *peer; /* admind or NULL */
	struct event *retry;
	struct ipc_id epoch;
	struct ledger *ledger; /* NULL: none (tests) */
	bool full;             /* it was logged that the ledger is full */
	size_t inherited;      /* records of other epochs in the list */
	void (*settled)(void *arg);
	void *settled_arg;
};

struct record *
record_new(const struct ipc_id *id, struct ipc_bytes intent)
{
	struct record *r;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return NULL;
	r->id = *id;
	buf_init(&r->intent, intent.n);
	buf_put(&r->intent, intent.p, intent.n);
	buf_init(&r->payload, STDOUT_SHOWN_MAX + RECORD_BODY_MAX);
	buf_init(&r->network, NET_REPORT_MAX);
	if (r->intent.failed) {
		record_free(r);
		return NULL;
	}
	return r;
}

int
record_arguments(struct record *r, struct ipc_bytes text)
{
	enum { HEAD = 5 }; /* a field's tag and length */
	struct buf b;

	buf_init(&b, r->intent.len + HEAD + text.n);
	buf_put(&b, r->intent.p, r->intent.len);
	tlv_put(&b, INTENT_ARGUMENTS, text.p, text.n);
	if (b.failed) {
		buf_free(&b);
		return -1;
	}
	buf_free(&r->intent);
	r->intent = b;
	return 0;
}

void
record_free(struct record *r)
{
	if (r == NULL)
		return;
	buf_free(&r->intent);
	buf_free(&r->payload);
	buf_free(&r->network);
	free(r);
}

/* Returns the longest prefix of at most max bytes that does not end inside a
 * UTF-8 sequence. */
static size_t
cut(struct ipc_bytes b, size_t max)
{
	size_t n = b.n;

	if (n <= max)
		return n;
	n = max;
	while (n > 0 && (b.p[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* Writes stdout and the body in the form that records keep. */
static void
put_payload(struct record *r, struct ipc_bytes out, struct ipc_bytes body)
{
	size_t no = cut(out, STDOUT_SHOWN_MAX);

	buf_put(&r->payload, out.p, no);
	r->stdout_len = (uint32_t)no;
	if (kept_form(body.p, body.n, RECORD_BODY_MAX, &r->payload) == 0)
		buf_put(&r->payload, body.p, body.n);
}

static void
none_if_failed(struct record *r)
{
	if (!r->payload.failed)
		return;
	buf_clear(&r->payload);
	r->stdout_len = r->meta_len = r->kept_len = 0;
}

void
record_payload(struct record *r, struct ipc_bytes out, struct ipc_bytes body)
{
	buf_clear(&r->payload);
	put_payload(r, out, body);
	none_if_failed(r);
}

void
record_whole(struct record *r, struct ipc_bytes out, struct ipc_bytes body,
    struct ipc_bytes meta)
{
	buf_free(&r->payload);
	buf_init(&r->payload, IPC_BLOB_MAX);
	put_payload(r, out, body);
	r->kept_len = (uint32_t)(r->payload.len - r->stdout_len);
	buf_put(&r->payload, body.p, body.n);
	buf_put(&r->payload, meta.p, meta.n);
	r->meta_len = (uint32_t)meta.n;
	none_if_failed(r);
}

static void flush(struct records *);

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

static void
retry_later(struct records *rs)
{
	static const struct timeval tv = {.tv_usec = RECORD_RETRY_MS * 1000};

	if (rs->peer != NULL)
		(void)evtimer_add(rs->retry, &tv);
}

static struct ipc_record
message(const struct record *r)
{
	return (struct ipc_record){
	    .execution = r->id,
	    .epoch = r->epoch,
	    .outcome = (uint8_t)r->outcome,
	    .failure = (uint16_t)r->failure,
	    .delivered = r->delivered,
	    .started_us = r->started_us,
	    .ended_us = r->ended_us,
	    .cpu_us = r->cpu_us,
	    .intent = ipc_bytes(r->intent.p, r->intent.len),
	    .stdout_len = r->stdout_len,
	    .meta_len = r->meta_len,
	    .kept_len = r->kept_len,
	    .network = ipc_bytes(r->network.p, r->network.len),
	    .connections = r->connections,
	    .net_refused = r->net_refused,
	    .net_bytes = r->net_bytes,
	    .stdout_result = ipc_bytes(r->payload.p, r->payload.len),
	};
}

/* --- The ledger. ---------------------------------------------------------- */

static void
write_down(struct records *rs, struct record *r, struct ipc_record *m)
{
	int rc;

	if (rs->ledger == NULL)
		return;
	rc = ledger_put(rs->ledger, &r->note, m);
	/* A task's record (kept_len > 0) is not written without the result. The
	 * client has no other source of the result, so to the client such a
	 * task is as good as lost. */
	if (rc != 0 && m->stdout_result.n > 0 && m->kept_len == 0) {
		m->stdout_result = ipc_bytes(NULL, 0);
		m->stdout_len = 0;
		rc = ledger_put(rs->ledger, &r->note, m);
	}
	if ((rc != 0) != rs->full) {
		rs->full = rc != 0;
		if (rs->full)
			log_event(LOG_LV_WARN, "ledger_full",
			    "a record is in no ledger until admind has it: "
			    "admind takes none, or run_dir has no room");
		else
			log_event(LOG_LV_INFO, "ledger_has_room",
			    "records are kept in it again");
	}
}

void
records_keep(
    struct records *rs, struct record *r, bool runs, struct ipc_bytes network)
{
	struct ipc_record m;

	r->epoch = rs->epoch;
	m = message(r);
	if (runs)
		m.cpu_us = RECORD_CPU_UNKNOWN;
	if (network.n > 0)
		m.network = network;
	write_down(rs, r, &m);
}

/* Drops a record that admind has, or will never take. */
static void
done(struct records *rs, struct record *r)
{
	bool last;

	TAILQ_REMOVE(&rs->list, r, link);
	table_del(&rs->by_id, &r->node);
	rs->bytes -= r->payload.len + r->network.len;
	if (rs->ledger != NULL)
		ledger_drop(rs->ledger, &r->note);
	last = memcmp(&r->epoch, &rs->epoch, sizeof(rs->epoch)) != 0 &&
	    --rs->inherited == 0;
	record_free(r);
	if (last && rs->settled != NULL)
		rs->settled(rs->settled_arg);
}

/*
 * Tells whether a predecessor's record is well formed. The predecessor may have
 * been taken over, so its records are not trusted. If a malformed record were
 * sent, admind would end the connection each time.
 */
static bool
sound(const struct ipc_record *m)
{
	return m->outcome >= OUTCOME_DONE && m->outcome <= OUTCOME_LOST &&
	    m->stdout_len <= m->stdout_result.n &&
	    m->meta_len <= m->stdout_result.n - m->stdout_len &&
	    m->kept_len <= m->stdout_result.n - m->stdout_len - m->meta_len &&
	    m->network.n <= NET_REPORT_MAX;
}

static struct ledger_note *
inherit(void *arg, const struct ipc_record *m)
{
	struct records *rs = arg;
	struct record *r;

	if (!sound(m) || memcmp(&m->epoch, &rs->epoch, sizeof(m->epoch)) == 0)
		return NULL;
	/* A call may have two entries. The first one was written before the
	 * runner was reaped; the second one replaces it. */
	r = TABLE_OBJECT(struct record, node,
	    table_find(&rs->by_id, &m->execution, sizeof(struct ipc_id)));
	if (r == NULL) {
		if ((r = record_new(&m->execution, m->intent)) == NULL)
			return NULL;
		r->owner = rs;
		TAILQ_INSERT_TAIL(&rs->list, r, link);
		table_add(&rs->by_id, &r->node, &r->id, sizeof(r->id));
		rs->inherited++;
	} else {
		rs->bytes -= r->payload.len + r->network.len;
	}
	r->epoch = m->epoch;
	r->outcome = (enum outcome)m->outcome;
	r->failure = (enum failure)m->failure;
	r->delivered = m->delivered != 0;
	r->started_us = m->started_us;
	r->ended_us = m->ended_us;
	r->cpu_us = m->cpu_us;
	r->stdout_len = m->stdout_len;
	r->meta_len = m->meta_len;
	r->kept_len = m->kept_len;
	r->connections = m->connections;
	r->net_refused = m->net_refused;
	r->net_bytes = m->net_bytes;
	buf_free(&r->payload);
	buf_init(&r->payload, IPC_BLOB_MAX);
	buf_put(&r->payload, m->stdout_result.p, m->stdout_result.n);
	none_if_failed(r);
	buf_clear(&r->network);
	buf_put(&r->network, m->network.p, m->network.n);
	rs->bytes += r->payload.len + r->network.len;
	return &r->note;
}

int
records_ledger(struct records *rs, const char *run_dir, void (*settled)(void *),
    void *arg, struct err *e)
{
	size_t unreadable;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/sandboxd/ledger", run_dir);
	rs->settled = settled;
	rs->settled_arg = arg;
	if (ledger_open(&rs->ledger, path, LEDGER_AREA, inherit, rs,
		&unreadable, e) != 0)
		return -1;
	if (unreadable > 0)
		log_event(LOG_LV_WARN, "ledger_unreadable",
		    "%zu bytes that another build left were given up: what the "
		    "database has not got is recorded as lost",
		    unreadable);
	if (rs->inherited > 0)
		log_event(LOG_LV_INFO, "records_inherited",
		    "%zu calls that ended before this process began",
		    rs->inherited);
	return 0;
}

size_t
records_inherited(const struct records *rs)
{
	return rs->inherited;
}

/* --- To admind. ----------------------------------------------------------- */

/* Tells whether to give up a predecessor's record: admind has refused it
 * several times, for a reason that does not pass. One such record must not keep
 * clients from this sandbox for ever. */
static bool
hopeless(const struct records *rs, struct record *r, struct ipc_frame *f)
{
	struct ipc_refused m;
	char *text;

	if (memcmp(&r->epoch, &rs->epoch, sizeof(r->epoch)) == 0 || f == NULL ||
	    f->type != IPC_REFUSED || ipc_decode(f, &m, NULL) != 0 ||
	    m.failure == FAILURE_STORAGE_UNAVAILABLE ||
	    m.failure == FAILURE_BUSY || m.failure == FAILURE_UPGRADING ||
	    ++r->refusals < RECORD_REFUSALS_MAX)
		return false;
	text = ipc_strdup(m.message);
	log_event(LOG_LV_ERR, "record_given_up",
	    "a record of an earlier life of this process: %s",
	    text != NULL ? text : "");
	free(text);
	return true;
}

/*
 * Takes admind's answer. admind sends OK after its commit, and then the record
 * is forgotten. After any other end (refused, late, connection lost) the record
 * stays for the next attempt, unless it is hopeless(). admind closes a row
 * once, so a second RECORD of one id is harmless.
 */
static void
on_answer(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct record *r = arg;
	struct records *rs = r->owner;

	r->sent = false;
	rs->under_way--;
	if ((f != NULL && f->type == IPC_OK) || hopeless(rs, r, f)) {
		done(rs, r);
		flush(rs);
		return;
	}
	retry_later(rs);
}

static int
send_one(struct records *rs, struct record *r)
{
	struct ipc_record m = message(r);

	if (ipc_request(rs->peer, IPC_RECORD, &m, RECORD_ANSWER_MS, on_answer,
		r, &r->request) != 0)
		return -1;
	r->sent = true;
	rs->under_way++;
	return 0;
}

static void
flush(struct records *rs)
{
	struct record *r;

	if (rs->peer == NULL)
		return;
	TAILQ_FOREACH(r, &rs->list, link) {
		if (rs->under_way >= RECORD_WINDOW)
			return;
		if (!r->sent && send_one(rs, r) != 0) {
			retry_later(rs);
			return;
		}
	}
}

struct records *
records_new(struct event_base *base, size_t max, const struct ipc_id *epoch)
{
	struct records *rs;

	if ((rs = calloc(1, sizeof(*rs))) == NULL)
		return NULL;
	TAILQ_INIT(&rs->list);
	rs->epoch = *epoch;
	rs->retry = evtimer_new(base, on_retry, rs);
	if (rs->retry == NULL || table_init(&rs->by_id, max) != 0) {
		records_free(rs);
		return NULL;
	}
	return rs;
}

void
records_free(struct records *rs)
{
	struct record *r;

	if (rs == NULL)
		return;
	while ((r = TAILQ_FIRST(&rs->list)) != NULL) {
		TAILQ_REMOVE(&rs->list, r, link);
		if (r->sent && rs->peer != NULL)
			ipc_forget(rs->peer, r->request);
		record_free(r);
	}
	if (rs->retry != NULL)
		event_free(rs->retry);
	table_free(&rs->by_id);
	ledger_close(rs->ledger);
	free(rs);
}

void
records_add(struct records *rs, struct record *r)
{
	struct ipc_record m;

	r->owner = rs;
	r->epoch = rs->epoch;
	if (rs->bytes + r->payload.len + r->network.len > RECORD_BYTES_MAX) {
		log_event(LOG_LV_WARN, "record_payload_dropped",
		    "admind does not take records; this one keeps no output");
		buf_free(&r->payload);
		buf_init(&r->payload, 0);
		buf_clear(&r->network);
		r->stdout_len = r->meta_len = r->kept_len = 0;
	}
	/* All values are known now. */
	m = message(r);
	write_down(rs, r, &m);
	rs->bytes += r->payload.len + r->network.len;
	TAILQ_INSERT_TAIL(&rs->list, r, link);
	table_add(&rs->by_id, &r->node, &r->id, sizeof(r->id));
	flush(rs);
}

size_t
records_count(const struct records *rs)
{
	return rs->by_id.count;
}

bool
records_has(const struct records *rs, const struct ipc_id *id)
{
	return table_find(&rs->by_id, id, sizeof(struct ipc_id)) != NULL;
}

void
records_each(
    struct records *rs, void (*f)(struct table_node *, void *), void *arg)
{
	table_each(&rs->by_id, f, arg);
}

bool
records_connected(const struct records *rs)
{
	return rs->peer != NULL;
}

void
records_peer(struct records *rs, struct ipc_peer *peer)
{
	struct record *r;

	/* An answer on the earlier connection no longer counts: these records
	 * are sent again. */
	if (rs->peer != NULL && rs->peer != peer)
		TAILQ_FOREACH(r, &rs->list, link)
			if (r->sent) {
				ipc_forget(rs->peer, r->request);
				r->sent = false;
				rs->under_way--;
			}
	rs->peer = peer;
	(void)evtimer_del(rs->retry);
	flush(rs);
}
