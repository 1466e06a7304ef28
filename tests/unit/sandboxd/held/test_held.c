/* Contexts are used once, by the right listener, with the right arguments. */
#include "held_rig.h"
#include "tlv.h"
#include "unit.h"

static void
test_used_once(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(1);
	struct held *h = NULL;

	assert_int_equal(
	    held_rig_add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, held_rig_args, &h), HELD_OK);
	assert_int_equal(h->kind, CONTEXT_TOOL);
	assert_int_equal(h->timeout_ms, 1000);
	assert_true(ipc_streq(h->code, "code"));
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, held_rig_args, &h), HELD_UNKNOWN);
}

static void
test_wrong_digest_burns(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(1);
	struct held *h = NULL;

	assert_int_equal(
	    held_rig_add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL,
		ipc_bytes(held_rig_args.p, held_rig_args.n - 1), &h),
	    HELD_WRONG_DIGEST);
	assert_non_null(h->record);
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, held_rig_args, &h), HELD_UNKNOWN);
}

static void
test_wrong_listener_burns(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(1);
	struct held *h = NULL;

	assert_int_equal(
	    held_rig_add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(held_take(s, &id, LISTENER_TUNNEL, held_rig_args, &h),
	    HELD_WRONG_LISTENER);
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, held_rig_args, &h), HELD_UNKNOWN);
}

static void
test_expires_with_a_record(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(1);
	struct held *h;

	assert_int_equal(
	    held_rig_add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_null(held_expired(s, 1499));
	assert_non_null(h = held_expired(s, 1500));
	assert_memory_equal(&h->record->id, &id, sizeof(id));
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, held_rig_args, &h), HELD_UNKNOWN);
}

static void
test_hold_and_timeout_are_bounded(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(1);
	struct buf more;
	struct held *h;

	buf_init(&more, 100);
	tlv_put_u64(&more, CTX_HOLD_UNTIL_MS, UINT64_MAX);
	assert_int_equal(
	    held_rig_add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	/* By its own listener only. */
	assert_null(held_remove(s, &id, LISTENER_TUNNEL));
	assert_null(held_remove(s, &id, LISTENER_ADMIND));
	assert_non_null(h = held_remove(s, &id, LISTENER_LOCAL));
	assert_int_equal(h->expires_ms, 1000 + HELD_HOLD_MAX_MS);
	held_free(h);
	buf_clear(&more);
	tlv_put_u64(&more, CTX_TIMEOUT_MS, HELD_TIMEOUT_MAX_MS + 1);
	assert_int_equal(
	    held_rig_add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), -1);
	buf_free(&more);
}

static void
test_set_is_bounded(void **state)
{
	struct held_set *s = *state;
	struct err e;

	for (uint8_t i = 1; i <= 4; i++)
		assert_int_equal(
		    held_rig_add(s, i, 1, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(held_rig_add(s, 5, 1, CONTEXT_TOOL, NULL, &e), -1);
	assert_int_equal(e.failure, FAILURE_BUSY);
	held_free(held_expired(s, 5000));
	assert_int_equal(held_rig_add(s, 5, 1, CONTEXT_TOOL, NULL, &e), 0);
	assert_int_equal(held_rig_add(s, 5, 1, CONTEXT_TOOL, NULL, &e), -1);
}

/* A context opens once, also after it was used and forgotten. */
static void
test_replay(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(9);
	struct held *h;
	struct buf b;

	held_rig_seal(
	    &b, &held_rig_epoch, id, LISTENER_LOCAL, CONTEXT_TOOL, 77, NULL);
	assert_int_equal(
	    held_add(s, &id, LISTENER_LOCAL, ipc_bytes(b.p, b.len), 0, NULL),
	    0);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, held_rig_args, &h), HELD_OK);
	held_free(h);
	assert_int_equal(
	    held_add(s, &id, LISTENER_LOCAL, ipc_bytes(b.p, b.len), 0, NULL),
	    -1);
	buf_free(&b);
}

