/*
 * Replaces a call's secret values in everything that leaves its runner: the
 * result, log lines, progress and captured output. A tool that means to leak
 * a secret can always disguise it; this keeps the ones that slip out by
 * themselves (an error that quotes a header, a debug print) from the LLM, the
 * client's history and the database.
 *
 * Found: the value, its JSON-escaped, percent-encoded and hexadecimal forms,
 * and its base64 at any alignment in both alphabets (so `user:secret` in a
 * Basic header too). Values under REDACT_MIN bytes are not searched for: they
 * would match ordinary text.
 */
#ifndef REDACT_H
#define REDACT_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "ipc.h"

enum { REDACT_MIN = 8 };
/* As long as the shortest secret, so that nothing ever grows. */
#define REDACT_MARK "[secret]"

struct redact;

/* tlv: the blob of SECRETS (name 1, value 2, ...). NULL without memory. An
 * empty list gives an object that copies. */
struct redact *redact_new(const void *tlv, size_t n);
void redact_free(struct redact *); /* wipes */
/* Bytes of the longest form searched for: output that is shown to a limit must
 * be captured to that much more, and cut with redact_cut. */
size_t redact_longest(const struct redact *);
/* Where to cut a text of which about `at` bytes may be shown, before redacting
 * it: at, or behind the secret that stands across it. */
size_t redact_cut(const struct redact *, struct ipc_bytes text, size_t at);
/* Appends text to out, secrets replaced. 1 if any was, 0 if none. */
int redact_bytes(const struct redact *, struct ipc_bytes text, struct buf *out);
/* The same for JSON that json_scan accepted; out is JSON again. Strings (and
 * names) are searched as the reader will decode them, whatever escapes they
 * are written with; a number holding a secret becomes null. */
int redact_json(const struct redact *, struct ipc_bytes text, struct buf *out);

#endif
