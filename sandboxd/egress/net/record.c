#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bounds.h"
#include "jsonw.h"

static uint64_t
clock_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
record_now_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

void
records_init(struct records *r)
{
	TAILQ_INIT(&r->list);
	r->made = r->other = 0;
}

void
record_drop(struct record *r)
{
	if (r != NULL && --r->users == 0)
		free(r);
}

struct record *
record_hold(struct record *r)
{
	r->users++;
	return r;
}

void
records_free(struct records *t)
{
	struct record *r;

	while ((r = TAILQ_FIRST(&t->list)) != NULL) {
		TAILQ_REMOVE(&t->list, r, link);
		record_drop(r);
	}
}

struct record *
record_new(const char *host, uint16_t port, bool udp)
{
	struct record *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->users = 1;
	snprintf(r->host, sizeof(r->host), "%s", host);
	r->port = port;
	r->udp = udp;
	r->started_ms = clock_us(CLOCK_REALTIME) / 1000;
	r->began_us = record_now_us();
	return r;
}

static bool
stands(const struct records *t, const struct record *r)
{
	const struct record *o;

	TAILQ_FOREACH(o, &t->list, link)
		if (o->verdict == r->verdict && o->port == r->port &&
		    o->udp == r->udp && strcmp(o->host, r->host) == 0 &&
		    strcmp(o->reason, r->reason) == 0)
			return true;
	return false;
}

void
records_add(struct records *t, struct record *r, enum record_verdict verdict,
    const char *reason)
{
	r->verdict = verdict;
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
	if (verdict == RECORD_CONNECTED || verdict == RECORD_PENDING) {
		if (t->made == RECORD_MADE_MAX)
			return;
		t->made++;
	} else {
		record_end(r);
		if (t->other == RECORD_OTHER_MAX || stands(t, r))
			return;
		t->other++;
	}
	record_hold(r);
	TAILQ_INSERT_TAIL(&t->list, r, link);
}

void
record_end(struct record *r)
{
	if (r->ended_us == 0)
		r->ended_us = record_now_us();
}

void
record_fail(struct record *r, const char *reason)
{
	r->verdict = RECORD_FAILED;
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

static const char *
verdict_name(enum record_verdict v)
{
	switch (v) {
	case RECORD_CONNECTED:
		return "connected";
	case RECORD_REFUSED:
		return "refused";
	case RECORD_PENDING:
		return "connecting";
	default:
		return "failed";
	}
}

static void
put(struct buf *b, const struct record *r)
{
	const uint64_t end = r->ended_us != 0 ? r->ended_us : record_now_us();
	struct jsonw w;

	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "host", r->host);
	jsonw_kv_str(&w, "address", r->address);
	jsonw_kv_int(&w, "port", r->port);
	jsonw_kv_str(&w, "protocol", r->udp ? "udp" : "tcp");
	jsonw_kv_str(&w, "verdict", verdict_name(r->verdict));
	jsonw_kv_str(&w, "reason", r->reason);
	jsonw_kv_int(&w, "bytes_in", (int64_t)r->in);
	jsonw_kv_int(&w, "bytes_out", (int64_t)r->out);
	jsonw_kv_int(&w, "started_ms", (int64_t)r->started_ms);
	jsonw_kv_int(&w, "duration_ms", (int64_t)((end - r->began_us) / 1000));
	jsonw_obj_end(&w);
}

int
records_json(const struct records *t, struct buf *out)
{
	const struct record *r;
	struct buf one;
	int rc = -1;

	buf_init(&one, NET_REPORT_MAX);
	buf_putc(out, '[');
	TAILQ_FOREACH(r, &t->list, link) {
		buf_clear(&one);
		put(&one, r);
		if (one.failed)
			goto out;
		if (out->len + one.len + 2 > NET_REPORT_MAX)
			continue;
		if (out->len > 1)
			buf_putc(out, ',');
		buf_put(out, one.p, one.len);
	}
	buf_putc(out, ']');
	rc = out->failed ? -1 : 0;
out:
	buf_free(&one);
	return rc;
}
