/*
 * The form in which records keep arguments and results: JSON whose members with
 * telling names (kept_names.def) have lost their values, and that is not longer
 * than a record may be.
 *
 * This is about values that people put into fields with such names. sandboxd
 * finds the secrets of a tool's server by their value, in any place (redact.h).
 * Both rules apply.
 *
 * Only for programs that scan JSON anyway: admind-check and sandboxd.
 */
#ifndef KEPT_H
#define KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum {
	/* Bytes of each string that stay in a text that is too long: enough to
	 * recognise the string. */
	KEPT_STRING_MAX = 500,
	/* Letters and digits of a name that are compared. */
	KEPT_NAME_MAX = 128
};
#define KEPT_MARK "\"[redacted]\""
/* This mark ends a cut string, and a text cut in the middle (U+2026). No JSON
 * text ends with U+2026, so a text that does is not whole. */
#define KEPT_CUT "\xe2\x80\xa6"

/* Tells whether a member of this name loses its value. The name is as written
 * in the text, escapes and all, which json_scan accepted. */
bool kept_hides(const uint8_t *name, size_t n);

/*
 * Appends the kept form of a text that json_scan accepted to out, at most max
 * bytes. Values of telling names become KEPT_MARK, except null, true and false,
 * which tell nothing. A string that is itself a JSON object or array is treated
 * in the same way, but no string inside it is (tools return JSON as text). If
 * the result is longer than max, each string is cut at KEPT_STRING_MAX. If this
 * is still too long, the text ends in KEPT_CUT.
 *
 * Returns 1 if the kept form differs from the text, 0 if it is the text
 * (nothing was appended), or -1 if memory is out (out has failed).
 */
int kept_form(const uint8_t *text, size_t n, size_t max, struct buf *out);

#endif
