/*
 * Records of calls that ended and whose record the database does not have yet,
 * in a file that outlives the process which wrote them.
 *
 * A process that answers a call writes its record here first. After a SIGKILL
 * the next process of the same daemon reads the record and has it committed
 * before it says that its predecessor's calls are lost. So for each answer that
 * a client has there is a record of the call's end (docs/decisions/0076).
 *
 * The file is in the process' own folder of run_dir, which is a tmpfs. The file
 * is as lasting as the machine's memory: no write waits for a disk, and a
 * reboot, which ends every call, empties the folder.
 *
 * Only the process' own user may write the file. The folder belongs to that
 * user, the file is 0600, and a file that is not a plain file of this user is
 * refused. A runner has another user, another mount namespace, and no
 * descriptor of the file. The content that a taken-over predecessor left is not
 * trusted, though: each length is bounded before it is used, each record is
 * decoded by the codec that all messages use, and admind takes only records of
 * its own node's sandbox.
 *
 * The file begins with a head that names the build, because the messages of
 * another build mean something else. Two areas follow. The area of the higher
 * generation is read. An area holds its generation, then entries of the form
 * {length, state, number, bytes, number ^ mark}.
 *
 * An entry counts as a whole or not at all: its last word commits it. One
 * write(2) writes the whole entry. The kernel copies pages in ascending order,
 * and SIGKILL ends the copy only between two pages, so the last word is written
 * last. The upper bits of a number are the generation, and numbers ascend, so
 * no bytes of an earlier generation are taken for an entry. Tools write some of
 * the bytes, but the mark is random, so no tool can write the word that would
 * make a torn entry a whole one. A dropped entry's state changes in place. When
 * the last entry is dropped, a new generation begins. When an area is full, the
 * entries that live are copied to the other area, whose generation is written
 * last.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <sys/queue.h>

#include "ipc.h"

enum {
	/* Bytes of an area. At most records_max (4096) records wait while
	 * admind or the database is away, so each has 4 KiB. In an area that is
	 * nearly full, a record keeps its outcome without its text. */
	LEDGER_AREA = 16 * 1024 * 1024,
	/* An empty ledger whose file is longer than this truncates the file. */
	LEDGER_REST = 1024 * 1024
};

struct ledger;

/* The place of a record in the file; the record's owner keeps the note. A
 * zeroed note has no place. */
struct ledger_note {
	TAILQ_ENTRY(ledger_note) link;
	uint64_t at;  /* offset in its area */
	uint32_t len; /* of the entry's bytes; 0: no place */
};

/* Takes a record that a predecessor left; the record is valid during the call.
 * Returns the note that is to have the record's place, or NULL if the record is
 * not kept. */
typedef struct ledger_note *ledger_found(void *arg, const struct ipc_record *);

/*
 * Opens or makes the ledger at path, with areas of `area` bytes, locks it
 * against a second process, and calls found for each record, oldest first.
 * *unreadable: bytes that were dropped, because another build wrote them. 0, or
 * -1 with an error that says how to correct the problem.
 */
int ledger_open(struct ledger **, const char *path, size_t area, ledger_found *,
    void *arg, size_t *unreadable, struct err *);
/* Frees the ledger; its records stay in the file. */
void ledger_close(struct ledger *);

/*
 * Writes a record in place of the note's earlier record, if there is one.
 * network and cpu_us are written as the message has them. 0, or -1 if there is
 * no room or the message is too long; the note is then unchanged.
 */
int ledger_put(
    struct ledger *, struct ledger_note *, const struct ipc_record *);
/* Forgets the note's record, if any: the database has it. */
void ledger_drop(struct ledger *, struct ledger_note *);
size_t ledger_count(const struct ledger *);

/* For ledger_next: one area's bytes and how far they were read. */
struct ledger_scan {
	const uint8_t *p;
	size_t n, at;
	uint64_t generation, number, mark;
};
/* Reads the next entry's bytes. *lives: the entry was not dropped. Returns 1,
 * or 0 at the end of the area or at a torn entry. No I/O. */
int ledger_next(struct ledger_scan *, struct ipc_bytes *, bool *lives);
/* Begins to read an area. Returns its generation, 0 if it has none. */
uint64_t ledger_begin(
    struct ledger_scan *, const uint8_t *area, size_t n, uint64_t mark);
/* Decodes a record from an entry's bytes; the frame owns the memory that m
 * points to. 0 or -1. */
int ledger_decode(struct ipc_bytes, struct ipc_frame *, struct ipc_record *m);

#endif
