/*
 * Rates: tokens leased from rows of PostgreSQL (docs/decisions/0043).
 *
 * A call takes one token from each bucket that applies to it. If the lease in
 * memory has a token, or there is no limit, the call goes on at once. Else the
 * call waits for the next lease. If the database has said when the next token
 * comes, calls are refused until then without asking the database again.
 *
 * A hostile admind gains nothing here: it decides about calls anyway.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "jobs.h"
#include "limits.h"
#include "log.h"
#include "table.h"
#include "token.h"

enum {
	RATES_MAX = 4096,  /* the most leases; a new one takes the place of the
			    * least recently used one */
	LEASE_PARTS = 20,  /* a lease is 1/20 of a minute's tokens */
	BURST_PARTS = 8,   /* a lease is at most 1/8 of the burst, because nodes
			    * share the burst */
	IDLE_MS = 10000,   /* tokens not used for so long are given back */
	FREE_MS = 5000,    /* "no limit" is valid for so long */
	SWEEP_TICKS = 600, /* seconds between sweeps of old buckets */
	TUNNEL_DEFAULT = 300,
};

/* The limit of one subject, from a row of limits_now(). */
struct own {
	enum rate_scope scope;
	char *subject;
	int64_t per_minute;
};

struct rate {
	struct table_node node; /* in the table of its scope, by subject */
	TAILQ_ENTRY(rate) order;
	struct rates *all;
	enum rate_scope scope;
	char subject[PRINCIPAL_MAX + 1];
	int64_t tokens;
	int64_t lease; /* tokens to ask for at a time */
	bool asking;   /* a lease is under way */
	int64_t per_minute;
	int64_t of_set; /* the permission set's limit that the lease is under;
			 * 0: the limit is another */
	/* Times in ms since boot. used: the last use. none_until: before this
	 * time the database has no token. free_until: until this time no limit
	 * applies, or no tool has this name. */
	uint64_t used, none_until, free_until;
	struct job_list waiting;
	unsigned nwaiting;
};

TAILQ_HEAD(rate_order, rate);

struct rates {
	struct admind *a;
	bool known; /* the limits were read */
	int64_t listener[LISTENER_ADMIND], principal, token,
	    tool;        /* tokens a minute */
	struct own *own; /* sorted by scope and subject */
	size_t nown;
	struct table by_subject[RATE_SCOPES];
	struct rate_order order; /* newest use last */
	unsigned n, ticks;
};

static const char *const scopes[] = {"principal", "tool", "listener"};

static const struct db_stmt lease = {"rate_lease",
    "SELECT granted, wait_ms, per_minute, burst"
    " FROM mcpbox.rate_lease($1::text, $2::text, $3::int8, $4::int8)",
    DB_SURE};
static const struct db_stmt give_back = {"rate_return",
    "SELECT mcpbox.rate_return($1::text, $2::text, $3::int8)", DB_SURE};
static const struct db_stmt sweep = {
    "rate_sweep", "SELECT mcpbox.rate_sweep()", DB_SURE};

struct rates *
rates_new(struct admind *a)
{
	struct rates *all = calloc(1, sizeof(*all));

	if (all == NULL)
		return NULL;
	for (int s = 0; s < RATE_SCOPES; s++)
		if (table_init(&all->by_subject[s], RATES_MAX) == -1) {
			while (s-- > 0)
				table_free(&all->by_subject[s]);
			free(all);
			return NULL;
		}
	all->a = a;
	all->listener[LISTENER_TUNNEL] = TUNNEL_DEFAULT;
	TAILQ_INIT(&all->order);
	return all;
}

/* ---- the limits ---- */

static int
compare(const void *x, const void *y)
{
	const struct own *a = x, *b = y;

	if (a->scope != b->scope)
		return a->scope < b->scope ? -1 : 1;
	return strcmp(a->subject, b->subject);
}

static void
free_own(struct own *own, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(own[i].subject);
	free(own);
}

static int64_t
general(const struct rates *all, enum rate_scope scope, const char *subject,
    enum listener l)
{
	switch (scope) {
	case RATE_LISTENER:
		return all->listener[l];
	case RATE_PRINCIPAL:
		return all->principal > 0 ||
			(strncmp(subject, "token:", 6) != 0 &&
			    strncmp(subject, "oidc:", 5) != 0)
		    ? all->principal
		    : all->token;
	default:
		return all->tool;
	}
}

/* Returns the limit of a subject's own, or NULL. */
static const struct own *
own_of(const struct rates *all, enum rate_scope scope, const char *subject)
{
	struct own key = {
	    .scope = scope, .subject = (char *)(uintptr_t)subject};

	return all->nown > 0
	    ? bsearch(&key, all->own, all->nown, sizeof(*all->own), compare)
	    : NULL;
}

/* Returns the limit that the job's permission set gives to its principal; 0:
 * another limit applies. A principal's own limit goes before. */
