/*
 * The management tools as clients see them, and the typed form of their
 * arguments. Pure data, linked into admind (catalogue, dispatch) and into
 * admind-check, which validates arguments against these schemas and sends
 * admind the fields as a TLV list: admind parses no JSON.
 *
 * Also the fields of an inspection (CHECK_INSPECTION).
 */
#ifndef MANAGEMENT_TOOLS_H
#define MANAGEMENT_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc.h"

/*
 * MF(number, SYMBOL, name, kind): an argument's name is the same in every tool.
 *   S text without U+0000    N number as u64    B 0 or 1 as u64
 *   I uuid, 16 bytes; a name instead is a text under MF_NAMED
 *                            J an object or array, its JSON bytes as sent
 *   M many texts: one field each, sorted bytewise, no duplicates; an empty
 *     array is one field of length 0
 * A name with a point is a member of an object: limits.timeout_ms.
 */
#define MANAGEMENT_FIELDS(MF)                                                 \
	MF(1, SERVER_ID, "server_id", I)                                      \
	MF(2, TOOL_ID, "tool_id", I)                                          \
	MF(3, NAME, "name", S)                                                \
	MF(4, DESCRIPTION, "description", S)                                  \
	MF(5, CODE, "python_code", S)                                         \
	MF(6, ENABLED, "enabled", B)                                          \
	MF(7, NOTES, "notes", S)                                              \
	MF(8, PAGE, "page", N)           /* from 1 */                         \
	MF(9, PAGE_SIZE, "page_size", N) /* 1 to 100 */                       \
	MF(10, TITLE, "title", S)                                             \
	MF(11, INPUT_SCHEMA, "input_schema", J) /* compiled: of the subset */ \
	MF(12, OUTPUT_SCHEMA, "output_schema", J)                             \
	MF(13, ANNOTATIONS, "annotations", J)                                 \
	MF(14, ICONS, "icons", J)                                             \
	MF(15, META, "meta", J)                                               \
	MF(16, SECRET, "secrets", M)                                          \
	MF(17, MODULE, "modules", M)                                          \
	MF(18, REQUIRE, "requires", M)                                        \
	MF(19, TASK, "task", S) /* forbidden, optional, required */           \
	MF(20, CONFIRM, "confirm", B)                                         \
	MF(21, TIMEOUT_MS, "limits.timeout_ms", N)                            \
	MF(22, MEMORY_BYTES, "limits.memory_bytes", N)                        \
	MF(23, PROCESSES, "limits.processes", N)                              \
	MF(24, TMP_BYTES, "limits.tmp_bytes", N)                              \
	MF(25, RESULT_BYTES, "limits.result_bytes", N)                        \
	MF(26, KIND, "kind", S)             /* python, command, http */       \
	MF(27, SPEC, "spec", J)             /* of a command, of http */       \
	MF(28, EXECUTABLE, "executable", S) /* of a command: its path */      \
	MF(29, CPU_MS, "limits.cpu_ms", N)                                    \
	MF(30, FILES, "limits.files", N)                                      \
	MF(31, FILE_BYTES, "limits.file_bytes", N)                            \
	MF(32, STDOUT_BYTES, "limits.stdout_bytes", N)                        \
	MF(33, ARGUMENT_BYTES, "limits.argument_bytes", N)                    \
	MF(34, LOG_RATE, "limits.log_rate", N)                                \
	MF(35, PROGRESS_RATE, "limits.progress_rate", N)                      \
	MF(36, MODULE_NAME, "module_name", S)                                 \
	MF(37, JUSTIFICATION, "justification", S)                             \
	MF(38, PROMPT_ID, "prompt_id", I)                                     \
	MF(39, RESOURCE_ID, "resource_id", I)                                 \
	MF(40, ARGUMENTS, "arguments", J) /* PromptArgument[], or a call's */ \
	MF(41, URI, "uri", S)                                                 \
	MF(42, URI_TEMPLATE, "uri_template", S)                               \
	MF(43, MIME_TYPE, "mime_type", S)                                     \
	MF(44, TEXT, "text", S)                                               \
	MF(45, BLOB, "blob", S) /* canonical base64 */                        \
	MF(46, TTL_MS, "ttl_ms", N)                                           \
	MF(47, CLIENT_CAPABILITY, "client_capabilities", M)                   \
	MF(48, QUERY, "query", S)                                             \
	MF(49, LIMIT, "limit", N) /* 1 to 50 */                               \
	MF(50, VERSION, "version", N)                                         \
	MF(51, FROM_VERSION, "from_version", N)                               \
	MF(52, TO_VERSION, "to_version", N)                                   \
	MF(53, SECRET_KEY, "key", S)                                          \
	MF(54, URL, "url", S)                                                 \
	MF(55, AUTH_TYPE, "auth_type", S)                                     \
	MF(56, AUTH_SECRET_NAME, "auth_secret_name", S)                       \
	MF(57, AUTH_HEADER_NAME, "auth_header_name", S)                       \
	MF(58, TRANSPORT_TYPE, "transport_type", S)                           \
	MF(59, CANDIDATE, "code", S) /* to be looked at, not stored */        \
	MF(60, HOST, "host", S)                                               \
	MF(61, PORT, "port", N)                                               \
	MF(62, TOOL_IDS, "tool_ids", M)                                       \
	MF(63, CONNECTIONS, "limits.connections", N)                          \
	MF(64, NETWORK_BYTES, "limits.network_bytes", N)                      \
	MF(65, NETWORK_RATE, "limits.network_rate", N)                        \
	MF(70, SOURCE_ID, "source_id", I)                                     \
	MF(71, TOOL_NAMES, "tool_names", M)                                   \
	MF(72, DOCUMENT, "document", J) /* OpenAPI 3 */                       \
	MF(73, BASE_URL, "base_url", S)                                       \
	MF(74, OPERATIONS, "operations", M)                                   \
	MF(75, EXECUTION_ID, "execution_id", I)