static void
test_foreign_contexts(void **state)
{
	static const struct ipc_id other = {"another life's e"};
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(9), id2 = held_rig_id(10);
	struct buf b;

	/* Another held_rig_epoch, another id, another listener than was sealed.
	 */
	held_rig_seal(&b, &other, id, LISTENER_LOCAL, CONTEXT_TOOL,
	    ++held_rig_counter, NULL);
	assert_int_equal(
	    held_add(s, &id, 1, ipc_bytes(b.p, b.len), 0, NULL), -1);
	buf_free(&b);
	held_rig_seal(&b, &held_rig_epoch, id, LISTENER_LOCAL, CONTEXT_TOOL,
	    ++held_rig_counter, NULL);
	assert_int_equal(
	    held_add(s, &id2, 1, ipc_bytes(b.p, b.len), 0, NULL), -1);
	assert_int_equal(
	    held_add(s, &id, 2, ipc_bytes(b.p, b.len), 0, NULL), -1);
	for (size_t cut = 0; cut < b.len; cut += 7)
		assert_int_equal(
		    held_add(s, &id, 1, ipc_bytes(b.p, cut), 0, NULL), -1);
	/* None of the attempts used it up: it was never opened. */
	assert_int_equal(
	    held_add(s, &id, 1, ipc_bytes(b.p, b.len), 0, NULL), 0);
	buf_free(&b);
}

static void
test_secrets_need_a_tool(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(3);
	struct held *h;
	struct buf more;
	struct tlv t;

	buf_init(&more, 100);
	tlv_puts(&more, CTX_SECRET_NAME, "TOKEN");
	tlv_puts(&more, CTX_SECRET_VALUE, "CANARY");
	assert_int_equal(
	    held_rig_add(s, 1, LISTENER_ADMIND, CONTEXT_INSPECT, &more, NULL),
	    -1);
	assert_int_equal(
	    held_rig_add(s, 2, LISTENER_ADMIND, CONTEXT_TEST, &more, NULL), -1);
	assert_int_equal(
	    held_rig_add(s, 3, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	assert_non_null(h = held_remove(s, &id, 0));
	assert_int_equal(tlv_find(h->secrets.p, h->secrets.len, 2, &t), 1);
	assert_memory_equal(t.p, "CANARY", 6);
	held_free(h);
	buf_free(&more);
}

static void
test_limits(void **state)
{
	static const uint8_t tags[] = {CTX_MEMORY, CTX_PROCESSES, CTX_TMP,
	    CTX_RESULT, CTX_CPU_MS, CTX_FILES, CTX_FILE_BYTES, CTX_STDOUT,
	    CTX_LOG_RATE, CTX_PROGRESS_RATE};
	struct held_set *s = *state;
	uint64_t dflt[LIMIT_COUNT] = {0};
	struct buf more;
	struct held *h;

	buf_init(&more, 100);
	for (size_t i = 0; i < sizeof(tags); i++)
		dflt[limit_of_context(tags[i])] = 50 + i;
	dflt[LIMIT_FILE_BYTES] = 5000; /* more than /tmp's */
	held_defaults(s, dflt);
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, NULL));
	for (size_t i = 0; i < sizeof(tags); i++) {
		int l = limit_of_context(tags[i]);

		assert_int_equal(h->limit[l], dflt[l]);
	}
	assert_int_equal(h->limit[LIMIT_TIMEOUT_MS], 1000);
	held_free(h);
	for (size_t i = 0; i < sizeof(tags); i++) {
		int l = limit_of_context(tags[i]);

		/* An approved version's own, up or down, within the bounds. */
		buf_clear(&more);
		tlv_put_u64(&more, tags[i], 77);
		assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
		assert_int_equal(h->limit[l], 77);
		held_free(h);
		buf_clear(&more);
		tlv_put_u64(&more, tags[i], UINT64_MAX);
		assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
		assert_int_equal(h->limit[l], limit_info((enum limit)l)->max);
		held_free(h);
		/* What has no approval has not more than the default. */
		for (int kind = CONTEXT_INSPECT; kind <= CONTEXT_TEST; kind++) {
			assert_non_null(
			    h = held_rig_with(s, (uint8_t)kind, &more));
			assert_int_equal(h->limit[l], dflt[l]);
			held_free(h);
		}
	}
	/* A larger /tmp may be one file, unless that is limited too. */
	buf_clear(&more);
	tlv_put_u64(&more, CTX_TMP, 1 << 20);
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->limit[LIMIT_FILE_BYTES], 1 << 20);
	held_free(h);
	tlv_put_u64(&more, CTX_FILE_BYTES, 4096);
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->limit[LIMIT_FILE_BYTES], 4096);
	held_free(h);
	buf_free(&more);
}

