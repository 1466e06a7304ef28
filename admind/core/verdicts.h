/*
 * Remembers arguments that admind-check found valid a while ago.
 *
 * A verdict follows from two texts alone, the schema's and the arguments'. An
 * entry is found by digests of exactly these (and of the version, and of the
 * caller), so no setting or decision can make it stale. It only means that
 * admind-check need not be asked again; the intent row decides that the call
 * may run, as always. Decision 0053.
 */
#ifndef VERDICTS_H
#define VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "buf.h"
#include "ipc.h"

enum {
	/* Tools in use, times the arguments that come again and again. */
	VERDICTS_MAX = 1024,
	/* Chains of four when it is full. A caller who makes keys that share a
	 * chain makes that chain at most VERDICTS_MAX long: microseconds. */
	VERDICTS_BUCKETS = 256,
	/* The arguments as records keep them, all entries together. Most
	 * entries need none, since records keep them as they are. */
	VERDICTS_BYTES_MAX = 256 * 1024,
	/* Larger arguments do not come twice, and their check costs more than
	 * the two wake-ups that are saved. A record keeps no more either. */
	VERDICT_ARGUMENTS_MAX = 4096,
	/* A larger schema takes longer to digest (10 us) than it is worth. */
	VERDICT_SCHEMA_MAX = 16 * 1024,
};

struct verdict;
struct verdicts {
	TAILQ_HEAD(verdicts_age, verdict) age; /* newest use first */
	LIST_HEAD(verdicts_chain, verdict) chain[VERDICTS_BUCKETS];
	unsigned n;
	size_t bytes;
};

void verdicts_init(struct verdicts *);
/*
 * Makes the key of a question. False: too large to be remembered. principal: at
 * most PRINCIPAL_MAX bytes.
 */
bool verdicts_key(const char *principal, const struct ipc_hash *version,
    struct ipc_bytes schema, size_t arguments_len,
    const struct ipc_hash *arguments_sha256, struct ipc_hash *key);
/* Finds a verdict. True: the arguments were valid; appends to kept
 * (initialised) the form that records keep. Nothing appended: they are kept as
 * they are. */
bool verdicts_find(
    struct verdicts *, const struct ipc_hash *key, struct buf *kept);
/* Adds a verdict: valid. Without memory, or if kept is too long, nothing
 * happens. */
void verdicts_add(
    struct verdicts *, const struct ipc_hash *key, struct ipc_bytes kept);
void verdicts_clear(struct verdicts *);

#endif
