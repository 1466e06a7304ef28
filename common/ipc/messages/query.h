/*
 * People at admind: lists and objects, the content of approval requests, and
 * the changes that are older than ADMIN_ACTION.
 */
#ifndef IPC_MESSAGES_QUERY_H
#define IPC_MESSAGES_QUERY_H

/* clang-format off */
#define IPC_MESSAGES_QUERY(M) \
M(100, ADMIN_QUERY, admin_query, REQ, WEB|CTL, ADMIND, OPEN, 0, "read one list or one object") \
M(101, ADMIN_JSON, admin_json, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "it, as JSON") \
M(102, APPROVAL_GET, approval_get, REQ, WEB|CTL, ADMIND, OPEN, 0, "the whole content of an approval request") \
M(103, APPROVAL_CONTENT, approval_content, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "its hash pre-image and circumstances") \
M(104, LIMITS_SET, limits_set, REQ, WEB|CTL, ADMIND, OPEN, 0, "replace a server's limits; answered by ADMIN_JSON with what it then has") \
M(105, MODULE_SET, module_set, REQ, CTL, ADMIND, OPEN, 0, "record, withdraw, grant or revoke a module; answered by OK or REFUSED") \
M(106, EXPOSE_SET, expose_set, REQ, WEB|CTL, ADMIND, OPEN, 0, "how a server's new versions are named for clients; answered by OK or REFUSED")

#define IPC_FIELDS_admin_query(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL") \
F(S, str, what, "servers, tools, approvals, audit, executions, modules, settings, status; or server, tool, execution, limits with an id") \
F(S, str, id, "uuid text (limits: or the server's name), or empty for a list") \
F(S, str, filter_kind, "approvals: tool, module, network, call; tools: server uuid") \
F(S, str, filter_state, "approvals: pending, approved, rejected, superseded, expired") \
F(S, bytes, filters, "TLV: enum admin_filter, text; each at most once (common/admin/admin_filter.h)") \
F(S, str, cursor, "next_cursor of the page before, or empty") \
F(S, u32, limit, "1 to 200")

#define IPC_FIELDS_admin_json(F, S) F(S, blob, json, "REST object or {items, next_cursor}")

#define IPC_FIELDS_approval_get(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL") \
F(S, u8, base, "1: not the request's content, but the version that serves instead of it") \
F(S, id, approval, "uuid")

#define IPC_FIELDS_approval_content(F, S) \
F(S, str, kind, "tool, module, network or call") \
F(S, str, state, "pending or what it became") \
F(S, str, circumstances, "JSON members without braces: server, tool, version, requested_at, requested_by, notes") \
F(S, bytes, seal, "the vault's, of what was approved; else empty") \
F(S, blob, preimage, "version hash pre-image, kind call: common/request/callreq.h, module and network: common/request/grantreq.h; the reader hashes it itself; empty: there is no base")

#define IPC_FIELDS_limits_set(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, id, server, "uuid") \
F(S, hash, seen, "SHA-256 of the JSON that the change was made from: another one now is hash_mismatch") \
F(S, bytes, limits, "TLV: enum limit + 1, u64; what is absent is not set")

#define IPC_FIELDS_module_set(F, S) \
F(S, u8, action, "1 record, 2 withdraw, 3 grant, 4 revoke") \
F(S, str, tool, "grant, revoke: exposed name or uuid") \
F(S, str, name, "as PyPI spells it; kept normalised") \
F(S, str, version, "empty for grant: the newest; for revoke: all") \
F(S, hash, digest, "record: of the entry in the module store") \
F(S, u64, files, "record: files in it") \
F(S, u64, size, "record: bytes of them")

#define IPC_FIELDS_expose_set(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, str, server, "uuid text or name") \
F(S, str, expose, "prefixed: server__name; bare: the name alone")
/* clang-format on */

#endif
