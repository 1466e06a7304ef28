/* The access document: the rules for signed tokens of issuers.
 * People set it at the vault, admind stores and applies it. */
#ifndef IPC_MESSAGES_ACCESS_H
#define IPC_MESSAGES_ACCESS_H

/* clang-format off */
#define IPC_MESSAGES_ACCESS(M) \
M(270, ACCESS_SET, access_set, REQ, WEB|CTL, VAULT, OPEN, ACCESS_DOCUMENT_MAX, "this document holds from now on; answered by ACCESS_STATE or REFUSED") \
M(271, ACCESS_STATE, access_state, ANS, VAULT, WEB|CTL, OPEN, 0, "the document that was stored") \
M(272, ACCESS_LOAD, access_load, REQ, VAULT, ADMIND, OPEN, 0, "the seal of the newest stored document") \
M(273, ACCESS_SEALED, access_sealed, ANS, ADMIND, VAULT, OPEN, 0, "it") \
M(274, ACCESS_STORE, access_store, REQ, VAULT, ADMIND, OPEN, ACCESS_DOCUMENT_MAX, "commit a document, if it is valid; answered by OK or REFUSED") \
M(275, ACCESS_CHECK, access_check, REQ, ADMIND, VAULT, OPEN, 0, "is this a seal of ours over this document, and none older than the newest that is known? answered by OK or REFUSED") \
M(276, ACCESS_REFRESH, access_refresh, REQ, WEB|CTL, ADMIND, OPEN, 0, "fetch the keys of issuers now; answered by ADMIN_JSON or REFUSED")

#define IPC_FIELDS_access_set(F, S) \
F(S, str, token, "login token of an administrator; empty from CTL") \
F(S, hash, seen, "SHA-256 of the document that the change was made from, as ACCESS_SEALED's; zero: there was none") \
F(S, blob, document, "JSON, as docs/ACCESS.md describes; empty is refused: {} turns signed tokens off")

#define IPC_FIELDS_access_state(F, S) \
F(S, u64, serial, "Unix time in us of the change, later than the one before") \
F(S, str, actor, "administrator's name, or root") \
F(S, hash, document, "SHA-256 of the document")

#define IPC_FIELDS_access_load(F, S)

#define IPC_FIELDS_access_sealed(F, S) \
F(S, bytes, seal, "as ACCESS_STORE brought it; empty: there is none") \
F(S, hash, document, "SHA-256 of the stored document, which people are shown; zero: there is none") \
F(S, u64, serial, "which the next one's must exceed: the greatest stored one that is at most a day ahead; 0: none")

#define IPC_FIELDS_access_store(F, S) \
F(S, u64, serial, "as in ACCESS_STATE") \
F(S, str, actor, "administrator's name, or root") \
F(S, bytes, seal, "admind/vault/seals/macs.h, purpose ACCESS") \
F(S, hash, over, "ACCESS_SEALED's document: if another is stored now, this one is refused") \
F(S, blob, document, "JSON")

#define IPC_FIELDS_access_check(F, S) \
F(S, hash, document, "SHA-256 of the document") \
F(S, bytes, seal, "as ACCESS_STORE brought it")

#define IPC_FIELDS_access_refresh(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL") \
F(S, str, issuer, "its name in the access document; empty: each one")
/* clang-format on */

#endif
