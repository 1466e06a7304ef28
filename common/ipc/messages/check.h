/* admind asks admind-check about foreign bytes. */
#ifndef IPC_MESSAGES_CHECK_H
#define IPC_MESSAGES_CHECK_H

/* clang-format off */
#define IPC_MESSAGES_CHECK(M) \
M(121, CHECK_ARGUMENTS, check_arguments, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "do these arguments satisfy this schema?") \
M(122, CHECK_MANAGEMENT, check_management, REQ, ADMIND, CHECK, OPEN, ARGUMENTS_MAX, "validate and take apart a management tool's arguments") \
M(123, CHECK_OK, check_ok, ANS, CHECK, ADMIND, OPEN, IPC_BLOB_MAX, "valid; typed fields where asked for") \
M(124, CHECK_ERRORS, check_errors, ANS, CHECK, ADMIND, OPEN, RESULT_MAX, "invalid: all errors together") \
M(125, CHECK_INSPECTION, check_inspection, REQ, ADMIND, CHECK, OPEN, RESULT_MAX, "take apart a runner's inspection result (foreign JSON)") \
M(126, CHECK_COMMAND, check_command, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "is this a command, and does the schema name its placeholders?") \
M(127, CHECK_RENDER, check_render, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "fill a static prompt's placeholders; CHECK_OK carries the result object") \
M(128, CHECK_HTTP, check_http, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "is this a declared REST call? CHECK_OK carries what follows from it: enum inspection_field") \
M(129, CHECK_OPENAPI, check_openapi, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "an OpenAPI document as declared REST calls; CHECK_OK carries enum openapi_field") \
M(130, CHECK_ACCESS, check_access, REQ, ADMIND, CHECK, OPEN, ACCESS_DOCUMENT_MAX, "is this an access document? CHECK_OK carries enum access_field") \
M(131, CHECK_JWT, check_jwt, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "who is this signed token of, by which of these issuers? CHECK_OK carries enum jwt_field; CHECK_ERRORS says why not") \
M(132, CHECK_KEYS, check_keys, REQ, ADMIND, CHECK, OPEN, RESULT_MAX, "which public keys of an issuer did this run fetch? CHECK_OK carries enum keys_field and ISSUER_KEY; CHECK_ERRORS says what went wrong")

#define IPC_FIELDS_check_arguments(F, S) \
F(S, u8, output, "1: an outputSchema and a value of any type, not arguments") \
F(S, u32, schema_len, "bytes of the schema at the front of the blob") \
F(S, blob, schema_arguments, "schema, then arguments, both JSON")

#define IPC_FIELDS_check_management(F, S) \
F(S, str, tool, "mcpbox_* name") \
F(S, blob, arguments, "JSON")

#define IPC_FIELDS_check_ok(F, S) \
F(S, bytes, kept, "of CHECK_ARGUMENTS and CHECK_MANAGEMENT: the arguments as records keep them (common/scan/kept.h), or empty: as they are") \
F(S, blob, fields, "TLV of the fields asked for, or empty")

#define IPC_FIELDS_check_errors(F, S) \
F(S, u16, failure, "enum failure") \
F(S, str, summary, "one sentence") \
F(S, blob, json, "array of {pointer, message}")

#define IPC_FIELDS_check_inspection(F, S) F(S, blob, json, "what the runner answered")

#define IPC_FIELDS_check_command(F, S) \
F(S, u32, spec_len, "bytes of the specification at the front of the blob") \
F(S, blob, spec_schema, "specification, then input schema, both JSON")

#define IPC_FIELDS_check_render(F, S) \
F(S, u32, text_len, "bytes of the template at the front of the blob") \
F(S, blob, text_arguments, "template, then the arguments object")

#define IPC_FIELDS_check_http(F, S) \
F(S, u8, confirm, "0: not said; 1: false was asked for; 2: true was") \
F(S, blob, spec, "the specification, JSON")

#define IPC_FIELDS_check_openapi(F, S) \
F(S, str, base_url, "in the place of the document's servers, or empty") \
F(S, u32, document_len, "bytes of the document at the front of the blob") \
F(S, blob, document_operations, "OpenAPI 3 as JSON, then the operations that are wanted, one a line (operationId, or \"get /path\"); none: all")

#define IPC_FIELDS_check_access(F, S) F(S, blob, document, "JSON")

#define IPC_FIELDS_check_keys(F, S) F(S, blob, result, "what the runner answered (foreign JSON)")

#define IPC_FIELDS_check_jwt(F, S) \
F(S, u8, listener, "enum listener that it came to") \
F(S, u8, via, "enum credential_via") \
F(S, u64, now_us, "Unix time in us that the token is judged at") \
F(S, u32, token_len, "bytes of the token at the front of the blob") \
F(S, blob, token_issuers, "token, then the records ACCESS_ISSUER of the document, as CHECK_ACCESS gave them")
/* clang-format on */

#endif
