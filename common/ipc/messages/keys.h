/*
 * A change of the master key. mcpboxctl drives the vault, which seals admind's
 * stored values again with the new key.
 */
#ifndef IPC_MESSAGES_KEYS_H
#define IPC_MESSAGES_KEYS_H

/* clang-format off */
#define IPC_MESSAGES_KEYS(M) \
M(190, KEY_STATUS, key_status, REQ, CTL, VAULT, OPEN, 0, "which master keys are valid?") \
M(191, KEY_STATE, key_state, ANS, VAULT, CTL, OPEN, 0, "answers KEY_STATUS, KEY_NEXT, KEY_STEP and KEY_END") \
M(192, KEY_NEXT, key_next, REQ, CTL, VAULT, OPEN, 0, "begin a rotation: this key seals from now on, the present one still opens") \
M(193, KEY_STEP, key_step, REQ, CTL, VAULT, OPEN, 0, "renew, or only open, the next values that rest under a master key") \
M(194, KEY_END, key_end, REQ, CTL, VAULT, OPEN, 0, "end the rotation: forget the older key") \
M(195, RENEW_GET, renew_get, REQ, VAULT, ADMIND, OPEN, 0, "values that rest under a master key") \
M(196, RENEW_ROWS, renew_rows, ANS, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "they") \
M(197, RENEW_STORE, renew_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "put these in place of those; answered by OK or REFUSED") \
M(198, RENEW_PHASE, renew_phase, REQ, VAULT, ADMIND, OPEN, 0, "note that a rotation begins or ends; answered by OK or REFUSED")

#define IPC_FIELDS_key_status(F, S)

#define IPC_FIELDS_key_state(F, S) \
F(S, bytes, key, "8 bytes: id of the key that seals") \
F(S, bytes, older, "id of the other one that opens, or empty") \
F(S, u8, over, "1: that one is forgotten in a moment, the rotation has ended") \
F(S, u8, credential, "1: key_file was not read, a credential was") \
F(S, str, after, "of KEY_STEP: where the next one goes on; empty: the pass is over") \
F(S, u32, seen, "of KEY_STEP: values opened or not") \
F(S, u32, renewed, "of KEY_STEP: values now under the new key") \
F(S, u32, unreadable, "of KEY_STEP: values that no valid key opens") \
F(S, str, names, "the first of those, a line each")

#define IPC_FIELDS_key_next(F, S) F(S, fd, file, "the new key's file, open for reading")

#define IPC_FIELDS_key_step(F, S) \
F(S, u8, renew, "1: renew what is not under the newest key; 0: only open all") \
F(S, str, after, "KEY_STATE's, or empty to begin a pass") \
F(S, u32, limit, "values, 1 to RENEW_MAX")

#define IPC_FIELDS_key_end(F, S) F(S, u32, leave, "so many unreadable values may stay behind")

#define IPC_FIELDS_renew_get(F, S) \
F(S, str, kind, "secret, verifier, version ...: of the view `resting`") \
F(S, str, after, "id of the last one seen, or empty") \
F(S, bytes, key, "id of the key whose values are left out; empty: none is") \
F(S, u32, limit, "1 to RENEW_MAX")

#define IPC_FIELDS_renew_rows(F, S) F(S, blob, rows, "TLV, enum renew_tag, in order of ids")

#define IPC_FIELDS_renew_store(F, S) \
F(S, str, kind, "as asked") \
F(S, blob, rows, "TLV: ID, VALUE, RENEWED of each")

#define IPC_FIELDS_renew_phase(F, S) \
F(S, u8, end, "0: a rotation begins; 1: it ends") \
F(S, bytes, key, "8 bytes: the key that seals") \
F(S, u32, leave, "so many values may stay behind")
/* clang-format on */

#endif