static void
test_modules(void **state)
{
	struct held_set *s = *state;
	uint8_t digest[32] = {0};
	struct buf more;
	struct held *h;

	buf_init(&more, 1 << 16);
	for (unsigned i = 0; i < MODULES_PER_CALL_MAX; i++) {
		digest[31] = (uint8_t)i;
		tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	}
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->modules.len, MODULES_PER_CALL_MAX * 32);
	assert_int_equal(h->modules.p[63], 1);
	held_free(h);
	/* One too many; one twice; out of order; of another length. */
	digest[31] = 200;
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	buf_clear(&more);
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	buf_clear(&more);
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	digest[31] = 100;
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	buf_clear(&more);
	tlv_put(&more, CTX_MODULE, digest, 31);
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	buf_free(&more);
}

/* What a call asked for, and what its result is checked against. */
static void
test_forms(void **state)
{
	struct held_set *s = *state;
	struct buf more;
	struct held *h;

	buf_init(&more, 4096);
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->method, CALL_TOOL);
	assert_int_equal(h->output_schema.n, 0);
	held_free(h);
	tlv_put_u64(&more, CTX_METHOD, CALL_RESOURCE);
	tlv_puts(&more, CTX_OUTPUT_SCHEMA, "{}");
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->method, CALL_RESOURCE);
	assert_int_equal(h->output_schema.n, 2);
	held_free(h);
	buf_clear(&more);
	tlv_put_u64(&more, CTX_METHOD, CALL_RESOURCE + 1);
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	buf_free(&more);
}

/* A task outlives its RUN's connection, so it is admind's alone: marked so, a
 * gateway's call is a call like any other. */
