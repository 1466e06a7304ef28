/*
 * Requests of people to the vault, by admind-http and mcpboxctl: logins,
 * decisions, secrets.
 */
#ifndef IPC_MESSAGES_LOGIN_H
#define IPC_MESSAGES_LOGIN_H

/* clang-format off */
#define IPC_MESSAGES_LOGIN(M) \
M(80, LOGIN, login, REQ, WEB, VAULT, OPEN, 0, "verify a password") \
M(81, LOGIN_OK, login_ok, ANS, VAULT, WEB, OPEN, 0, "a new login") \
M(82, LOGOUT, logout, REQ, WEB, VAULT, OPEN, 0, "end a login; answered by OK") \
M(83, WHOAMI, whoami, REQ, WEB, VAULT, OPEN, 0, "is this token a live login?") \
M(84, APPROVE, approve, REQ, WEB|CTL, VAULT, OPEN, 0, "approve what has this hash; answered by OK or REFUSED") \
M(85, REJECT, reject, REQ, WEB|CTL, VAULT, OPEN, 0, "reject a request; answered by OK or REFUSED") \
M(86, PASSWORD, password, REQ, WEB, VAULT, OPEN, 0, "change one's own password; ends the other logins") \
M(87, SETUP, setup, REQ, CTL, VAULT, OPEN, 0, "make the first administrator; answered by OK or REFUSED") \
M(88, SECRET_SET, secret_set, REQ, WEB|CTL, VAULT, OPEN, 0, "set a secret's value; answered by OK or REFUSED") \
M(285, PROVE, prove, REQ, WEB, VAULT, OPEN, 0, "the login's person is there: a password once more; answered by OK or REFUSED")

#define IPC_FIELDS_login(F, S) \
F(S, str, username, "as typed") \
F(S, str, password, "as typed") \
F(S, str, source, "peer address, for the audit log") \
F(S, str, device, "as an earlier LOGIN_OK or a DEVICE_CODE gave it, or empty") \
F(S, str, agent, "what the browser calls itself, untrusted: for the list of logins")

#define IPC_FIELDS_login_ok(F, S) \
F(S, str, token, "LOGIN_TEXT characters of base64url; the vault keeps its SHA-256") \
F(S, str, username, "as stored") \
F(S, str, role, "its role") \
F(S, u64, expires_ms, "Unix time in ms after which it is over in any case") \
F(S, u64, idle_ms, "Unix time in ms at which it is over unless it is used before") \
F(S, str, device, "what makes this browser known at its next LOGIN") \
F(S, u8, passkey, "1: the login waits for its person's passkey, PASSKEY_ASSERT")

#define IPC_FIELDS_logout(F, S) F(S, str, token, "login token")

#define IPC_FIELDS_whoami(F, S) \
F(S, str, token, "login token") \
F(S, u8, pending, "1: a login that waits for its passkey is one, too")

#define IPC_FIELDS_approve(F, S) \
F(S, str, token, "login token; empty from CTL, which is uid 0 by SO_PEERCRED") \
F(S, id, approval, "uuid of the approval request") \
F(S, hash, reviewed, "hash of what was shown, computed by the one that showed it")

#define IPC_FIELDS_reject(F, S) \
F(S, str, token, "login token; empty from CTL") \
F(S, id, approval, "uuid of the approval request") \
F(S, str, reason, "for the author")

#define IPC_FIELDS_password(F, S) \
F(S, str, token, "login token") \
F(S, str, old, "present password") \
F(S, str, new, "12 to 128 characters")

#define IPC_FIELDS_setup(F, S) \
F(S, str, username, "the first administrator") \
F(S, str, password, "12 to 128 characters")

#define IPC_FIELDS_prove(F, S) \
F(S, str, token, "login token") \
F(S, str, password, "own password of the login's person") \
F(S, str, source, "peer address, for the audit log")

#define IPC_FIELDS_secret_set(F, S) \
F(S, str, token, "login token of an administrator; empty from CTL") \
F(S, str, server, "server's name") \
F(S, str, key, "UPPER_SNAKE") \
F(S, bytes, value, "1 to SECRET_VALUE_MAX bytes")
/* clang-format on */

#endif
