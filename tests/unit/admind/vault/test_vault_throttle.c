/* What keeps guesses slow, and guessers apart: throttle.h, devices.h, the two
 * queues of slots.h. */
#include "unit.h"

#include <argon2.h>
#include <event2/event.h>
#include <pthread.h>

#include "devices.h"
#include "ids.h"
#include "slots.h"
#include "throttle.h"

enum { BURST = 10 };

static const uint64_t now = 1000000;

static uint64_t
name(struct throttle *t, const char *who, uint64_t at)
{
	return throttle_take(t, THROTTLE_NAME, ipc_str(who), at);
}

static void
buckets(void **state)
{
	struct throttle *t = throttle_new(BURST);
	uint64_t wait;

	(void)state;
	for (int i = 0; i < BURST; i++)
		assert_int_equal(name(t, "admin", now), 0);
	wait = name(t, "admin", now);
	assert_int_equal(wait, THROTTLE_PERIOD_MS);
	assert_int_not_equal(name(t, "admin", now + wait - 1), 0);
	assert_int_equal(name(t, "admin", now + wait), 0);
	assert_int_not_equal(name(t, "admin", now + wait), 0);
	/* neither another name nor another kind of the same name is concerned
	 */
	assert_int_equal(name(t, "admi", now + wait), 0);
	assert_int_equal(
	    throttle_take(t, THROTTLE_DEVICE, ipc_str("admin"), now), 0);
	/* what was right costs nothing; and gives nothing more than it took */
	throttle_give(t, THROTTLE_NAME, ipc_str("admin"));
	assert_int_equal(name(t, "admin", now + wait), 0);
	assert_int_not_equal(name(t, "admin", now + wait), 0);
	throttle_give(t, THROTTLE_NAME, ipc_str("nobody took this"));
	/* time heals */
	assert_int_equal(name(t, "admin", now + 3600000), 0);
	throttle_free(t);
}

static void
all_names_together(void **state)
{
	struct throttle *t = throttle_new(BURST);
	int n = 0;

	(void)state;
	while (throttle_take(t, THROTTLE_ALL, ipc_str(""), now) == 0)
		n++;
	assert_int_equal(n, BURST * THROTTLE_ALL_BURSTS);
	assert_int_equal(throttle_take(t, THROTTLE_ALL, ipc_str(""), now),
	    THROTTLE_ALL_PERIOD_MS);
	throttle_give(t, THROTTLE_ALL, ipc_str(""));
	assert_int_equal(throttle_take(t, THROTTLE_ALL, ipc_str(""), now), 0);
	throttle_free(t);
}

/* A flood of names pushes out idle ones, not the busiest. */
static void
flood(void **state)
{
	struct throttle *t = throttle_new(BURST);
	char text[32];

	(void)state;
	while (name(t, "admin", now) == 0)
		;
	for (int i = 0; i < 10 * THROTTLE_BUCKETS; i++) {
		snprintf(text, sizeof(text), "user%d", i);
		assert_int_equal(name(t, text, now), 0);
	}
	assert_int_not_equal(name(t, "admin", now), 0);
	throttle_free(t);
}

/* ---- devices ---- */

static struct keys keys, other;

static void
known_browsers(void **state)
{
	uint64_t then = 1800000000, life = DEVICES_BROWSER_S;
	struct devices_text text, code, bad;
	struct ipc_id number, again;

	(void)state;
	memset(keys.approvals, 1, KEY_LEN);
	memset(keys.id, 1, KEY_ID_LEN);
	memset(other.approvals, 2, KEY_LEN);
	memset(other.id, 2, KEY_ID_LEN);
	assert_int_equal(
	    devices_make(&keys, DEVICES_BROWSER, "admin", then, &text), 0);
	assert_true(strlen(text.s) <= DEVICES_TEXT_MAX);
	assert_null(strstr(text.s, "admin"));
	assert_true(
	    devices_check(&keys, "admin", ipc_str(text.s), then, &number));
	assert_true(devices_check(
	    &keys, "admin", ipc_str(text.s), then + life - 1, &again));
	assert_memory_equal(number.b, again.b, sizeof(number.b));
	assert_true(devices_check(/* the clock was set back */
	    &keys, "admin", ipc_str(text.s), then - 1000, &again));
	assert_false(devices_check(
	    &keys, "admin", ipc_str(text.s), then + life, &number));
	assert_false(
	    devices_check(&keys, "admim", ipc_str(text.s), then, &number));
	assert_false(devices_check(&keys, "", ipc_str(text.s), then, &number));
	assert_false(
	    devices_check(&other, "admin", ipc_str(text.s), then, &number));
	for (size_t i = 0; text.s[i] != '\0'; i++) {
		bad = text;
		bad.s[i] = bad.s[i] == 'A' ? 'B' : 'A';
		assert_false(devices_check(
		    &keys, "admin", ipc_str(bad.s), then, &number));
	}
	assert_false(devices_check(&keys, "admin",
	    ipc_bytes((const uint8_t *)text.s, strlen(text.s) - 1), then,
	    &number));
	assert_false(devices_check(&keys, "admin", ipc_str(""), then, &number));

	assert_int_equal(
	    devices_make(&keys, DEVICES_CODE, "admin", then, &code), 0);
	assert_string_not_equal(code.s, text.s);
	assert_true(devices_check(
	    &keys, "admin", ipc_str(code.s), then + 899, &number));
	assert_false(devices_check(
	    &keys, "admin", ipc_str(code.s), then + 900, &number));
}

