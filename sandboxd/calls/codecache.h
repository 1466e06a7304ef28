/*
 * Compiled code of approved versions, so that a call need not compile what
 * thousands before it have compiled.
 *
 * Two runners that ran nothing of any tool are each given the source and asked
 * for its compiled form (EXECUTE with kind COMPILE). If both said the same
 * bytes, they are kept, bound to the version's hash, its name, its source and
 * the interpreter that made them; EXECUTE then carries them after the source.
 *
 * Why this is safe although compiled code is trusted by whoever loads it:
 *  - What runs tools never writes here. A runner that had a call is gone
 *    before another one is asked, and one that compiles executes nothing of
 *    the source (mcpbox_harness.py, compile_only).
 *  - The source is an approved version's, opened from the vault's sealed
 *    context. A source that could make the compiler itself misbehave makes
 *    its own compiled form only: an entry is found by the hash of the
 *    version, which covers the source, and by nothing a client says.
 *  - One runner that is wrong (a bit flipped, a process somehow taken over)
 *    is found by the other. What differs is dropped and not tried again.
 *  - Another interpreter drops everything, and a runner forked by an earlier
 *    one is given the source alone.
 * What an attacker could gain at most is that a version which he wrote and
 * somebody approved does what he wrote.
 *
 * It is made in the background, with runners that wait for nobody; no call
 * waits for it, no record is written and nobody but this process is involved.
 */
#ifndef CODECACHE_H
#define CODECACHE_H

#include "held.h"
#include "runners.h"

enum {
	/* An installation has some hundred tools; the least recently called
	 * ones are compiled again. */
	CODECACHE_ENTRIES = 256,
	CODECACHE_BYTES = 16 * 1024 * 1024,
	/* Of one version: CODE_MAX of dense source compiles to some 300 KiB. */
	CODECACHE_COMPILED_MAX = 1024 * 1024,
	/* Versions that wait to be compiled; more are asked for again. */
	CODECACHE_WANTED = 32,
	/* CODE_MAX compiles in less than a second. */
	CODECACHE_COMPILE_MS = 10 * 1000,
	/* Runners that died or were too slow, before a version is given up. */
	CODECACHE_TRIES = 3
};

struct codecache;

struct codecache_counts {
	unsigned entries;
	size_t bytes;
	uint64_t hits, misses, made, differed;
};

/* limit: the defaults of a call. NULL without memory. */
struct codecache *codecache_new(
    struct event_base *, struct runners *, const uint64_t limit[LIMIT_COUNT]);
void codecache_pool(struct codecache *, struct pool *);
void codecache_free(struct codecache *);
/* The source and its compiled form, if there is one that this runner can use,
 * else the source alone. Borrowed until the loop turns. */
struct ipc_bytes codecache_find(
    struct codecache *, const struct held *, const struct runner *);
/* A call had to do without: have it made, some time. */
void codecache_want(struct codecache *, const struct held *);
/* Nothing else is to be done: compile something. */
void codecache_work(struct codecache *);
struct codecache_counts codecache_counts(const struct codecache *);

#endif
