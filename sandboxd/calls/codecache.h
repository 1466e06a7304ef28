/*
 * Compiled code of approved versions, so that a call need not compile code that
 * thousands of calls before it have compiled.
 *
 * Two runners that ran nothing of any tool are each given the source and asked
 * for its compiled form (EXECUTE with kind COMPILE). If both answer with the
 * same bytes, the bytes are kept, bound to the version's hash, its name, its
 * source and the interpreter that made them. EXECUTE of a call then carries the
 * bytes after the source.
 *
 * Why this is safe although the process that loads compiled code trusts it:
 *  - Runners of tools never write here. Each runner is used once, for a call or
 *    to compile. A runner that compiles executes nothing of the source
 *    (mcpbox_harness.py, compile_only).
 *  - The source is that of an approved version and comes from the context that
 *    the vault sealed. A source that could make the compiler itself misbehave
 *    spoils only its own compiled form: an entry is found by the hash of the
 *    version, which covers the source, and by nothing that a client sends.
 *  - If one runner is wrong (a bit flipped, a process somehow taken over), its
 *    bytes differ from the other runner's. Forms that differ are dropped and
 *    not tried again.
 *  - When the interpreter changes, all entries are dropped. A runner forked by
 *    an earlier interpreter is given the source alone.
 * An attacker can gain at most this: a version that he wrote, and a person
 * approved, does what he wrote.
 *
 * Compiled forms are made in the background, with runners that no call waits
 * for. No call waits for a compiled form, no record is written and no other
 * process is involved.
 */
#ifndef CODECACHE_H
#define CODECACHE_H

#include "held.h"
#include "runners.h"

enum {
	/* An installation has some hundred tools. With more, the entries of the
	 * least recently called tools are dropped. */
	CODECACHE_ENTRIES = 256,
	CODECACHE_BYTES = 16 * 1024 * 1024,
	/* Bytes of one version: CODE_MAX of dense source compiles to some 300
	 * KiB. */
	CODECACHE_COMPILED_MAX = 1024 * 1024,
	/* Versions that wait to be compiled. While there are so many,
	 * codecache_want does nothing. */
	CODECACHE_WANTED = 32,
	/* Time for one runner: CODE_MAX bytes compile in less than a second. */
	CODECACHE_COMPILE_MS = 10 * 1000,
	/* A version gets no compiled form after so many runners that died or
	 * were too slow. */
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
/* Returns the source followed by its compiled form, if there is a form that
 * this runner can use; otherwise the source alone. The bytes are borrowed, and
 * valid until control returns to the event loop. */
struct ipc_bytes codecache_find(
    struct codecache *, const struct held *, const struct runner *);
/* Asks for a compiled form of this code, which is made later. A call has just
 * found none. */
void codecache_want(struct codecache *, const struct held *);
/* Starts to compile one version, if a runner can be spared. */
void codecache_work(struct codecache *);
struct codecache_counts codecache_counts(const struct codecache *);

#endif
