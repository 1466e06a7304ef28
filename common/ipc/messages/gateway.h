/* gatewayd asks admind for principals, lists and calls. admind tells gatewayd
 * of changes. */
#ifndef IPC_MESSAGES_GATEWAY_H
#define IPC_MESSAGES_GATEWAY_H

/* clang-format off */
#define IPC_MESSAGES_GATEWAY(M) \
M(10, GW_ATTACH, gw_attach, REQ, GATEWAY, ADMIND, OPEN, 0, "a gateway asks for its set-up") \
M(11, GW_CONFIG, gw_config, ANS, ADMIND, GATEWAY, OPEN, 0, "the set-up") \
M(12, AUTHENTICATE, authenticate, REQ, GATEWAY, ADMIND, OPEN, 0, "who is this?") \
M(13, IDENTITY, identity, ANS, ADMIND, GATEWAY, OPEN, 0, "a principal") \
M(14, CATALOGUE_GET, catalogue_get, REQ, GATEWAY, ADMIND, OPEN, 0, "asks for the tools of a permission set") \
M(15, CATALOGUE_ITEM, catalogue_item, PART, ADMIND, GATEWAY, OPEN, IPC_BLOB_MAX, "one tool, in list order") \
M(16, CATALOGUE_END, catalogue_end, ANS, ADMIND, GATEWAY, OPEN, 0, "the catalogue is whole: swap it in") \
M(17, CATALOGUE_CHANGED, catalogue_changed, REQ, ADMIND, GATEWAY, OPEN, 0, "cached catalogues are stale; answered by OK once dropped") \
M(18, AUTHORISE, authorise, REQ, GATEWAY, ADMIND, OPEN, IPC_BLOB_MAX, "one tools/call; answered by RUN_ID, RESULT, TASK_STATE, PENDING or REFUSED") \
M(19, RUN_ID, run_id, ANS, ADMIND, GATEWAY, OPEN, 0, "run it at the sandbox by this id, once") \
M(20, RESULT, result, ANS, ADMIND, GATEWAY, OPEN, RESULT_MAX, "a management tool's result") \
M(21, SESSION_END, session_end, REQ, GATEWAY, ADMIND, OPEN, 0, "a client deleted its session") \
M(22, SESSION_ENDED, session_ended, EVT, ADMIND, GATEWAY, OPEN, 0, "refuse this session id from now on") \
M(28, PENDING, pending, ANS, ADMIND, GATEWAY, OPEN, 0, "answers AUTHORISE of a call that waits for a person") \
M(29, DECIDED, decided, EVT, ADMIND, GATEWAY, OPEN, 0, "a person decided about a waiting call") \
M(36, GW_ACCESS, gw_access, EVT, ADMIND, GATEWAY, OPEN, RESULT_MAX, "what clients without a valid credential are told at this listener, and where credentials come in; sent after GW_CONFIG and at each change")

#define IPC_FIELDS_gw_attach(F, S)
#define IPC_FIELDS_gw_config(F, S) \
F(S, str, listener, "local or tunnel, by the socket it attached to") \
F(S, bytes, session_key, "32 bytes: MACs session tokens, conveys nothing") \
F(S, u64, revision, "the catalogue's revision")

#define IPC_FIELDS_authenticate(F, S) \
F(S, str, credential, "bearer token, assertion or ticket, or empty") \
F(S, u8, via, "enum credential_via") \
F(S, str, endpoint, "the endpoint that the request came to, or empty: /mcp") \
F(S, str, method, "of the HTTP request, if a signed token is to be compared with it; else empty") \
F(S, str, target, "its path and query, likewise") \
F(S, hash, body, "SHA-256 of its body, likewise")

#define IPC_FIELDS_identity(F, S) \
F(S, str, principal, "local, or a token's or person's name") \
F(S, str, permission_set, "catalogues are cached by it") \
F(S, u64, cache_ms, "may be remembered this long, at most 30 s") \
F(S, str, ticket, "the credential from here on, with VIA_TICKET: the token was good for one AUTHENTICATE; or empty") \
F(S, u64, left_ms, "its credential is over after this time, and with it its streams and waiting calls; 0: never") \
F(S, u8, unread, "lists that this token may not read, but one with the scopes of read_scope: mask of 1 << enum mcp_list") \
F(S, str, read_scope, "as REFUSED's scope, of tools:read; empty: no other token is needed, or none helps") \
F(S, str, call_scope, "likewise, of tools:call")

