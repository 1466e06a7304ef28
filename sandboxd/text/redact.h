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
 *  - UTF-16 of either byte order, also inside two other encodings.
 * Also found are each line of a value that has REDACT_LINE_MIN bytes or more,
 * and the value without white space around it. A value of hexadecimal
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
	/* A line of a key in PEM has 64 bytes. Many lines that are shorter than
	 * 16 bytes are ordinary text. */
	REDACT_LINE_MIN = 16,
	/* The most bytes of decoded readings (views.h) for each byte of a text.
	 * Base32 next to a secret with characters beyond Latin-1 needs more
	 * than 224: no library writes a more expensive combination. A text of
	 * digits and escapes of every kind that needs more than 320 fails. */
	REDACT_WORK = 320,
	REDACT_WORK_MIN = 65536 /* so many bytes more, for any text */
};
/* As long as the shortest secret, so that no text ever grows. */
#define REDACT_MARK "[secret]"

struct redact;

/* Makes the searcher. tlv: the blob of SECRETS (tag 1: a name, tag 2: its
 * value). With an empty list, texts are only copied. NULL without memory. */
struct redact *redact_new(const void *tlv, size_t n);
void redact_free(struct redact *); /* wipes */
/* Tells whether there is any secret to look for. */
bool redact_any(const struct redact *);
/* Returns how many bytes the longest form of a value has. Output that is shown
 * up to a limit must be captured for so many bytes more, and cut with
 * redact_cut. */
size_t redact_longest(const struct redact *);
/* Returns where to cut a text before it is redacted, if about `at` bytes may be
 * shown: at, or the end of a secret that lies across `at`. */
size_t redact_cut(struct redact *, struct ipc_bytes text, size_t at);
/* Appends text to out; secrets that overlap are replaced as one. 1 if there was
 * a secret, 0 if none. If memory runs out, `out` fails, so nothing is let
 * through. */
int redact_bytes(struct redact *, struct ipc_bytes text, struct buf *out);
/* Does the same for JSON that json_scan accepted. out gets JSON that is not
 * longer than text, but names that held secrets may now be equal. Strings (and
 * names) are searched as the reader will decode them, whatever escapes they are
 * written with. A number that holds a secret becomes null. */
int redact_json(struct redact *, struct ipc_bytes text, struct buf *out);

#endif
