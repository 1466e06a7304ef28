/* Changes that administrators make by admind; exports and imports. */
#ifndef IPC_MESSAGES_ACTIONS_H
#define IPC_MESSAGES_ACTIONS_H

/* clang-format off */
#define IPC_MESSAGES_ACTIONS(M) \
M(230, ADMIN_ACTION, admin_action, REQ, WEB|CTL, ADMIND, OPEN, ARGUMENTS_MAX, "change one thing, by one SQL function; answered by ADMIN_JSON or REFUSED") \
M(231, EXPORT_SIGN, export_sign, REQ, ADMIND|CTL, VAULT, OPEN, 0, "seal the hash of an export") \
M(232, EXPORT_SEAL, export_seal, ANS, VAULT, ADMIND|CTL, OPEN, 0, "the seal") \
M(233, EXPORT_CHECK, export_check, REQ, ADMIND, VAULT, OPEN, 0, "is this a seal of ours over this hash? answered by OK or REFUSED") \
M(234, EXPORT, export, REQ, WEB|CTL, ADMIND, OPEN, 0, "make an export; answered by ADMIN_JSON, its head") \
M(235, IMPORT, import, REQ, WEB|CTL, ADMIND, OPEN, 0, "make drafts of what was put, all or none; answered by ADMIN_JSON or REFUSED")

#define IPC_FIELDS_admin_action(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url, or key: and that of a script's key; empty from CTL") \
F(S, str, action, "name of a row of common/admin/admin_action.def") \
F(S, str, id, "what the path names: one id, or two with / between; or empty") \
F(S, str, key, "Idempotency-Key, or empty: the same key, action and body answer as the first time") \
F(S, hash, seen, "If-Match: hash of what the change was made from; zero: none given") \
F(S, blob, body, "JSON object, closed members, as the sender checked them")

#define IPC_FIELDS_export_sign(F, S) F(S, hash, sha256, "of the text")

#define IPC_FIELDS_export_seal(F, S) F(S, bytes, seal, "admind/vault/seals/macs.h, purpose EXPORT")

#define IPC_FIELDS_export_check(F, S) \
F(S, hash, sha256, "of the text") \
F(S, bytes, seal, "as EXPORT_SEAL gave it")

#define IPC_FIELDS_export(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url, or key: and that of a script's key; empty from CTL") \
F(S, str, servers, "lines of names, or empty: all")

#define IPC_FIELDS_import(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, id, import, "uuid of what import_begin made and import_put filled") \
F(S, bytes, seal, "as the export's head has it")
/* clang-format on */

#endif
