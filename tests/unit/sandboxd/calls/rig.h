/*
 * A scripted pool and runner for tests of calls: the test holds pool-init's
 * end of a socketpair, the runner's channel that FORK brings, the gateway's
 * and admind's ends, and turns the loop by hand. What is not said in time
 * fails the test.
 */
#ifndef RIG_H
#define RIG_H

#include "call.h"

enum {
	/* Of calls that a test does not end by time: no machine is so slow. */
	RIG_LONG_MS = 60 * 1000
};

struct rig {
	struct event_base *base;
	struct records *records;
	struct calls *calls;
	struct pool *pool;
	struct ipc_peer *gw, *adm;  /* sandboxd's ends */
	int pool_fd, gw_fd, adm_fd; /* ours */
	struct ipc_fork fork; /* the last FORK; .channel is the runner's */
	uint64_t kills, last_killed;
	uint8_t ids;
	bool gw_gone;
};

extern struct rig rig;

void rig_start(const struct calls_conf *, unsigned slots);
void rig_end(void);
/* Another pool, whose zygote reports at once. */
void rig_give_pool(const char *interpreter);
void rig_report(const char *interpreter); /* a zygote's */
/* One more connection of this role; sandboxd's end. */
struct ipc_peer *rig_adopt(int *ours, enum ipc_role);

struct ipc_frame rig_expect(int fd, enum ipc_type);
void rig_expect_silence(int fd);
void rig_turn(int ms);
/* Turns the loop until is(arg); fails the test if that never comes. */
void rig_until(bool (*is)(const void *arg), const void *arg);
/* The call of this id, which is there. */
struct call *rig_call(struct ipc_id);

/* What is held of a tool's call, and its RUN, which takes it. */
struct held *rig_held(uint64_t timeout_ms, uint8_t version);
void rig_run_held(struct held *);
/* RUN of a tool; of this version (its hash's bytes), if it has one. */
struct ipc_id rig_run(uint64_t timeout_ms);
struct ipc_id rig_run_version(uint64_t timeout_ms, uint8_t version);

/* The pool's and the runner's part. rig_fork: the next FORK, its channel the
 * caller's; the others are about rig.fork, which rig_take_fork replaces. */
struct ipc_fork rig_fork(void);
void rig_take_fork(void);
void rig_say(enum ipc_type, const void *);
void rig_ready(void);
size_t rig_executed(uint8_t kind);
void rig_to_running(void);
void rig_send_result(void);
void rig_send_exited(uint32_t code, uint32_t status);
void rig_take_kill(void);

/* What the gateway and admind get. */
void rig_take_result(enum outcome, enum failure);
uint64_t rig_take_refused(enum failure); /* its retry_after_ms */
void rig_take_record(
    struct ipc_id, enum outcome, enum failure, bool delivered, bool ok);

#endif