static int64_t
of_set(const struct rates *all, enum rate_scope scope, const struct job *j)
{
	return scope == RATE_PRINCIPAL && j->token != NULL &&
		own_of(all, scope, j->principal) == NULL
	    ? j->token->of.per_minute
	    : 0;
}

/* Returns whether a limit applies, as far as this process knows. */
static bool
limited(const struct rates *all, enum rate_scope scope, const char *subject,
    enum listener l)
{
	const struct own *own = own_of(all, scope, subject);

	if (!all->known)
		return db_is_up(all->a->db);
	return (own != NULL ? own->per_minute
			    : general(all, scope, subject, l)) > 0;
}

/* ---- leases ---- */

static void
nothing(void *arg, const struct pg_result *rows, const struct err *err)
{
	if (err != NULL)
		log_event(LOG_LV_WARN, "rate", "%s", err->text);
}

/* Gives the tokens of a lease back to its bucket, all but `keep`. */
static void
return_tokens(struct rate *r, int64_t keep)
{
	struct db_params p;

	if (r->tokens <= keep)
		return;
	db_params_init(&p);
	db_p_str(&p, scopes[r->scope]);
	db_p_str(&p, r->subject);
	db_p_i64(&p, r->tokens - keep);
	if (db_is_up(r->all->a->db))
		db_query(r->all->a->db, &give_back, &p, nothing, NULL);
	r->tokens = keep;
}

/* Returns the lease of a subject. Returns NULL without memory, or if there are
 * RATES_MAX leases and all are in use. */
static struct rate *
get(struct rates *all, enum rate_scope scope, const char *subject)
{
	struct table *t = &all->by_subject[scope];
	size_t n = strlen(subject);
	struct rate *r, *old;

	r = TABLE_OBJECT(struct rate, node, table_find(t, subject, n));
	if (r != NULL) {
		TAILQ_REMOVE(&all->order, r, order);
		TAILQ_INSERT_TAIL(&all->order, r, order);
		return r;
	}
	if (all->n == RATES_MAX) {
		TAILQ_FOREACH(old, &all->order, order)
			if (!old->asking && old->nwaiting == 0)
				break;
		if (old == NULL)
			return NULL;
		return_tokens(old, 0);
		table_del(&all->by_subject[old->scope], &old->node);
		TAILQ_REMOVE(&all->order, old, order);
		free(old);
		all->n--;
	}
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return NULL;
	r->all = all;
	r->scope = scope;
	r->lease = 1;
	memcpy(r->subject, subject, n + 1);
	TAILQ_INIT(&r->waiting);
	table_add(t, &r->node, r->subject, n);
	TAILQ_INSERT_TAIL(&all->order, r, order);
	all->n++;
	return r;
}

static void step(struct job *);

/* Lets the next lease follow another limit: gives the tokens of the former one
 * back, and forgets the answers of the database about it. */
static void
begin_again(struct rate *r)
{
	return_tokens(r, 0);
	r->none_until = r->free_until = 0;
	r->lease = 1;
}

static void
refuse(struct job *j, const struct rate *r, uint64_t now)
{
	char text[128] = "you call too often";
	struct buf data;
	struct jsonw w;

	buf_init(&data, IPC_FRAME_MAX);
	jsonw_open(&w, &data);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "limited", scopes[r->scope]);
	jsonw_kv_str(&w, "subject", r->subject);
	jsonw_kv_int(&w, "per_minute", r->per_minute);
	if (r->of_set > 0) {
		jsonw_kv_str(&w, "permission_set", j->token->of.name);
		snprintf(text, sizeof(text),
		    "you call too often: the permission set %s permits %lld "
		    "calls a minute",
		    j->token->of.name, (long long)r->of_set);
	}
	buf_putc(&data, '\0');
	j->retry_ms = r->none_until > now ? r->none_until - now : 1;
	job_refuse_data(j, FAILURE_RATE_LIMITED,
	    r->scope == RATE_TOOL ? "this tool is called too often"
		: r->scope == RATE_PRINCIPAL
		? text
		: "too many calls come by this listener",
	    data.failed ? "" : (const char *)data.p + 1);
	buf_free(&data);
}

static void
leased(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct rate *r = arg;
	struct job_list woken = TAILQ_HEAD_INITIALIZER(woken);
	int64_t burst;
	struct job *j;

	r->asking = false;
	TAILQ_CONCAT(&woken, &r->waiting, rate_wait);
	r->nwaiting = 0;
	if (err == NULL) {
		r->free_until =
		    db_null(rows, 0, 2) ? now_boot_ms() + FREE_MS : 0;
		r->per_minute = db_int(rows, 0, 2);
		burst = db_int(rows, 0, 3);
		r->tokens += db_int(rows, 0, 0);
		r->none_until = db_int(rows, 0, 1) > 0
		    ? now_boot_ms() + (uint64_t)db_int(rows, 0, 1)
		    : 0;
		r->lease = r->per_minute / LEASE_PARTS;
		if (r->lease > burst / BURST_PARTS)
			r->lease = burst / BURST_PARTS;
		if (r->lease < 1)
			r->lease = 1;
	}
	/* Each job takes its token and goes on, or waits again, or is
	 * refused. */
	while ((j = TAILQ_FIRST(&woken)) != NULL) {
		TAILQ_REMOVE(&woken, j, rate_wait);
		if (err != NULL)
			job_refuse(j, err->failure, err->text);
		else
			step(j);
	}
}

