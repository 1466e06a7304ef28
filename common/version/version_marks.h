/*
 * Places of a version that a reviewer should look at twice: words that speak to
 * a model rather than say what a tool does, and code that can't be approved.
 * The marks help reading and do not filter: a text without a mark may still
 * mislead. docs/decisions/0065.
 */
#ifndef VERSION_MARKS_H
#define VERSION_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jsonw.h"

/*
 * One mark. field: the version's field; words: as our table has them, "" if the
 * mark is not for words; why: a sentence. All three are our words, never the
 * version's text. refused: the vault will not approve it.
 */
struct version_mark {
	const char *field, *words, *why;
	bool refused;
};

/* Calls `mark` for each mark, in the order of fields and table, at most once
 * for each reason in a field. Makes no call for bytes that are not a
 * version. */
void version_marks(const uint8_t *preimage, size_t n,
    void (*mark)(void *arg, const struct version_mark *), void *arg);

/* Writes the marks as an array of {field, words, why, refused}. */
void version_marks_json(struct jsonw *, const uint8_t *preimage, size_t n);

#endif
