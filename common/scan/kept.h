/*
 * The form in which records keep arguments and results: JSON whose members with
 * telling names (kept_names.def) have lost their values, and that is not longer
 * than a record may be.
 *
 * This is about values that people put into fields with such names. The secrets
 * of a tool's server are found by their value, in any place, by sandboxd
 * (redact.h); both hold.
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
	/* In a text that is too long, so much of each string stays, in bytes:
	 * enough to recognise it. */
	KEPT_STRING_MAX = 500,
	/* Letters and digits of a name that are compared. */
	KEPT_NAME_MAX = 128
};
#define KEPT_MARK "\"[redacted]\""
/* The end of a cut string, and of a text cut in the middle (U+2026). No JSON
 * text ends so: it marks a text that is not whole. */
#define KEPT_CUT "\xe2\x80\xa6"

/* Does a member of this name lose its value? The name is as written in the
 * text, escapes and all, which json_scan accepted. */
bool kept_hides(const uint8_t *name, size_t n);

/*
 * Appends the kept form of a text that json_scan accepted to out, at most max
 * bytes. Values of telling names become KEPT_MARK, but null, true and false,
 * which tell nothing. A string that is itself a JSON object or array is treated
 * likewise, once (tools return JSON as text). If that is longer than max, each
 * string is cut at KEPT_STRING_MAX; if it still is, the text ends in KEPT_CUT.
 *
 * 1: it differs from the text; 0: it is the text, and nothing was appended;
 * -1: out of memory, out failed.
 */
int kept_form(const uint8_t *text, size_t n, size_t max, struct buf *out);

#endif
