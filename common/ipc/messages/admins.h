/*
 * Administrators and their logins at the vault, and the proof of the audit
 * chain.
 */
#ifndef IPC_MESSAGES_ADMINS_H
#define IPC_MESSAGES_ADMINS_H

/* clang-format off */
#define IPC_MESSAGES_ADMINS(M) \
M(200, ADMIN_CHANGE, admin_change, REQ, WEB|CTL, VAULT, OPEN, 0, "make, change or remove an administrator; answered by OK or REFUSED") \
M(201, DEVICE_MAKE, device_make, REQ, CTL, VAULT, OPEN, 0, "a code with which a person may log in from a new browser while others guess at the name") \
M(202, DEVICE_CODE, device_code, ANS, VAULT, CTL, OPEN, 0, "that code") \
M(203, LOGINS_GET, logins_get, REQ, WEB|CTL, VAULT, OPEN, 0, "who is logged in") \
M(204, LOGINS, logins, ANS, VAULT, WEB|CTL, OPEN, IPC_BLOB_MAX, "the logins") \
M(205, LOGIN_END, login_end, REQ, WEB|CTL, VAULT, OPEN, 0, "end one login, or all of an administrator; answered by OK or REFUSED") \
M(206, AUDIT_READ, audit_read, REQ, CTL, ADMIND, OPEN, 0, "rows of the audit chain as they were hashed") \
M(207, AUDIT_ROWS, audit_rows, ANS, ADMIND, CTL, OPEN, IPC_BLOB_MAX, "those rows, oldest first") \
M(208, AUDIT_CHECK, audit_check, REQ, CTL, VAULT, OPEN, 0, "are these signatures of the chain's heads ours?") \
M(209, AUDIT_CHECKED, audit_checked, ANS, VAULT, CTL, OPEN, 0, "which are, and the newest that was signed") \
M(215, AUDIT_VERIFIED, audit_verified, REQ, CTL, ADMIND, OPEN, 0, "mcpboxctl has verified the whole chain: keep the result; answered by OK or REFUSED")

#define IPC_FIELDS_admin_change(F, S) \
F(S, str, token, "login token of an administrator; empty from CTL") \
F(S, str, password, "own password of who asks, beside the token; empty from CTL") \
F(S, str, change, "create, password, role or delete") \
F(S, str, username, "the administrator it is about") \
F(S, str, role, "create, role: administrator, reviewer or viewer") \
F(S, str, new, "create, password: 12 to 128 characters")

#define IPC_FIELDS_device_make(F, S) F(S, str, username, "whom it is for")

#define IPC_FIELDS_device_code(F, S) \
F(S, str, device, "LOGIN's device, or PASSKEY_REGISTER's code, for a short time") \
F(S, u64, expires_ms, "Unix time in ms")

#define IPC_FIELDS_logins_get(F, S) \
F(S, str, token, "login token; empty from CTL") \
F(S, str, username, "whose; empty: all. Only an administrator sees others'")

#define IPC_FIELDS_logins(F, S) \
F(S, blob, json, "{items, next_cursor}: id, username, role, source, agent, created_at, seen_at, expires_at, idle_expires_at, current")

#define IPC_FIELDS_login_end(F, S) \
F(S, str, token, "login token; empty from CTL") \
F(S, id, login, "as LOGINS names it; zero: all of the user") \
F(S, str, username, "with a zero id: whose. Only an administrator ends others'")

#define IPC_FIELDS_audit_read(F, S) \
F(S, u64, after, "number of the last row already read, from 0") \
F(S, u32, limit, "rows at most")

#define IPC_FIELDS_audit_rows(F, S) \
F(S, u64, seq, "number of the head") \
F(S, hash, head, "its hash") \
F(S, u64, anchored, "number of the newest row that has an anchor in the database") \
F(S, u32, count, "rows in the blob") \
F(S, blob, rows, "common/crypto/audit_row.h: each row, and the anchors stored with it")

#define IPC_FIELDS_audit_check(F, S) \
F(S, bytes, anchors, "72 bytes each: u64 row number, 32 bytes head, 32 bytes signature")

#define IPC_FIELDS_audit_verified(F, S) \
F(S, u64, rows, "number of the last row") \
F(S, u64, anchors, "stored anchors that were read") \
F(S, u64, anchored, "number of the newest row that has one") \
F(S, u64, problems, "0: the chain holds") \
F(S, u64, lines, "lines of the journal that it was compared with")

#define IPC_FIELDS_audit_checked(F, S) \
F(S, bytes, valid, "one byte an anchor, in order: 1 it is ours, 0 it is not") \
F(S, u64, seq, "the newest row this process signed; 0: none since it started") \
F(S, hash, head, "its hash")
/* clang-format on */

#endif
