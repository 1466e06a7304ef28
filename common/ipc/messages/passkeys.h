/*
 * Passkeys (WebAuthn): a person's own, at the vault; and the sealed sets that
 * admind stores (docs/decisions/0104).
 */
#ifndef IPC_MESSAGES_PASSKEYS_H
#define IPC_MESSAGES_PASSKEYS_H

/* clang-format off */
#define IPC_MESSAGES_PASSKEYS(M) \
M(290, PASSKEY_CHALLENGE, passkey_challenge, REQ, WEB, VAULT, OPEN, 0, "begin to register or to use a passkey") \
M(291, PASSKEY_OPTIONS, passkey_options, ANS, VAULT, WEB, OPEN, IPC_BLOB_MAX, "what the browser is to be asked") \
M(292, PASSKEY_REGISTER, passkey_register, REQ, WEB, VAULT, OPEN, 0, "a new passkey; answered by OK or REFUSED") \
M(293, PASSKEY_ASSERT, passkey_assert, REQ, WEB, VAULT, OPEN, 0, "a passkey was used; answered by SESSION_INFO or REFUSED") \
M(294, PASSKEYS_GET, passkeys_get, REQ, WEB|CTL, VAULT, OPEN, 0, "a person's passkeys") \
M(295, PASSKEYS, passkeys, ANS, VAULT, WEB|CTL, OPEN, IPC_BLOB_MAX, "the passkeys") \
M(296, PASSKEY_REMOVE, passkey_remove, REQ, WEB|CTL, VAULT, OPEN, 0, "take a passkey away; answered by OK or REFUSED") \
M(297, PASSKEYS_STORE, passkeys_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "commit a person's set; answered by OK or REFUSED") \
M(298, PASSKEY_CODE_MAKE, passkey_code_make, REQ, CTL, VAULT, OPEN, 0, "a code with which a person of an issuer may register a first passkey; answered by DEVICE_CODE")

#define IPC_FIELDS_passkey_challenge(F, S) \
F(S, str, token, "login token; with kind login one that waits for its passkey") \
F(S, str, kind, "register, login or proof")

#define IPC_FIELDS_passkey_options(F, S) \
F(S, blob, json, "{publicKey}: creation or request options in WebAuthn's JSON form")

#define IPC_FIELDS_passkey_register(F, S) \
F(S, str, token, "login token") \
F(S, str, code, "root's code for a first passkey, or empty: the login has a fresh proof") \
F(S, str, label, "the person's name for it, 1 to 64 bytes") \
F(S, bytes, client_data, "clientDataJSON") \
F(S, bytes, attestation, "attestationObject")

#define IPC_FIELDS_passkey_assert(F, S) \
F(S, str, token, "login token") \
F(S, str, kind, "login or proof") \
F(S, bytes, credential, "the passkey's id") \
F(S, bytes, client_data, "clientDataJSON") \
F(S, bytes, auth_data, "authenticatorData") \
F(S, bytes, signature, "over authenticatorData and the SHA-256 of clientDataJSON") \
F(S, bytes, handle, "userHandle, or empty")

#define IPC_FIELDS_passkeys_get(F, S) \
F(S, str, token, "login token; empty from CTL") \
F(S, str, username, "whose, from CTL; empty with a token: one's own")

#define IPC_FIELDS_passkeys(F, S) \
F(S, blob, json, "{items, next_cursor}: id, label, algorithm, role, copied, created_at, used_at")

#define IPC_FIELDS_passkey_remove(F, S) \
F(S, str, token, "login token; empty from CTL") \
F(S, str, username, "whose, from CTL; empty with a token: one's own") \
F(S, str, credential, "id in base64url; empty from CTL: all")

#define IPC_FIELDS_passkeys_store(F, S) \
F(S, str, change, "register, remove, login, proof or cloned") \
F(S, str, username, "the person") \
F(S, str, role, "the administrator's, for which the verifier is sealed; empty without one") \
F(S, str, actor, "who asked") \
F(S, str, detail, "JSON object for the audit log, written by the vault") \
F(S, bytes, verifier, "the administrator's, sealed anew; empty: it stays as it is") \
F(S, blob, passkeys, "the set, sealed by the vault; empty: the person has none any more")

#define IPC_FIELDS_passkey_code_make(F, S) \
F(S, str, username, "NAME@ISSUER") \
F(S, str, role, "the most that the passkey conveys")
/* clang-format on */

#endif
