/*
 * The error object: the failure, its reason, and advice to the reader.
 *
 * A function that can fail in a way worth telling has a struct err * as its
 * last parameter and returns 0 or -1. It leaves the object untouched on success
 * and its outputs untouched on failure. NULL is allowed where the caller does
 * not care.
 */
#ifndef ERR_H
#define ERR_H

#include "failure.h"

enum { ERR_TEXT_MAX = 1024 }; /* one line in a log, one sentence to a client */

struct err {
	enum failure failure;
	int sys_errno;           /* errno at the point of failure, or 0 */
	char text[ERR_TEXT_MAX]; /* untrusted parts already escaped by the
				    caller */
};

/* Sets the error; always returns -1 so that `return err_set(...)` reads well.
 */
int err_set(struct err *, enum failure, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Does the same as err_set, but appends ": strerror(errno)" to the text. Does
 * not change errno. */
int err_sys(struct err *, enum failure, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text of an error already set; returns -1. */
int err_wrap(struct err *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
