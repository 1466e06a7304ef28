/* Requests of people to admind about other MCP servers, OAuth, OpenAPI
 * documents, and calls of their own. */
#ifndef IPC_MESSAGES_SOURCE_H
#define IPC_MESSAGES_SOURCE_H

/* clang-format off */
#define IPC_MESSAGES_SOURCE(M) \
M(260, SOURCE_RUN, source_run, REQ, WEB|CTL, ADMIND, OPEN, IPC_BLOB_MAX, "list, import from or authorise another MCP server; answered by ADMIN_JSON or REFUSED") \
M(261, OAUTH_CALLBACK, oauth_callback, REQ, WEB, ADMIND, OPEN, 0, "what a browser brought back from an authorization server; answered by ADMIN_JSON or REFUSED") \
M(262, CREDENTIAL_STORE, credential_store, REQ, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "keep the credential that this run of a version sealed for us; answered by OK once SECRET_STORE was") \
M(263, OPENAPI_IMPORT, openapi_import, REQ, WEB|CTL, ADMIND, OPEN, IPC_BLOB_MAX, "operations of an OpenAPI document as tools, each in the queue; answered by ADMIN_JSON or REFUSED") \
M(264, PERSON_CALL, person_call, REQ, WEB, ADMIND, OPEN, IPC_BLOB_MAX, "call a tool as this administrator; answered by ADMIN_JSON or REFUSED")

#define IPC_FIELDS_source_run(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL") \
F(S, id, source, "uuid") \
F(S, u8, op, "enum source_op") \
F(S, blob, text, "of IMPORT names of tools, one a line; of AUTHORISE the redirect URI")

#define IPC_FIELDS_oauth_callback(F, S) \
F(S, str, state, "from the query: foreign") \
F(S, str, code, "likewise, or empty") \
F(S, str, iss, "likewise (RFC 9207), or empty") \
F(S, str, error, "likewise, or empty")

#define IPC_FIELDS_credential_store(F, S) \
F(S, id, execution, "of the run") \
F(S, hash, version, "that ran") \
F(S, str, server, "its server's name") \
F(S, str, key, "the secret it becomes") \
F(S, blob, sealed, "by the runner, under the key that the context alone held (decision 0051)")

#define IPC_FIELDS_openapi_import(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL") \
F(S, id, server, "uuid") \
F(S, str, base_url, "as for CHECK_OPENAPI") \
F(S, u32, document_len, "likewise") \
F(S, blob, document_operations, "likewise")

#define IPC_FIELDS_person_call(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url") \
F(S, str, tool, "an approved tool by the name that clients use, or a management tool that drafts") \
F(S, hash, seen, "If-Match: hash of the version that a draft is made from; zero: none given") \
F(S, blob, arguments, "JSON, an object")
/* clang-format on */

#endif
