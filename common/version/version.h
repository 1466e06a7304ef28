/*
 * Tool versions: the pre-image of the version hash, as a TLV list after the
 * text "mcpbox version 1" and a NUL. SHA-256 over these bytes names the
 * version; approval binds to this hash. The same bytes travel to the vault, to
 * admind-http and to mcpboxctl, which hash and show them themselves.
 *
 * Fields are in the order of this enum, each at most once (but SECRET, REQUIRE,
 * HOST, MODULE: any number, sorted bytewise, no duplicates). Absent = no field;
 * empty = length 0. Numbers are u64be. Strings are the UTF-8 bytes as received;
 * NUL is refused.
 */
#ifndef VERSION_H
#define VERSION_H

#include <stddef.h>
#include <stdint.h>

#include "bounds.h"
#include "buf.h"
#include "bytes.h"
#include "err.h"
#include "tlv.h"

/* V(number, SYMBOL, name, kind): kind S text, N number, B raw bytes (JSON or
 * code), I uuid (16 bytes), M text that may occur many times */
#define VERSION_FIELDS(V)                                                   \
	V(1, FORMAT, "format", N) /* 1 */                                   \
	V(2, SERVER_ID, "server_id", I)                                     \
	V(3, TOOL_ID, "tool_id", I)                                         \
	V(4, SERVER_NAME, "server", S)                                      \
	V(5, NAME, "name", S)                                               \
	V(6, EXPOSED_NAME, "exposed_name", S)                               \
	V(7, TITLE, "title", S)                                             \
	V(8, DESCRIPTION, "description", S)                                 \
	V(9, ICONS, "icons", B)                                             \
	V(10, META, "meta", B)                                              \
	V(11, INPUT_SCHEMA, "input_schema", B)                              \
	V(12, OUTPUT_SCHEMA, "output_schema", B)                            \
	V(13, ANNOTATIONS, "annotations", B)                                \
	V(14, KIND, "kind", S) /* python, command, http, mcp, static */     \
	V(15, CODE, "code", B)                                              \
	V(16, SPEC, "spec", B)                                              \
	V(17, MODULE, "modules", M) /* name version digest */               \
	V(18, EXECUTABLE, "executable", S)                                  \
	V(19, EXECUTABLE_DIGEST, "executable_digest", S)                    \
	V(20, SECRET, "secrets", M)                                         \
	V(21, REQUIRE, "requires", M)                                       \
	V(22, TASK, "task", S)       /* forbidden, optional, required */    \
	V(23, CONFIRM, "confirm", N) /* 1: each call needs a human's yes */ \
	V(24, TIMEOUT_MS, "timeout_ms", N)                                  \
	V(25, MEMORY_BYTES, "memory_bytes", N)                              \
	V(26, PROCESSES, "processes", N)                                    \
	V(27, TMP_BYTES, "tmp_bytes", N)                                    \
	V(28, RESULT_BYTES, "result_bytes", N)                              \
	V(29, CPU_MS, "cpu_ms", N)                                          \
	V(30, FILES, "files", N)                                            \
	V(31, FILE_BYTES, "file_bytes", N)                                  \
	V(32, STDOUT_BYTES, "stdout_bytes", N)                              \
	V(33, ARGUMENT_BYTES, "argument_bytes", N)                          \
	V(34, LOG_RATE, "log_rate", N) /* lines a second */                 \
	V(35, PROGRESS_RATE, "progress_rate", N)                            \
	V(36, OBJECT, "object",                                             \
	    S)               /* absent: tool; prompt, resource, template */ \
	V(37, URI, "uri", S) /* resource: URI; template: RFC 6570 */        \
	V(38, MIME_TYPE, "mime_type", S)                                    \
	V(39, PROMPT_ARGUMENTS, "arguments", B) /* MCP PromptArgument[] */  \
	V(40, TEXT, "text", S)     /* static: a resource, a prompt */       \
	V(41, BLOB, "blob", S)     /* static: a resource, as base64 */      \
	V(42, TTL_MS, "ttl_ms", N) /* of a resource: caching hint */        \
	V(43, CLIENT_CAPABILITY, "client_capabilities", M)                  \
	V(44, CONNECTIONS, "connections", N)                                \
	V(45, NETWORK_BYTES, "network_bytes", N)                            \
	V(46, NETWORK_RATE, "network_rate", N) /* bytes a minute */

enum version_tag {
#define V(number, SYMBOL, name, kind) VERSION_##SYMBOL = number,
	VERSION_FIELDS(V)
#undef V
	    VERSION_TAG_MAX = 46
};

enum version_kind { VERSION_S, VERSION_N, VERSION_B, VERSION_I, VERSION_M };

/* Returns name and kind of a tag; NULL if the table does not have it. */
const char *version_field(unsigned tag, enum version_kind *);

/* Starts a pre-image in b with the magic. The caller then adds the fields in
 * order by tlv_put. */
void version_begin(struct buf *b);
/* Checks magic, order, repetition, kinds, sorted sets, no NUL in text, UTF-8.
 * On success *fields, *n is the TLV list after the magic. */
int version_check(const uint8_t *preimage, size_t len, const uint8_t **fields,
    size_t *n, struct err *);
/* Lists the digests at the ends of the VERSION_MODULE fields ("name version
 * digest"), ascending, each once. 0, or -1 if a field does not have that form
 * or there are too many. */
int version_modules(const uint8_t *fields, size_t n,
    uint8_t digest[MODULES_PER_CALL_MAX][32], size_t *count, struct err *);
/* Writes the pre-image as a JSON object for people and REST: names as in the
 * table, JSON fields as raw JSON, code as text, hash not included. Needs only
 * jsonw. */
int version_json(
    const uint8_t *preimage, size_t len, struct buf *out, struct err *);

#endif
