/*
 * Filters of lists (admin_filter.def). `filters` of ADMIN_QUERY is a TLV list
 * with a field for each filter: the tag is 1 + the filter's number, the value
 * is the filter's text.
 */
#ifndef ADMIN_FILTER_H
#define ADMIN_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "bytes.h"

enum admin_filter {
#define F(NAME, name, TYPE) ADMIN_FILTER_##NAME,
#include "admin_filter.def"
#undef F
	ADMIN_FILTER_COUNT
};

enum admin_filter_type {
	ADMIN_FILTER_WORD,
	ADMIN_FILTER_NAMED, /* NAME in the .def file */
	ADMIN_FILTER_UUID,
	ADMIN_FILTER_HASHED, /* HASH in the .def file */
	ADMIN_FILTER_TIME,
	ADMIN_FILTER_TEXT
};

enum {
	ADMIN_WORD_MAX = 64,
	ADMIN_TEXT_CHARS = 255,
	/* next_cursor: at most a module's name, a space and its version */
	ADMIN_CURSOR_MAX = 300,
	ADMIN_FILTER_MAX = 4 * ADMIN_TEXT_CHARS /* bytes of any filter's text */
};

/* Returns the name of REST's query parameter. */
const char *admin_filter_name(enum admin_filter);
/* Returns the filter of this name, or -1. */
int admin_filter_find(const char *, size_t);
/* Tells whether the filter's type admits this text. No type admits an empty
 * text. */
bool admin_filter_ok(enum admin_filter, const void *, size_t);

void admin_filter_put(struct buf *, enum admin_filter, const char *text);
/* Reads list into out; an absent filter is empty. out borrows from list. 0, or
 * -1: the list is malformed, or has a filter that is unknown, repeated or not
 * of its type. */
int admin_filter_read(
    struct ipc_bytes list, struct ipc_bytes out[ADMIN_FILTER_COUNT]);

#endif