enum management_field {
#define MF(number, SYMBOL, name, kind) MF_##SYMBOL = number,
	MANAGEMENT_FIELDS(MF)
#undef MF
	    MF_MAX = 75,
	/* Added to the number of a field of kind I: a name, where an id could
	 * be given. manage_named.c replaces it by the id. */
	MF_NAMED = 128,
	/* Not an argument: the JSON Schema of a call's arguments, which follows
	 * from a prompt's arguments or from a URI (template). After the
	 * others. */
	MF_OBJECT_SCHEMA = 255
};

enum management_kind {
	MANAGEMENT_S,
	MANAGEMENT_N,
	MANAGEMENT_B,
	MANAGEMENT_I,
	MANAGEMENT_J,
	MANAGEMENT_M
};

struct management_tool {
	const char *name;
	const char *title;
	const char *description;  /* for the model that chooses a tool */
	const char *input_schema; /* JSON of the closed subset */
	/* Schema of structuredContent; NULL: another tool's result is passed
	 * on. */
	const char *output_schema;
	bool read_only;
	bool destructive; /* may undo something that somebody relies on */
	bool idempotent;  /* calling twice has the effect of once */
};

/* Returns all of them, in the order of tools/list. */
const struct management_tool *management_tools(size_t *n);
/* Not a tool, but a name for admind-check alone: it checks the definition of
 * another MCP server's tool like the arguments of a tool that somebody creates.
 * No client's tool has a blank in its name. */
#define MANAGEMENT_IMPORTED "imported tool"
/* Finds a tool by name; NULL if there is none. */
const struct management_tool *management_tool(struct ipc_bytes name);
/* Writes the MCP Tool object (name, title, description, inputSchema,
 * annotations). */
void management_tool_json(const struct management_tool *, struct buf *out);
/* Returns the rule of one of the patterns in those schemas, in words ("must
 * have ..."); NULL for any other pattern. */
const char *management_rule(const uint8_t *pattern, size_t n);
/* Returns name and kind of a field; NULL for a number that the table lacks. */
const char *management_field(unsigned number, enum management_kind *);

/* Fields of the answer to CHECK_OPENAPI: a group for each operation, which NAME
 * begins, and a line for each operation that was left out. */
enum openapi_field {
	OPENAPI_NAME = 1,  /* of the tool */
	OPENAPI_TITLE = 2, /* this and the next may be absent */
	OPENAPI_DESCRIPTION = 3,
	OPENAPI_ANNOTATIONS = 4, /* JSON */
	OPENAPI_SPEC = 5,        /* JSON */
	OPENAPI_FOLLOWS = 6,     /* TLV: the answer of CHECK_HTTP to it */
	OPENAPI_SKIPPED = 7      /* text: which operation, and why */
};

/* Fields of the answer to CHECK_INSPECTION. With OK 0 only the ERROR fields may
 * follow. */
enum inspection_field {
	INSPECT_OK = 1,           /* u64: 1 inspected, 0 the code is broken */
	INSPECT_INPUT_SCHEMA = 2, /* JSON bytes, of the closed subset */
	INSPECT_DOC = 3,          /* docstring of main; absent if it has none */
	INSPECT_IS_ASYNC = 4,     /* u64 */
	INSPECT_ERROR_TYPE = 5,   /* "SyntaxError" */
	INSPECT_ERROR_MESSAGE = 6,
	INSPECT_ERROR_LINE = 7,    /* u64, from 1; absent if unknown */
	INSPECT_ERROR_COLUMN = 8,  /* u64, from 1; absent if unknown */
	INSPECT_ERROR_CONTEXT = 9, /* one line of code each, in order */
	/* 64 hex digits, of a command's executable; absent for Python */
	INSPECT_EXECUTABLE_DIGEST = 10,
	/* These are of kind http; they follow from its specification
	 * (CHECK_HTTP). */
	INSPECT_SECRET = 11,  /* any number, sorted */
	INSPECT_REQUIRE = 12, /* likewise */
	INSPECT_CONFIRM = 13  /* u64 1: each call is confirmed */
};

#endif