static void
ask_lease(struct rate *r)
{
	struct db_params p;

	if (r->asking)
		return;
	r->asking = true;
	db_params_init(&p);
	db_p_str(&p, scopes[r->scope]);
	db_p_str(&p, r->subject);
	db_p_i64(&p, r->lease > r->nwaiting ? r->lease : r->nwaiting);
	db_p_i64(&p, r->of_set);
	db_query(r->all->a->db, &lease, &p, leased, r);
}

/* ---- calls ---- */

/* Takes one token of each bucket from j->rate_at to before j->rate_end. A
 * refused call does not get back the tokens that it took. */
static void
step(struct job *j)
{
	struct rates *all = j->rates;
	uint64_t now = now_boot_ms();
	const char *subject;
	int64_t set;
	struct rate *r;

	for (; j->rate_at < j->rate_end && j->rate_at < RATE_SCOPES;
	    j->rate_at++) {
		subject = j->rate_at == RATE_TOOL  ? j->tool
		    : j->rate_at == RATE_PRINCIPAL ? j->principal
						   : listener_name(j->listener);
		set = of_set(all, j->rate_at, j);
		if (set == 0 && !limited(all, j->rate_at, subject, j->listener))
			continue;
		r = get(all, j->rate_at, subject);
		if (r == NULL) {
			job_refuse(j, FAILURE_BUSY, "out of memory");
			return;
		}
		r->used = now;
		/* Another document holds, or the person has two sets. */
		if (r->of_set != set) {
			begin_again(r);
			r->of_set = set;
		}
		if (r->free_until > now)
			continue;
		if (r->tokens == 0 && r->none_until > now) {
			refuse(j, r, now);
			return;
		}
		if (r->tokens == 0) {
			TAILQ_INSERT_TAIL(&r->waiting, j, rate_wait);
			r->nwaiting++;
			ask_lease(r);
			return;
		}
		r->tokens--;
		if (r->tokens < r->lease / 2 && r->none_until <= now)
			ask_lease(r);
	}
	j->admitted(j);
}

void
rates_take(struct rates *all, struct job *j, enum rate_scope first,
    enum rate_scope end, void (*then)(struct job *))
{
	j->rates = all;
	j->rate_at = first;
	j->rate_end = end;
	j->admitted = then;
	step(j);
}

/* Takes over the new limits. Gives back the tokens that were leased under the
 * former limits, so that the next leases follow the new limits. */
void
rates_set(struct rates *all, const struct pg_result *rows)
{
	struct own *own = calloc((size_t)db_nrows(rows) + 1, sizeof(*own));
	size_t n = 0;
	char name[64];
	struct rate *r;

	if (own == NULL)
		goto memory;
	for (int i = 0; i < db_nrows(rows); i++) {
		int64_t value = db_int(rows, i, 2);

		if (!db_text(rows, i, 0, name, sizeof(name)))
			continue;
		if (strcmp(name, "rate_local_per_minute") == 0)
			all->listener[LISTENER_LOCAL] = value;
		else if (strcmp(name, "rate_tunnel_per_minute") == 0)
			all->listener[LISTENER_TUNNEL] = value;
		else if (strcmp(name, "rate_principal_per_minute") == 0)
			all->principal = value;
		else if (strcmp(name, "rate_token_per_minute") == 0)
			all->token = value;
		else if (strcmp(name, "rate_tool_per_minute") == 0)
			all->tool = value;
		if (db_null(rows, i, 1))
			continue;
		for (unsigned s = 0; s < RATE_SCOPES; s++)
			if (strcmp(name, scopes[s]) == 0)
				own[n].scope = (enum rate_scope)s;
		own[n].per_minute = value;
		own[n].subject = ipc_strdup(db_bytes(rows, i, 1));
		if (own[n++].subject == NULL)
			goto memory;
	}
	qsort(own, n, sizeof(*own), compare);
	free_own(all->own, all->nown);
	all->own = own;
	all->nown = n;
	all->known = true;
	TAILQ_FOREACH(r, &all->order, order)
		begin_again(r);
	return;
memory:
	free_own(own, n);
	log_event(LOG_LV_ERR, "memory", "the rate limits were not read");
}

void
rates_tick(struct rates *all)
{
	uint64_t now = now_boot_ms();
	struct rate *r;

	TAILQ_FOREACH(r, &all->order, order)
		if (!r->asking && r->used + IDLE_MS < now)
			return_tokens(r, r->lease > 1 ? 1 : 0);
	if (++all->ticks % SWEEP_TICKS == 0)
		db_query(all->a->db, &sweep, NULL, nothing, NULL);
}