static void
test_tasks(void **state)
{
	struct held_set *s = *state;
	struct buf more;
	struct held *h;

	buf_init(&more, 100);
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_false(h->task);
	held_free(h);
	tlv_put_u64(&more, CTX_TASK, 1);
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_true(h->task);
	held_free(h);
	assert_int_equal(
	    held_rig_add(s, 99, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	assert_non_null(h = held_remove(s, &(struct ipc_id){{99}}, 0));
	assert_false(h->task);
	held_free(h);
	buf_free(&more);
}

/* Source has none of a command's fields, and only TOOL has a version. */
static void
test_kinds(void **state)
{
	struct held_set *s = *state;
	uint8_t digest[32] = {7};
	struct buf more;
	struct held *h;

	buf_init(&more, 4096);
	tlv_put(&more, CTX_VERSION_HASH, digest, sizeof(digest));
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->runner, RUNNER_PYTHON);
	assert_true(h->has_version);
	assert_memory_equal(&h->version, digest, sizeof(digest));
	held_free(h);
	assert_non_null(h = held_rig_with(s, CONTEXT_TEST, &more));
	assert_false(h->has_version);
	held_free(h);
	for (int i = 0; i < 4; i++) {
		static const uint8_t tag[] = {
		    CTX_SPEC, CTX_EXECUTABLE, CTX_EXECUTABLE_DIGEST, CTX_KIND};

		buf_clear(&more);
		tlv_put(&more, tag[i], digest, sizeof(digest));
		assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	}
	/* A command, but with source beside its spec (held_rig_seal() gives
	 * it). */
	buf_clear(&more);
	tlv_puts(&more, CTX_KIND, "command");
	tlv_puts(&more, CTX_SPEC, "{}");
	tlv_puts(&more, CTX_EXECUTABLE, "/usr/bin/true");
	tlv_put(&more, CTX_EXECUTABLE_DIGEST, digest, sizeof(digest));
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	tlv_puts(&more, CTX_CODE, ""); /* the later one counts */
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->runner, RUNNER_COMMAND);
	assert_true(ipc_streq(h->code, "{}"));
	assert_true(ipc_streq(h->executable, "/usr/bin/true"));
	held_free(h);
	/* Without a digest: only to find it out. */
	buf_clear(&more);
	tlv_puts(&more, CTX_KIND, "command");
	tlv_puts(&more, CTX_SPEC, "{}");
	tlv_puts(&more, CTX_EXECUTABLE, "/usr/bin/true");
	tlv_puts(&more, CTX_CODE, "");
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	assert_null(held_rig_with(s, CONTEXT_TEST, &more));
	assert_non_null(h = held_rig_with(s, CONTEXT_INSPECT, &more));
	held_free(h);
	buf_free(&more);
}

static void
test_no_key(void **state)
{
	struct held_set s;
	struct err e;

	assert_int_equal(held_init(&s, 4, &held_rig_epoch), 0);
	assert_int_equal(held_rig_add(&s, 1, 1, CONTEXT_TOOL, NULL, &e), -1);
	assert_int_equal(e.failure, FAILURE_VAULT_UNAVAILABLE);
	held_clear(&s);
}

static void
test_replay_window(void **state)
{
	static struct replay r;

	replay_reset(&r);
	assert_true(replay_fresh(&r, 0));
	replay_mark(&r, 5);
	assert_false(replay_fresh(&r, 5));
	assert_true(replay_fresh(&r, 4));
	replay_mark(&r, 4);
	assert_false(replay_fresh(&r, 4));
	replay_mark(&r, 5 + REPLAY_WINDOW - 1);
	assert_false(replay_fresh(&r, 5)); /* still inside, and used */
	assert_true(replay_fresh(&r, 6));
	replay_mark(&r, 5 + REPLAY_WINDOW);
	assert_false(replay_fresh(&r, 5)); /* behind the window */
	assert_true(replay_fresh(&r, 6));
	/* Its bit was 5's: cleared on the way, set by itself. */
	assert_false(replay_fresh(&r, 5 + REPLAY_WINDOW));
	replay_mark(&r, 1ULL << 60);
	assert_false(replay_fresh(&r, 6));
	assert_true(replay_fresh(&r, (1ULL << 60) - 1));
	/* Against a model, in an order that jumps to and fro. */
	replay_reset(&r);
	for (unsigned i = 0; i < 4000; i++) {
		uint64_t n = (uint64_t)i * 7919 % 4001;

		assert_true(replay_fresh(&r, n));
		replay_mark(&r, n);
		assert_false(replay_fresh(&r, n));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) \
	cmocka_unit_test_setup_teardown(f, held_rig_setup, held_rig_teardown)
	    T(test_used_once), T(test_wrong_digest_burns),
	    T(test_wrong_listener_burns), T(test_expires_with_a_record),
	    T(test_hold_and_timeout_are_bounded), T(test_set_is_bounded),
	    T(test_replay), T(test_foreign_contexts),
	    T(test_secrets_need_a_tool), T(test_limits), T(test_modules),
	    T(test_forms), T(test_tasks), T(test_kinds), T(test_no_key),
	    T(test_replay_window)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
