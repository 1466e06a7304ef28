/*
 * Requests of people to admind: lists and objects, and the content of approval
 * requests.
 */
#ifndef IPC_MESSAGES_QUERY_H
#define IPC_MESSAGES_QUERY_H

/* clang-format off */
#define IPC_MESSAGES_QUERY(M) \
M(100, ADMIN_QUERY, admin_query, REQ, WEB|CTL, ADMIND, OPEN, 0, "read one list or one object") \
M(101, ADMIN_JSON, admin_json, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "it, as JSON") \
M(102, APPROVAL_GET, approval_get, REQ, WEB|CTL, ADMIND, OPEN, 0, "the whole content of an approval request") \
M(103, APPROVAL_CONTENT, approval_content, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "its hash pre-image and circumstances")

#define IPC_FIELDS_admin_query(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url, or key: and that of a script's key; empty from CTL") \
F(S, str, what, "servers, tools, approvals, audit, executions, modules, settings, status; or server, tool, execution, limits with an id") \
F(S, str, id, "uuid text (limits: or the server's name), or empty for a list") \
F(S, str, filter_kind, "approvals: tool, module, network, call; tools: server uuid") \
F(S, str, filter_state, "approvals: pending, approved, rejected, superseded, expired") \
F(S, bytes, filters, "TLV: enum admin_filter, text; each at most once (common/admin/admin_filter.h)") \
F(S, str, cursor, "next_cursor of the page before, or empty") \
F(S, u32, limit, "1 to 200")

#define IPC_FIELDS_admin_json(F, S) F(S, blob, json, "REST object or {items, next_cursor}")

#define IPC_FIELDS_approval_get(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url, or key: and that of a script's key; empty from CTL") \
F(S, u8, base, "1: not the request's content, but the version that serves instead of it") \
F(S, id, approval, "uuid")

#define IPC_FIELDS_approval_content(F, S) \
F(S, str, kind, "tool, module, network or call") \
F(S, str, state, "pending or what it became") \
F(S, str, circumstances, "JSON members without braces: server, tool, version, requested_at, requested_by, notes") \
F(S, bytes, seal, "the vault's, of what was approved; else empty") \
F(S, blob, preimage, "version hash pre-image, kind call: common/request/callreq.h, module and network: common/request/grantreq.h; the reader hashes it itself; empty: there is no base")
/* clang-format on */

#endif
