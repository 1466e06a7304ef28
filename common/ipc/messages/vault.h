/*
 * Messages between the vault and admind or sandboxd. They seal contexts, store
 * and load values, and give out keys.
 */
#ifndef IPC_MESSAGES_VAULT_H
#define IPC_MESSAGES_VAULT_H

/* clang-format off */
#define IPC_MESSAGES_VAULT(M) \
M(60, SEAL_CONTEXT, seal_context, REQ, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "seal an execution context for a sandbox's epoch") \
M(61, SEALED, sealed, ANS, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "the sealed context") \
M(62, CONTENT_GET, content_get, REQ, VAULT, ADMIND, OPEN, 0, "the full content behind an approval request") \
M(63, CONTENT, content, ANS, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "its hash pre-image") \
M(64, DECISION_STORE, decision_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "commit a decision; answered by OK or REFUSED") \
M(65, SESSION_LOOKUP, session_lookup, REQ, ADMIND, VAULT, OPEN, 0, "is this a live login?") \
M(66, SESSION_INFO, session_info, ANS, VAULT, ADMIND|WEB, OPEN, 0, "a live login") \
M(67, ADMIN_LOOKUP, admin_lookup, REQ, VAULT, ADMIND, OPEN, 0, "the stored verifier of an administrator") \
M(68, ADMIN_RECORD, admin_record, ANS, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "the verifier; empty for an unknown user") \
M(69, ADMIN_STORE, admin_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "commit a verifier; answered by OK or REFUSED") \
M(70, SECRET_STORE, secret_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "commit an encrypted secret; answered by OK or REFUSED") \
M(71, AUDIT_SIGN, audit_sign, REQ, ADMIND, VAULT, OPEN, 0, "sign the head of the audit chain") \
M(72, AUDIT_SIGNATURE, audit_signature, ANS, VAULT, ADMIND, OPEN, 0, "the signature") \
M(73, AUDIT_EVENT, audit_event, REQ, VAULT, ADMIND, OPEN, 0, "write a login, log-out or refusal to the audit log; answered by OK") \
M(74, SESSION_KEY_GET, session_key_get, REQ, ADMIND, VAULT, OPEN, 0, "the key that MACs MCP session tokens; conveys nothing") \
M(75, SESSION_KEY, session_key, ANS, VAULT, ADMIND, OPEN, 0, "that key") \
M(76, CONTEXT_KEY_GET, context_key_get, REQ, SANDBOXD, VAULT, OPEN, 0, "a fresh context key for this sandbox's epoch") \
M(77, CONTEXT_KEY, context_key, ANS, VAULT, SANDBOXD, OPEN, 0, "that key; earlier ones of this epoch end")

#define IPC_FIELDS_seal_context(F, S) \
F(S, id, execution, "the call") \
F(S, id, epoch, "sandbox epoch it is for") \
F(S, u8, listener, "enum listener: who may RUN it") \
F(S, u8, kind, "enum context_kind; only TOOL carries secrets and needs a seal") \
F(S, blob, material, "TLV, enum context_tag: pre-image, seal, secrets, limits, intent, arguments digest")

#define IPC_FIELDS_sealed(F, S) F(S, blob, context, "what HELD carries")

#define IPC_FIELDS_content_get(F, S) F(S, id, approval, "uuid of the approval request")

#define IPC_FIELDS_content(F, S) \
F(S, str, kind, "tool, module, network or call") \
F(S, str, state, "pending or what it became") \
F(S, bytes, policy, "the newest sealed policy of review, or empty") \
F(S, bytes, first, "the sealed first yes of two, or empty") \
F(S, blob, preimage, "version hash pre-image; kind call: common/request/callreq.h, module and network: common/request/grantreq.h")

#define IPC_FIELDS_decision_store(F, S) \
F(S, id, approval, "uuid of the approval request") \
F(S, u8, approved, "1 approve, 0 reject, 2 the first yes of two") \
F(S, hash, content, "hash of what was reviewed; zero for a rejection") \
F(S, str, actor, "administrator's name, or root") \
F(S, u64, time_us, "Unix time in us") \
F(S, str, reason, "of a rejection") \
F(S, blob, seal, "the vault's seal; empty for a rejection")

#define IPC_FIELDS_session_lookup(F, S) F(S, hash, token, "SHA-256 of the login token")

#define IPC_FIELDS_session_info(F, S) \
F(S, str, username, "administrator") \
F(S, str, role, "administrator, reviewer or viewer") \
F(S, u64, expires_ms, "Unix time in ms after which it is over in any case") \
F(S, u64, idle_ms, "Unix time in ms at which it is over unless it is used before") \
F(S, u64, proof_until_ms, "Unix time in ms until which the last proof is fresh; 0: there is no fresh one")

#define IPC_FIELDS_admin_lookup(F, S) F(S, str, username, "as typed")

#define IPC_FIELDS_admin_record(F, S) \
F(S, str, role, "of the user, or empty") \
F(S, bytes, passkeys, "the person's set, sealed by the vault; empty: none is stored") \
F(S, blob, verifier, "sealed by the vault; empty for an unknown user")

#define IPC_FIELDS_admin_store(F, S) \
F(S, str, change, "setup (only if there is none), create, own_password, password, role or delete") \
F(S, str, username, "the administrator") \
F(S, str, role, "its role; empty with delete") \
F(S, str, actor, "who asked") \
F(S, blob, verifier, "sealed by the vault; empty with delete")

#define IPC_FIELDS_secret_store(F, S) \
F(S, str, server, "server's name") \
F(S, str, key, "secret's name") \
F(S, str, actor, "who asked") \
F(S, blob, value, "stored form: format, key id, nonce, ciphertext, tag")

#define IPC_FIELDS_audit_sign(F, S) \
F(S, u64, seq, "row number of the head") \
F(S, hash, head, "its chain hash")

#define IPC_FIELDS_audit_signature(F, S) \
F(S, hash, signature, "HMAC-SHA256 by the audit key") \
F(S, bytes, key, "8 bytes: id of the master key that the audit key is of")

#define IPC_FIELDS_audit_event(F, S) \
F(S, str, actor, "who") \
F(S, str, action, "login, login_failed, logout, password_change, approve_refused") \
F(S, str, subject, "on what") \
F(S, str, detail, "JSON object, written by the vault")

#define IPC_FIELDS_session_key_get(F, S)

#define IPC_FIELDS_session_key(F, S) F(S, bytes, key, "32 bytes")

#define IPC_FIELDS_context_key_get(F, S) F(S, id, epoch, "the sandbox's epoch, also its HELLO's")

#define IPC_FIELDS_context_key(F, S) F(S, bytes, key, "32 bytes")
/* clang-format on */

#endif