/* ---- the two queues ---- */

enum { KNOWN = 'k', STRANGER = 's' };

static size_t ended;

/* The threads' side: whose passwords were begun, in order; each ends once the
 * test lets one end. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char begun[SLOTS_QUEUE + 9];
static size_t nbegun;
static size_t may_end;

/*
 * Takes the place of libargon2's function in this program. It ends when the
 * test says so and not after a time: the order of the jobs is then the queues'
 * alone.
 */
int
argon2id_verify(const char *encoded, const void *pwd, size_t pwdlen)
{
	(void)encoded, (void)pwdlen;
	pthread_mutex_lock(&lock);
	begun[nbegun++] = *(const char *)pwd;
	pthread_cond_broadcast(&changed);
	while (may_end == 0)
		pthread_cond_wait(&changed, &lock);
	may_end--;
	pthread_mutex_unlock(&lock);
	return ARGON2_VERIFY_MISMATCH;
}

static void
let_end(size_t n)
{
	pthread_mutex_lock(&lock);
	may_end += n;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void
wait_begun(size_t n)
{
	pthread_mutex_lock(&lock);
	while (nbegun < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void
job_done(struct slots_job *j, void *arg)
{
	(void)arg;
	ended++;
	assert_false(j->failed);
}

static struct slots_job *
job(struct slots *s, char who)
{
	struct slots_job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	j->what = SLOTS_VERIFY;
	j->stranger = who == STRANGER;
	snprintf(j->encoded, sizeof(j->encoded), "%s", slots_decoy(s));
	j->password[0] = who;
	j->password_len = 1;
	j->done = job_done;
	return j;
}

/* Strangers fill their queue to the brim: whoever is known is taken, and goes
 * before all of them that wait. The last thread is never a stranger's. */
static void
strangers_wait(void **state)
{
	struct slots_job *jobs[SLOTS_QUEUE + 8];
	struct event_base *base = event_base_new();
	struct slots *s;
	struct err err;
	size_t n = 0;

	(void)state;
	s = slots_new(base, 8192, 1, &err);
	assert_non_null(s);
	assert_int_equal(slots_start(s, &err), 0);
	for (; n < SLOTS_THREADS - 1; n++) {
		jobs[n] = job(s, STRANGER);
		assert_int_equal(slots_submit(s, jobs[n]), 0);
	}
	wait_begun(n);
	while (n < SLOTS_QUEUE + 4) {
		jobs[n] = job(s, STRANGER);
		if (slots_submit(s, jobs[n]) == -1)
			break;
		n++;
	}
	assert_int_equal(n, SLOTS_THREADS - 1 + SLOTS_QUEUE);
	free(jobs[n]);
	for (int i = 0; i < 2; i++, n++) {
		jobs[n] = job(s, KNOWN);
		assert_int_equal(slots_submit(s, jobs[n]), 0);
	}
	wait_begun(SLOTS_THREADS);
	assert_int_equal(begun[SLOTS_THREADS - 1], KNOWN);
	/* the second one, too, before all waiting strangers */
	let_end(1);
	wait_begun(SLOTS_THREADS + 1);
	assert_int_equal(begun[SLOTS_THREADS], KNOWN);
	let_end(n - 1);
	while (ended < n)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(nbegun, n);
	slots_free(s);
	for (size_t i = 0; i < n; i++)
		free(jobs[i]);
	event_base_free(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(buckets),
	    cmocka_unit_test(all_names_together),
	    cmocka_unit_test(flood),
	    cmocka_unit_test(known_browsers),
	    cmocka_unit_test(strangers_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
