/*
 * Replaces a call's secret values in everything that leaves its runner: the
 * result, log lines, progress and captured output. A tool that means to leak a
 * secret can always disguise it. This keeps accidental leaks (an error that
 * quotes a header, a debug print) from the LLM, the client's history and the
 * database.
 *
 * Found are the value itself, and a value that a reader gets by undoing one of
 * these, or two inside each other, in either order:
 *  - percent-encoding (any bytes escaped, either case, `+` for blank);
 *  - backslash escapes (JSON, Python's repr);
 *  - character references of HTML and XML (numbers; &amp; &lt; &gt; &quot;
 *    &apos;);
 *  - quoted-printable, with soft line breaks;
 *  - hexadecimal digits, of either case, in pairs with one mark between;
 *  - base64 (both alphabets) and base32 (upper or lower case), at any
 *    alignment, so `user:secret` in a Basic header too, padded or not, across
 *    lines;
 *  - UTF-16 of either order, also inside two others.
 * Found as well are each line of REDACT_LINE_MIN bytes and more of a value with
 * lines, and the value without white space around it. A value of hexadecimal
 * digits (a key, a UUID) is also found with its digits in the other case, and
 * as the bytes that they mean. A value in Latin-1 is also found in that
 * encoding.
 *
 * Not found: values under REDACT_MIN bytes, which would match ordinary text; a
 * value split over two strings, blocks or events; three encodings inside each
 * other; three characters beyond Latin-1 in raw UTF-16 (6 bytes); base32hex,
 * base85 and other alphabets; references by other names (&eacute;);
 * compression, encryption, another case of letters that are no digits, and any
 * invention of a tool that means to leak.
 */
#ifndef REDACT_H
#define REDACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "ipc.h"

enum {
	REDACT_MIN = 8,
	/* A line of a key in PEM has 64; many shorter lines are ordinary
	 * text. */
	REDACT_LINE_MIN = 16,
	/* Bytes of readings for each byte of a text. Base32 beside a secret
	 * beyond Latin-1, the dearest combination that a library writes, needs
	 * more than 224. A text that needs more than this, made of digits and
	 * escapes of every kind, fails. */
	REDACT_WORK = 320,
	REDACT_WORK_MIN = 65536 /* of a short text, where it is cheap */
};
/* As long as the shortest secret, so that no text ever grows. */
#define REDACT_MARK "[secret]"

struct redact;

/* Makes the searcher. tlv: the blob of SECRETS (name 1, value 2, ...). An empty
 * list gives an object that copies. NULL without memory. */
struct redact *redact_new(const void *tlv, size_t n);
void redact_free(struct redact *); /* wipes */
/* Is there any secret to look for? */
bool redact_any(const struct redact *);
/* Returns the bytes of the longest form searched for: output that is shown to a
 * limit must be captured to that much more, and cut with redact_cut. */
size_t redact_longest(const struct redact *);
/* Returns where to cut a text, of which about `at` bytes may be shown, before
 * redacting it: at, or after the secret that lies across it. */
size_t redact_cut(struct redact *, struct ipc_bytes text, size_t at);
/* Appends text to out; secrets that overlap are replaced as one. 1 if there was
 * any, 0 if none. Without memory out fails: nothing is let through. */
int redact_bytes(struct redact *, struct ipc_bytes text, struct buf *out);
/* Does the same for JSON that json_scan accepted; out is JSON again and no
 * longer, but names that held secrets may now be equal. Strings (and names) are
 * searched as the reader will decode them, whatever escapes they are written
 * with; a number holding a secret becomes null. */
int redact_json(struct redact *, struct ipc_bytes text, struct buf *out);

#endif
