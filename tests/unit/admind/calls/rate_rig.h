/* Rates (rate.c) with a fake database. A job here has only the members that
 * rate.c reads. Included once. */
#ifndef RATE_RIG_H
#define RATE_RIG_H

#include <event2/event.h>

#include "fake_db.h"
#include "ids.h"
#include "jobs.h"
#include "limits.h"
#include "token.h"
#include "unit.h"

enum { RATES_MAX = 4096, BEGIN_MS = 1000000 };

static struct admind a;
static struct rates *rates;
static uint64_t clock_ms;

/* A process makes one for its life; ours stay known to us. */
static struct rates *made[64];
static unsigned nmade;

static inline void
make_rates(void)
{
	assert_true(nmade < sizeof(made) / sizeof(made[0]));
	rates = made[nmade++] = rates_new(&a);
	assert_non_null(rates);
}

/* Our clock in the place of the boot clock: the link line says --wrap. */
uint64_t __wrap_now_boot_ms(void);
uint64_t
__wrap_now_boot_ms(void)
{
	return clock_ms;
}

/* ---- jobs ---- */

static unsigned admitted, refused;
static struct {
	enum failure failure;
	char message[160], data[200];
	uint64_t retry_ms;
	const struct job *job;
} last; /* refusal */

static inline void
note(struct job *j, enum failure f, const char *message, const char *data)
{
	refused++;
	last.failure = f;
	last.retry_ms = j->retry_ms;
	last.job = j;
	(void)snprintf(last.message, sizeof(last.message), "%s", message);
	(void)snprintf(last.data, sizeof(last.data), "%s", data);
}

void
job_refuse(struct job *j, enum failure f, const char *message)
{
	note(j, f, message, "");
}

void
job_refuse_data(
    struct job *j, enum failure f, const char *message, const char *data)
{
	note(j, f, message, data);
}

static inline void
then(struct job *j)
{
	admitted++;
}

static inline void
take(struct job *j, const char *principal, const char *tool, enum listener l,
    enum rate_scope first, enum rate_scope end)
{
	memset(j, 0, sizeof(*j));
	(void)snprintf(j->principal, sizeof(j->principal), "%s", principal);
	(void)snprintf(j->tool, sizeof(j->tool), "%s", tool);
	j->listener = l;
	rates_take(rates, j, first, end, then);
}

/* One call's own token, of a principal. */
static inline void
call(struct job *j, const char *principal)
{
	take(j, principal, "s__t", LISTENER_LOCAL, RATE_PRINCIPAL, RATE_TOOL);
}

/* ---- the database ---- */

/* A setting of limits_now(). */
static inline void
setting(const char *name, int64_t value)
{
	fake_db_row("snin", name, value);
}

static inline void
own_limit(const char *scope, const char *subject, int64_t value)
{
	fake_db_row("ssin", scope, subject, value);
}

static const struct db_stmt limits_read = {"limits_read", "", DB_FAST};

static inline void
got_limits(void *arg, const struct pg_result *rows, const struct err *err)
{
	rates_set(rates, rows);
}

static inline void
set_limits(void)
{
	db_query(a.db, &limits_read, NULL, got_limits, NULL);
	fake_db_answer("limits_read");
}

/* granted tokens of a lease; wait_ms 0: the bucket has more. */
static inline void
grant(int64_t granted, int64_t wait_ms, int64_t per_minute, int64_t burst)
{
	fake_db_row("iiii", granted, wait_ms, per_minute, burst);
	fake_db_answer("rate_lease");
}

static inline int
setup(void **unused)
{
	clock_ms = BEGIN_MS;
	admitted = refused = 0;
	memset(&last, 0, sizeof(last));
	a.proc.base = event_base_new();
	a.db = fake_db_new(a.proc.base);
	make_rates();
	/* no limit but 600 a minute for each principal */
	setting("rate_principal_per_minute", 600);
	setting("rate_tunnel_per_minute", 0);
	set_limits();
	return 0;
}

static inline int
teardown(void **unused)
{
	fake_db_free(a.db);
	event_base_free(a.proc.base);
	return 0;
}

#endif
