/*
 * Breakers and rates before a call, and the settings with their limits.
 *
 * The breakers are asked first, because they cost a few comparisons and no rate
 * token. Then the call takes a token of its principal, and the object is looked
 * up. If the object exists and may be called, the call takes a token of the
 * tool and one of the listener.
 *
 * A call that needs a person's approval comes twice, the second time with the
 * request that gatewayd was told of. The second call is not counted, because
 * the first was. admind has only gatewayd's word for the request. So if the
 * tool needs no approval, limits_known() counts the call after all. If the tool
 * needs approval, a made-up request is refused, and a true one can be used
 * once.
 */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "jobs.h"
#include "json_kv.h"
#include "limits.h"
#include "log.h"

struct limits {
	struct admind *a;
	struct breakers *breakers; /* NULL: switched off */
	struct breaker_conf conf;
	struct rates *rates;
	bool reading, again;
};

static const struct db_stmt read_all = {"limits_read",
    "SELECT name, subject, value, burst FROM mcpbox.limits_now()", DB_FAST};

/* The defaults of setting_keys. They apply until the database was read. */
static const struct breaker_conf defaults = {
    .of = {[BREAKER_SESSION] = {1000, 20, 10},
	[BREAKER_PRINCIPAL] = {10000, 100, 50}},
    .calls_ms = 3600 * 1000,
    .repeats_ms = 600 * 1000,
    .reset_ms = 60 * 1000};

/* ---- the numbers ---- */

static void
number(struct breaker_conf *c, const char *name, int64_t n)
{
	const struct {
		const char *name;
		uint32_t *n;
	} counts[] = {
	    {"breaker_session_calls", &c->of[BREAKER_SESSION].calls},
	    {"breaker_session_repeats", &c->of[BREAKER_SESSION].repeats},
	    {"breaker_session_errors", &c->of[BREAKER_SESSION].errors},
	    {"breaker_principal_calls", &c->of[BREAKER_PRINCIPAL].calls},
	    {"breaker_principal_repeats", &c->of[BREAKER_PRINCIPAL].repeats},
	    {"breaker_principal_errors", &c->of[BREAKER_PRINCIPAL].errors},
	};
	const struct {
		const char *name;
		uint64_t *ms;
	} times[] = {{"breaker_calls_window_s", &c->calls_ms},
	    {"breaker_repeats_window_s", &c->repeats_ms},
	    {"breaker_reset_s", &c->reset_ms}};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (strcmp(name, counts[i].name) == 0)
			*counts[i].n = (uint32_t)n;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (strcmp(name, times[i].name) == 0)
			*times[i].ms = (uint64_t)n * 1000;
}

static void
close_all(struct limits *l)
{
	unsigned n = l->breakers != NULL
	    ? breakers_reset(l->breakers, now_boot_ms())
	    : 0;

	if (n > 0)
		log_event(LOG_LV_INFO, "breakers_reset", "%u were open", n);
}

/* Takes over the limits. If the breakers' limits changed, all counters begin
 * again, so that raising a limit lets refused callers go on. */
static void
got_all(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct limits *l = arg;
	struct breaker_conf before = l->conf;
	char name[64];

	l->reading = false;
	if (err != NULL) {
		log_event(LOG_LV_WARN, "limits", "%s", err->text);
	} else {
		for (int i = 0; i < db_nrows(rows); i++)
			if (db_text(rows, i, 0, name, sizeof(name)))
				number(&l->conf, name, db_int(rows, i, 2));
		rates_set(l->rates, rows);
		if (memcmp(&before, &l->conf, sizeof(before)) != 0)
			close_all(l);
	}
	if (l->again)
		limits_reload(l->a);
}

void
limits_reload(struct admind *a)
{
	struct limits *l = a->limits;

	l->again = l->reading;
	if (l->reading)
		return;
	l->reading = true;
	db_query(a->db, &read_all, NULL, got_all, l);
}

void
limits_notified(struct admind *a, const char *payload)
{
	if (strcmp(payload, "breakers") == 0)
		close_all(a->limits);
	else
		limits_reload(a);
}

int
limits_start(struct admind *a, struct err *err)
{
	struct limits *l = calloc(1, sizeof(*l));

	if (l == NULL ||
	    (conf_bool(a->proc.conf, "breakers") &&
		(l->breakers = breakers_new()) == NULL) ||
	    (l->rates = rates_new(a)) == NULL) {
		if (l != NULL)
			breakers_free(l->breakers);
		free(l);
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	}
	l->a = a;
	l->conf = defaults;
	a->limits = l;
	return 0;
}

void
limits_tick(struct admind *a)
{
	rates_tick(a->limits->rates);
}

/* ---- breakers ---- */

static void
log_trip(const struct breaker_trip *t, const char *principal, const char *tool)
{
	log_call(LOG_LV_WARN, "breaker_open", NULL, principal,
	    "%s%s%s: limit %u, for %llu ms", tool, tool[0] != '\0' ? ": " : "",
	    breaker_name(t), t->limit, (unsigned long long)t->wait_ms);
}