#define IPC_FIELDS_catalogue_get(F, S) F(S, str, permission_set, "as IDENTITY gave it")

#define IPC_FIELDS_catalogue_item(F, S) \
F(S, u8, list, "enum mcp_list") \
F(S, str, name, "exposed name") \
F(S, str, uri, "of a resource, or a template's; else empty") \
F(S, hash, version, "of what serves; zero for management tools") \
F(S, blob, json, "the MCP Tool, Prompt, Resource or ResourceTemplate object, schemas byte for byte as stored; {} of a stopped resource")

#define IPC_FIELDS_catalogue_end(F, S) \
F(S, u64, revision, "the revision just sent") \
F(S, u32, count, "items sent")

#define IPC_FIELDS_catalogue_changed(F, S) F(S, u64, revision, "the new revision") \
F(S, u8, lists, "mask of 1 << enum mcp_list: which lists changed")

#define IPC_FIELDS_authorise(F, S) \
F(S, str, credential, "bearer token, assertion or ticket, or empty") \
F(S, u8, via, "enum credential_via") \
F(S, str, endpoint, "as in AUTHENTICATE") \
F(S, u8, by_name, "1: mcpbox_call_tool asked for it") \
F(S, u8, method, "enum call_method") \
F(S, str, tool, "exposed name of what is called: params.name, or of the resource or template that params.uri names") \
F(S, str, protocol, "MCP revision of the request") \
F(S, str, client, "clientInfo name and version, untrusted, for the record") \
F(S, bytes, capabilities, "the client's capabilities object as JSON, at most 8 KiB") \
F(S, u32, declared, "mask of enum client_capability: the ones in it that we know") \
F(S, u8, task, "enum task_wish") \
F(S, id, approval, "zero, or the per-call approval that an earlier PENDING named") \
F(S, id, session, "the legacy session's random id, or zero: circuit breakers count by it") \
F(S, str, trace, "W3C traceparent of params._meta, or empty: for the record") \
F(S, id, alike, "digest of what the arguments say, however spelt (json_alike.h): circuit breakers count by it") \
F(S, blob, arguments, "the byte slice of params.arguments, or {}")

#define IPC_FIELDS_run_id(F, S) \
F(S, id, execution, "128 random bits") \
F(S, u64, timeout_ms, "wall-clock limit of the run; ask again after it plus a margin")

#define IPC_FIELDS_result(F, S) \
F(S, u8, is_error, "1: an isError result") \
F(S, u16, failure, "enum failure when is_error") \
F(S, str, fix, "what the reader should do about it, when is_error") \
F(S, blob, body, "the CallToolResult object as JSON, without _meta")

#define IPC_FIELDS_session_end(F, S) \
F(S, id, session, "its random id") \
F(S, u64, expires_ms, "Unix time in ms at which its token expires anyway")

#define IPC_FIELDS_session_ended(F, S) \
F(S, id, session, "its random id") \
F(S, u64, expires_ms, "forget it after this Unix time in ms")

#define IPC_FIELDS_pending(F, S) \
F(S, id, approval, "uuid of the approval request; goes back in the next AUTHORISE") \
F(S, u64, expires_ms, "Unix time in ms after which it counts as refused") \
F(S, u64, poll_ms, "ask again not before that")

#define IPC_FIELDS_decided(F, S) \
F(S, id, approval, "uuid of the approval request") \
F(S, u8, approved, "1: approved, 0: rejected or expired")

#define IPC_FIELDS_gw_access(F, S) \
F(S, u8, assertion, "1: an issuer of this listener has the header Cf-Access-Jwt-Assertion") \
F(S, u8, bound, "1: an issuer of this listener binds its tokens to one request") \
F(S, str, resource_metadata, "URL of the metadata for the challenge; empty: no issuer serves this listener") \
F(S, str, scope, "scopes for the challenge, a space between two") \
F(S, blob, metadata, "JSON of RFC 9728; empty: none, the two paths answer 404")
/* clang-format on */

#endif
