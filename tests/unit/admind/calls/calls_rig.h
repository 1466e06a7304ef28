/* admind with the room of calls, as main starts it. Included once. */
#ifndef CALLS_RIG_H
#define CALLS_RIG_H

#include "activity.h"
#include "call.h"
#include "ending.h"
#include "fake_admind.h"
#include "ids.h"
#include "jobs.h"
#include "limit.h"
#include "limits.h"
#include "unit.h"

static struct fake f;
static struct admind *a;
static unsigned inherited_closed;

static const char schema[] = "{\"type\":\"object\"}";

static inline void
note_inherited(struct admind *unused)
{
	inherited_closed++;
}

/* again: the run_dir of an earlier life, or NULL. */
static inline void
rig_start(const char *again)
{
	struct err err;

	fake_admind(&f, again);
	a = f.a;
	inherited_closed = 0;
	assert_int_equal(ending_ledger(a, note_inherited, &err), 0);
	assert_int_equal(activity_start(a, &err), 0);
	assert_int_equal(limits_start(a, &err), 0);
	/* There are no limits. */
	limits_reload(a);
	fake_db_answer("limits_read");
}

static inline int
setup(void **unused)
{
	rig_start(NULL);
	return 0;
}

static inline int
teardown(void **unused)
{
	fake_end_all();
	while (!TAILQ_EMPTY(&a->jobs))
		job_free(TAILQ_FIRST(&a->jobs));
	fake_admind_free(&f, false);
	return 0;
}

static inline struct ipc_id
id_of(uint8_t byte)
{
	struct ipc_id id;

	memset(id.b, byte, sizeof(id.b));
	return id;
}

/* An AUTHORISE of the local gateway. */
static inline void
authorise(uint64_t request, const char *tool, const char *arguments)
{
	struct ipc_authorise m = {.tool = ipc_str(tool),
	    .arguments = ipc_str(arguments),
	    .protocol = ipc_str("2026-07-28"),
	    .client = ipc_str("unit 1")};

	assert_int_equal(
	    call_message(f.gateway, fake_frame(IPC_AUTHORISE, request, &m)), 0);
}

/* The one job in work. */
static inline struct job *
job(void)
{
	assert_int_equal(a->njobs, 1);
	return TAILQ_FIRST(&a->jobs);
}

/* Members that the lookup may find, beside the serving version. */
struct found {
	const char *stopped, *missing, *object;
	bool none, revoked, confirm, is_static;
};

/* Answers the lookup with version 7 of the tool s__t. */
static inline void
answer_lookup(const struct found *x)
{
	const struct ipc_id id = id_of(7);
	struct ipc_hash hash;
	char columns[64];
	size_t n;

	memset(hash.b, 8, sizeof(hash.b));
	/* id hash preimage schema seal stopped secrets revoked quarantine
	 * missing task object static required confirm limits_at server name
	 * grants, then the limits */
	n = (size_t)snprintf(columns, sizeof(columns), "%s%s",
	    x->none ? "nnnnn" : "uhsss", "s0bnsssbnbnssn");
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (limit_info((enum limit)i)->version != 0) {
			assert_true(n < sizeof(columns) - 1);
			columns[n++] = '0';
			columns[n] = '\0';
		}
	if (x->none)
		fake_db_row(columns, x->stopped, x->revoked, x->missing, "none",
		    x->object != NULL ? x->object : "tool", x->is_static,
		    x->confirm, "s", "t");
	else
		fake_db_row(columns, &id, &hash, "PREIMAGE", schema, "SEAL",
		    x->stopped, x->revoked, x->missing, "none",
		    x->object != NULL ? x->object : "tool", x->is_static,
		    x->confirm, "s", "t");
	fake_db_answer("call_lookup");
}

#endif