static void
put_trip(struct jsonw *w, const struct breaker_trip *t)
{
	jsonw_kv_str(w, "breaker", breaker_name(t));
	jsonw_kv_int(w, "limit", t->limit);
	if (t->window_ms != 0)
		jsonw_kv_int(w, "window_ms", (int64_t)t->window_ms);
	json_kv_time(w, "resets_at", now_us() + t->wait_ms * 1000);
}

static void
refuse(struct job *j, const struct breaker_trip *t)
{
	static const char *const sentences[] = {
	    [BREAKER_CALLS] = "too many calls were made",
	    [BREAKER_REPEATS] = "the same call was made too often: its answer "
				"will not change, do something else",
	    [BREAKER_ERRORS] = "too many calls in a row failed: find out why "
			       "before calling again"};
	struct buf data;
	struct jsonw w;

	if (t->fresh)
		log_trip(t, j->principal, j->tool);
	buf_init(&data, IPC_FRAME_MAX);
	jsonw_open(&w, &data);
	jsonw_obj(&w);
	put_trip(&w, t);
	buf_putc(&data, '\0');
	j->retry_ms = t->wait_ms;
	/* data is an object without its closing brace. The + 1 skips the
	 * opening brace, since job_refuse_data() takes members. */
	job_refuse_data(j, FAILURE_CIRCUIT_OPEN, sentences[t->kind],
	    data.failed ? "" : (const char *)data.p + 1);
	buf_free(&data);
}

static bool
names_request(const struct job *j)
{
	static const struct ipc_id none;

	return memcmp(&j->approval, &none, sizeof(none)) != 0;
}

/* Counts the call at the breakers. Returns 0, or -1: the job was refused and is
 * gone. */
static int
count(struct job *j)
{
	struct limits *l = j->a->limits;
	struct breaker_trip t;

	if (l->breakers == NULL)
		return 0;
	j->who.key[BREAKER_SESSION] = j->session;
	breaker_principal(
	    j->listener, j->principal, &j->who.key[BREAKER_PRINCIPAL]);
	if (breaker_call(l->breakers, &l->conf, &j->who, j->method, j->tool,
		&j->alike, now_boot_ms(), &t) == -1) {
		refuse(j, &t);
		return -1;
	}
	j->counted = true;
	return 0;
}

void
limits_begin(struct job *j, void (*then)(struct job *))
{
	if (names_request(j))
		then(j);
	else if (count(j) == 0)
		rates_take(
		    j->a->limits->rates, j, RATE_PRINCIPAL, RATE_TOOL, then);
}

void
limits_known(struct job *j, void (*then)(struct job *))
{
	enum rate_scope first = RATE_TOOL;

	if (j->known || (names_request(j) && j->confirm)) {
		then(j);
		return;
	}
	j->known = true;
	if (names_request(j)) {
		if (count(j) == -1)
			return;
		first = RATE_PRINCIPAL;
	}
	rates_take(j->a->limits->rates, j, first, RATE_SCOPES, then);
}

void
limits_ended(struct job *j, enum failure f)
{
	struct limits *l = j->a->limits;
	struct breaker_trip t;

	if (j->counted)
		breaker_untried(l->breakers, &l->conf, &j->who, j->method,
		    j->tool, &j->alike, f, now_boot_ms());
	if (j->counted &&
	    breaker_ended(l->breakers, &l->conf, &j->who, f, now_boot_ms(), &t))
		log_trip(&t, j->principal, j->tool);
	j->counted = false;
}

void
limits_under_way(struct job *j)
{
	if (j->counted)
		breaker_under_way(
		    j->a->limits->breakers, &j->execution, &j->who);
	j->counted = false;
}

void
limits_record(struct admind *a, const struct ipc_id *id, enum failure f)
{
	struct limits *l = a->limits;
	struct breaker_trip t;

	if (l->breakers != NULL &&
	    breaker_record(l->breakers, &l->conf, id, f, now_boot_ms(), &t))
		log_trip(&t, NULL, "");
}

/* ---- for administrators ---- */

static void
put_open(void *arg, const struct ipc_id *key, const struct breaker_trip *t)
{
	struct jsonw *w = arg;

	jsonw_obj(w);
	json_kv_id(w, "key", key);
	put_trip(w, t);
	jsonw_obj_end(w);
}

void
limits_breakers_json(struct admind *a, struct jsonw *w)
{
	struct limits *l = a->limits;

	jsonw_kv_bool(w, "enabled", l->breakers != NULL);
	jsonw_name(w, "open");
	jsonw_arr(w);
	if (l->breakers != NULL)
		breakers_each(
		    l->breakers, &l->conf, now_boot_ms(), put_open, w);
	jsonw_arr_end(w);
}
