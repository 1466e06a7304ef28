/*
 * The records of a call's connections, one for each. Their number is bounded;
 * the net counts all connections.
 */
#ifndef RECORD_H
#define RECORD_H

#include <sys/queue.h>

#include "address.h"
#include "buf.h"
#include "names.h"

enum {
	/* About as many as NET_REPORT_MAX has room for. Connections that were
	 * made and those that were not have separate bounds, so that neither
	 * kind hides the other. */
	RECORD_MADE_MAX = 48,
	RECORD_OTHER_MAX = 32,
	RECORD_REASON = 160
};

enum record_verdict {
	RECORD_PENDING = 0, /* connecting, in the runner's hands */
	RECORD_CONNECTED = 1,
	RECORD_REFUSED = 2, /* by policy */
	RECORD_FAILED = 3   /* no such name, no answer, refused by the host */
};

struct record {
	TAILQ_ENTRY(record) link;
	unsigned users;                /* references, the list's included */
	char host[NAMES_NAME_MAX + 1]; /* name or address asked for */
	char address[ADDRESS_TEXT];    /* tried or judged last; or "" */
	uint16_t port;
	bool udp;
	enum record_verdict verdict;
	char reason[RECORD_REASON];
	uint64_t in, out;            /* bytes */
	uint64_t started_ms;         /* Unix time */
	uint64_t began_us, ended_us; /* monotonic; 0: not over */
};

struct records {
	TAILQ_HEAD(, record) list;
	unsigned made, other;
};

void records_init(struct records *);
void records_free(struct records *);
/* Makes a record that is not in the list yet, with one reference. NULL without
 * memory. */
struct record *record_new(const char *host, uint16_t port, bool udp);
/*
 * Sets verdict and reason, and adds the record to the list if there is room. A
 * refusal or failure that the list has already is not added again. Called once
 * for each record.
 */
void records_add(
    struct records *, struct record *, enum record_verdict, const char *reason);
struct record *record_hold(struct record *);
void record_drop(struct record *);
/* Sets the end of the connection to now, unless it is set. */
void record_end(struct record *);
/* Changes the verdict of a record that was added as PENDING to FAILED. */
void record_fail(struct record *, const char *reason);
/* Writes NET_REPORT's array, with as many records as fit. 0 or -1 without
 * memory. */
int records_json(const struct records *, struct buf *out);

/* Returns CLOCK_MONOTONIC in us. */
uint64_t record_now_us(void);

#endif
