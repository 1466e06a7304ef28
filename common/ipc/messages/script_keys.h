/* Keys of scripts for REST: admind makes and judges them. */
#ifndef IPC_MESSAGES_SCRIPT_KEYS_H
#define IPC_MESSAGES_SCRIPT_KEYS_H

/* clang-format off */
#define IPC_MESSAGES_SCRIPT_KEYS(M) \
M(310, SCRIPT_KEY_CREATE, script_key_create, REQ, WEB|CTL, ADMIND, OPEN, 0, "make a key; answered by SCRIPT_KEY_CREATED or REFUSED") \
M(311, SCRIPT_KEY_CREATED, script_key_created, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "a new key, said this once") \
M(312, SCRIPT_KEY_CHECK, script_key_check, REQ, WEB, ADMIND, OPEN, 0, "may this key be used so now? answered by OK or REFUSED")

#define IPC_FIELDS_script_key_create(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, str, name, "its actor will be key:NAME; no two keys ever have one") \
F(S, str, scopes, "read, metrics, operate, export; one a line") \
F(S, u32, days, "of its life, 1 to 365")

#define IPC_FIELDS_script_key_created(F, S) \
F(S, str, secret, "the key itself, of which only the SHA-256 is kept") \
F(S, blob, json, "the key as REST shows it")

#define IPC_FIELDS_script_key_check(F, S) \
F(S, str, token, "key: and the SHA-256 of a key in base64url") \
F(S, str, scope, "that it is to have")
/* clang-format on */

#endif
