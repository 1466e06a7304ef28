/*
 * Replaces a call's secret values in everything that leaves its runner: the
 * result, log lines, progress and captured output. A tool that means to leak
 * a secret can always disguise it; this keeps the ones that slip out by
 * themselves (an error that quotes a header, a debug print) from the LLM, the
 * client's history and the database.
 *
 * Found: the value; what a reader gets who decodes percent-encoding (any set
 * of escaped characters, either case, `+` for blank), backslash escapes (JSON,
 * Python's repr), hexadecimal digits, or base64 (both alphabets, any
 * alignment, so `user:secret` in a Basic header too, with or without padding,
 * across line breaks); and two of these inside each other, except hexadecimal
 * digits and base64, in which only the first two are looked for (views.h). Of
 * a value with lines, also each line of REDACT_LINE_MIN bytes and more, and the
 * value without white space around it.
 *
 * Not found: values under REDACT_MIN bytes, which would match ordinary text; a
 * value split over two strings, blocks or events; other transformations
 * (compression, base32, a changed case).
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
	/* A line of a key in PEM has 64; of shorter ones many are ordinary. */
	REDACT_LINE_MIN = 16
};
/* As long as the shortest secret, so that nothing ever grows. */
#define REDACT_MARK "[secret]"

struct redact;

/* tlv: the blob of SECRETS (name 1, value 2, ...). NULL without memory. An
 * empty list gives an object that copies. */
struct redact *redact_new(const void *tlv, size_t n);
void redact_free(struct redact *); /* wipes */
/* Is there any secret to look for? */
bool redact_any(const struct redact *);
/* Bytes of the longest form searched for: output that is shown to a limit must
 * be captured to that much more, and cut with redact_cut. */
size_t redact_longest(const struct redact *);
/* Where to cut a text of which about `at` bytes may be shown, before redacting
 * it: at, or behind the secret that stands across it. */
size_t redact_cut(struct redact *, struct ipc_bytes text, size_t at);
/* Appends text to out; secrets that overlap are replaced as one. 1 if any was,
 * 0 if none. Without memory out fails: nothing is let through. */
int redact_bytes(struct redact *, struct ipc_bytes text, struct buf *out);
/* The same for JSON that json_scan accepted; out is JSON again and no longer,
 * but names that held secrets may now be equal. Strings (and names) are
 * searched as the reader will decode them, whatever escapes they are written
 * with; a number holding a secret becomes null. */
int redact_json(struct redact *, struct ipc_bytes text, struct buf *out);

#endif
