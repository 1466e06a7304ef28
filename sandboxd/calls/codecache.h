/*
 * Compiled code of approved versions, so that a call need not compile what
 * thousands before it have compiled.
 *
 * Two runners that ran nothing of any tool are each given the source and asked
 * for its compiled form (EXECUTE with kind COMPILE). If both answered with the
 * same bytes, they are kept, bound to the version's hash, its name, its source
 * and the interpreter that made them; EXECUTE then carries them after the
 * source.
 *
 * Why this is safe although the process that loads compiled code trusts it:
 *  - Runners of tools never write here. A runner that had a call is gone before
 *    another one is asked, and one that compiles executes nothing of the source
 *    (mcpbox_harness.py, compile_only).
 *  - The source is an approved version's, opened from the vault's sealed
 *    context. A source that could make the compiler itself misbehave makes its
 *    own compiled form only: an entry is found by the hash of the version,
 *    which covers the source, and by no word of a client.
 *  - One runner that is wrong (a bit flipped, a process somehow taken over) is
 *    found by the other. Forms that differ are dropped and not tried again.
 *  - Another interpreter drops everything, and a runner forked by an earlier
 *    one is given the source alone.
 * At most an attacker could gain that a version which he wrote and a person
 * approved does what he wrote.
 *
 * The compiled form is made in the background, with runners that no call waits
 * for. No call waits for it, no record is written and no other process is
 * involved.
 */
#ifndef CODECACHE_H
#define CODECACHE_H

#include "held.h"
#include "runners.h"

enum {
	/* An installation has some hundred tools; the least recently called
	 * tools are compiled again. */
	CODECACHE_ENTRIES = 256,
	CODECACHE_BYTES = 16 * 1024 * 1024,
	/* Bytes of one version: CODE_MAX of dense source compiles to some 300
	 * KiB. */
	CODECACHE_COMPILED_MAX = 1024 * 1024,
	/* Versions that wait to be compiled; others must be wanted again. */
	CODECACHE_WANTED = 32,
	/* CODE_MAX compiles in less than a second. */
	CODECACHE_COMPILE_MS = 10 * 1000,
	/* Attempts lost to runners that died or were too slow, before a version
	 * is given up. */
	CODECACHE_TRIES = 3
};

struct codecache;

struct codecache_counts {
	unsigned entries;
	size_t bytes;
	uint64_t hits, misses, made, differed;
};

/* Makes the cache. limit: the defaults of a call. NULL without memory. */
struct codecache *codecache_new(
    struct event_base *, struct runners *, const uint64_t limit[LIMIT_COUNT]);
void codecache_pool(struct codecache *, struct pool *);
void codecache_free(struct codecache *);
/* Returns the source and its compiled form, if there is one that this runner
 * can use, otherwise the source alone. Borrowed until the loop turns. */
struct ipc_bytes codecache_find(
    struct codecache *, const struct held *, const struct runner *);
/* Asks for the compiled form that a call had to do without, to be made some
 * time. */
void codecache_want(struct codecache *, const struct held *);
/* Compiles a version, when there is no other work. */
void codecache_work(struct codecache *);
struct codecache_counts codecache_counts(const struct codecache *);

#endif
