/* records.h: what a ledger without room keeps, and what the next life makes of
 * it. */
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "bounds.h"
#include "records.h"
#include "unit.h"

static const struct ipc_id lives[] = {{{1}}, {{2}}};
static char dir[32], path[64], file[80];
static struct event_base *base;

static struct records *
life(unsigned which)
{
	struct records *rs = records_new(base, 1024, &lives[which]);
	struct err e;

	assert_non_null(rs);
	if (records_ledger(rs, dir, NULL, NULL, &e) != 0)
		fail_msg("%s", e.text);
	return rs;
}

static struct record *
ended(unsigned n, enum outcome outcome, size_t text)
{
	static char body[RECORD_BODY_MAX];
	struct ipc_id id = {{(uint8_t)n, (uint8_t)(n >> 8)}};
	struct record *r = record_new(&id, ipc_str("intent"));

	assert_non_null(r);
	memset(body, 'x', sizeof(body));
	body[0] = body[text - 1] = '"';
	r->outcome = outcome;
	r->failure = outcome == OUTCOME_DONE ? FAILURE_NONE : FAILURE_EXCEPTION;
	record_payload(r, ipc_str("printed"), ipc_bytes(body, text));
	return r;
}

static int
start(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/mcpbox-records-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/sandboxd", dir);
	(void)snprintf(file, sizeof(file), "%s/ledger", path);
	base = event_base_new();
	return base != NULL ? mkdir(path, 0700) : -1;
}

static int
stop(void **state)
{
	event_base_free(base);
	(void)unlink(file);
	(void)rmdir(path);
	return rmdir(dir);
}

struct seen {
	unsigned n, texts, unknown;
};

static void
look(struct table_node *n, void *arg)
{
	struct record *r = TABLE_OBJECT(struct record, node, n);
	struct seen *s = arg;

	s->n++;
	s->texts += r->payload.len > 0;
	s->unknown += r->cpu_us == RECORD_CPU_UNKNOWN;
	assert_memory_equal(r->intent.p, "intent", r->intent.len);
	assert_memory_equal(&r->epoch, &lives[0], sizeof(lives[0]));
	assert_int_equal(r->outcome, OUTCOME_DONE);
	assert_true(r->delivered);
	if (r->payload.len == 0)
		assert_int_equal(r->stdout_len, 0);
	else
		assert_memory_equal(r->payload.p, "printed\"xx", 10);
}

static void
test_more_than_fits(void **state)
{
	enum { MANY = 400 }; /* of 64 KiB, in 16 MiB */
	struct records *rs = life(0);
	struct record *runs[MANY] = {NULL};
	struct seen s = {0};

	for (unsigned i = 0; i < MANY; i++) {
		struct record *r = ended(i, OUTCOME_DONE, RECORD_BODY_MAX - 8);

		r->delivered = true;
		records_keep(rs, r, i % 2 == 0, ipc_bytes(NULL, 0));
		if (i % 2 == 1)
			records_add(rs, r);
		else
			runs[i] = r; /* until the death */
	}
	records_free(rs);
	for (unsigned i = 0; i < MANY; i++)
		record_free(runs[i]);
	rs = life(1);
	records_each(rs, look, &s);
	/* All say how they ended, most with what they said. */
	assert_int_equal(s.n, MANY);
	assert_int_equal(s.unknown, MANY / 2);
	assert_in_range(s.texts, 150, 260);
	assert_int_equal(records_inherited(rs), MANY);
	records_free(rs);
}

/* Written before the reaping and again after it, one record is told once: as it
 * was last. */
static void
test_twice_is_once(void **state)
{
	struct records *rs = life(0);
	struct record *r = ended(1, OUTCOME_DONE, 100);
	struct seen s = {0};

	r->delivered = true;
	records_keep(rs, r, true, ipc_str("[]"));
	r->cpu_us = 7;
	records_add(rs, r);
	records_free(rs);
	rs = life(1);
	records_each(rs, look, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.unknown, 0);
	records_free(rs);
}

/* Records that a taken-over predecessor may have left. */
static void
test_unsound(void **state)
{
	const unsigned outside = 77;
	struct records *rs = life(0);
	struct record *r;

	r = ended(1, OUTCOME_LOST, 100); /* its pool ended */
	records_add(rs, r);
	r = ended(2, OUTCOME_DONE, 100);
	r->stdout_len = 1000; /* of more than there is */
	records_add(rs, r);
	r = ended(3, OUTCOME_DONE, 100);
	memcpy(&r->outcome, &outside, sizeof(r->outcome));
	records_add(rs, r);
	r = ended(4, OUTCOME_DONE, 100);
	r->meta_len = UINT32_MAX;
	r->kept_len = 2;
	records_add(rs, r);
	r = ended(5, OUTCOME_FAILED, 100);
	records_add(rs, r);
	records_free(rs);
	rs = life(1);
	assert_int_equal(records_inherited(rs), 2);
	assert_true(records_has(rs, &(struct ipc_id){{1}}));
	assert_true(records_has(rs, &(struct ipc_id){{5}}));
	records_free(rs);
	/* Its own epoch's are nobody's: ids of lives are random. */
	rs = life(0);
	assert_int_equal(records_inherited(rs), 0);
	records_free(rs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_more_than_fits, start, stop),
	    cmocka_unit_test_setup_teardown(test_twice_is_once, start, stop),
	    cmocka_unit_test_setup_teardown(test_unsound, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
