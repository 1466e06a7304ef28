/*
 * Remembers arguments that admind-check found valid a while ago.
 *
 * A verdict depends on two texts alone: the schema and the arguments. The key
 * of an entry is a digest of both texts, the version and the caller, so no
 * setting or decision can make an entry wrong. An entry only means that
 * admind-check need not be asked again. The intent row decides that the call
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
	/* Room for the tools in use, multiplied by the arguments that each tool
	 * gets again and again. */
	VERDICTS_MAX = 1024,
	/* A full table has four entries per bucket on average. A caller can
	 * make keys that share a bucket, but its chain has at most VERDICTS_MAX
	 * entries. To walk that chain costs microseconds. */
	VERDICTS_BUCKETS = 256,
	/* Bytes of arguments in the form that records keep, of all entries
	 * together. Most entries need no bytes, since records keep most
	 * arguments unchanged. */
	VERDICTS_BYTES_MAX = 256 * 1024,
	/* Larger arguments seldom come twice, and checking them costs much more
	 * than the two wake-ups of processes that are saved. A record keeps no
	 * more bytes either. */
	VERDICT_ARGUMENTS_MAX = 4096,
	/* Digesting a larger schema would cost more time (10 us) than a
	 * remembered verdict saves. */
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
 * Makes the key of a question to admind-check. Returns false if schema or
 * arguments are too large to be remembered, or principal is longer than
 * PRINCIPAL_MAX.
 */
bool verdicts_key(const char *principal, const struct ipc_hash *version,
    struct ipc_bytes schema, size_t arguments_len,
    const struct ipc_hash *arguments_sha256, struct ipc_hash *key);
/* Returns whether the arguments were found valid. If so, appends to kept
 * (initialised) the form that records keep, or nothing if records keep the
 * arguments unchanged. */
bool verdicts_find(
    struct verdicts *, const struct ipc_hash *key, struct buf *kept);
/* Remembers that arguments are valid. Does nothing without memory, or if kept
 * is too long. */
void verdicts_add(
    struct verdicts *, const struct ipc_hash *key, struct ipc_bytes kept);
void verdicts_clear(struct verdicts *);

#endif
