/*
 * Configuration files: `keyword value` lines, `#` comments, no include.
 * conf_keys.def has one row for each setting: process, keyword, type, default,
 * range, unit, text. Parser, defaults, `-T` dump and man pages come from it.
 *
 * Refused with file:line: unknown keyword, duplicate, missing or surplus value,
 * out of range, wrong unit, NUL or non-UTF-8, a line over 4096 bytes, a file
 * that others may write.
 *
 * FILE belongs to the package. FILE.local in the same directory, if there is
 * one, belongs to the machine (decision 0062). FILE.local is read after FILE
 * and checked in the same way. A line of FILE.local replaces the line of FILE.
 * In a list that denies (CONF_DENY) the line of FILE.local adds to the line of
 * FILE instead: a copy of one release's list must not hide the entries of a
 * later release.
 */
#ifndef CONF_H
#define CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"

struct conf; /* all settings of one process */

enum conf_type {
	CONF_STRING,   /* any text without control characters */
	CONF_PATH,     /* absolute path */
	CONF_BOOL,     /* yes or no */
	CONF_INT,      /* with min and max */
	CONF_SIZE,     /* bytes: 10, 10K, 10M, 10G (powers of 1024) */
	CONF_DURATION, /* milliseconds: 500ms, 30s, 5m, 1h */
	CONF_USER,     /* user name or number; read as uid */
	CONF_ADDRESS,  /* 127.0.0.1:8002, [::1]:0 */
	CONF_DENY      /* a comma-separated list; FILE.local adds to it */
};

/* Makes the settings of a process, all with their defaults. NULL without
 * memory. */
struct conf *conf_new(const char *process);
/* Parses text (no I/O) and replaces settings in c; name is for messages. 0, or
 * -1 with err. */
int conf_parse(struct conf *c, const char *name, const uint8_t *text, size_t n,
    struct err *);
/* Parses FILE.local's text in the same way, after FILE's. */
int conf_parse_local(struct conf *c, const char *name, const uint8_t *text,
    size_t n, struct err *);
/* Reads FILE and FILE.local and parses them; checks owner and mode. */
int conf_load(struct conf *c, const char *path, struct err *);
/* Tells whether there was a FILE.local. */
bool conf_has_local(const struct conf *);
/* Returns a USER setting whose user this machine does not have: a default that
 * no file replaced. NULL: there is none. */
const char *conf_no_user(const struct conf *, const char **user);
void conf_free(struct conf *);

/* Getters: the keyword must exist in the table with the getter's type, else
 * abort() (a programming error found by the first start). */
const char *conf_str(
    const struct conf *, const char *keyword); /* STRING, PATH, DENY */
int64_t conf_int(
    const struct conf *, const char *keyword); /* INT, SIZE, DURATION */
bool conf_bool(const struct conf *, const char *keyword);
uid_t conf_user(const struct conf *, const char *keyword);
/* Writes an ADDRESS as host text and port. 0 or -1. */
int conf_address(const struct conf *, const char *keyword, char *host,
    size_t hostlen, uint16_t *port);

void conf_dump(const struct conf *, struct buf *); /* writes all values */
/* Writes the mdoc(7) list of a process's settings, for its man page. */
void conf_man(const char *process, struct buf *);

#endif
