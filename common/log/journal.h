/*
 * journald's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): a log line
 * with fields, as one datagram. log.c is its only user.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

enum { JOURNAL_FIELDS_MAX = 8 };

/* name: a constant of the program, [A-Z0-9_]; value: any bytes. */
struct journal_field {
	const char *name;
	const void *value;
	size_t n;
};

/* Tells whether descriptor fd is the file that JOURNAL_STREAM names, which the
 * journal reads. If fd was redirected, an inherited variable names another
 * file. */
bool journal_reads(int fd);

/* Opens a socket to journald; call it before confinement. 0 or -1 with
 * errno. */
int journal_open(const char *path);

/* Sends one entry of at most JOURNAL_FIELDS_MAX fields; never waits. 0, or -1:
 * journald did not take the entry, because journald is not there or its queue
 * is full. */
int journal_send(const struct journal_field *, size_t n);

#endif
