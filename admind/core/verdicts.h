/*
 * Arguments that admind-check found valid a while ago.
 *
 * A verdict follows from two texts alone, the schema's and the arguments', and
 * an entry is found by digests of exactly these (and of the version, and of
 * whose call it was): so no setting or decision can make it stale. It says no
 * more than that admind-check need not be asked again; that the call may run is
 * decided by the intent row, as always. Decision 0053.
 */
#ifndef VERDICTS_H
#define VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "buf.h"
#include "ipc.h"

enum {
	/* Tools in use times what they are asked for again and again. */
	VERDICTS_MAX = 1024,
	/* Chains of four when it is full. A caller who makes keys that share
	 * a chain makes it at most VERDICTS_MAX long: microseconds. */
	VERDICTS_BUCKETS = 256,
	/* Of what records keep of arguments, all entries together; most need
	 * none, since records keep them as they are. */
	VERDICTS_BYTES_MAX = 256 * 1024,
	/* Larger arguments are not made twice, and their check costs more than
	 * the two wake-ups that are saved. What a record keeps is no longer. */
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
 * The key of a question, or false if it is none to be remembered (too large).
 * principal: at most PRINCIPAL_MAX bytes.
 */
bool verdicts_key(const char *principal, const struct ipc_hash *version,
    struct ipc_bytes schema, size_t arguments_len,
    const struct ipc_hash *arguments_sha256, struct ipc_hash *key);
/* True: they were valid, and kept (initialised) has what records keep of them
 * appended; nothing: they are kept as they are. */
bool verdicts_find(
    struct verdicts *, const struct ipc_hash *key, struct buf *kept);
/* They are valid. Without memory, or if kept is too long, nothing happens. */
void verdicts_add(
    struct verdicts *, const struct ipc_hash *key, struct ipc_bytes kept);
void verdicts_clear(struct verdicts *);

#endif
