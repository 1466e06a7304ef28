/* Policies of review: requests of people to the vault, and of the vault to
 * admind. */
#ifndef IPC_MESSAGES_POLICY_H
#define IPC_MESSAGES_POLICY_H

/* clang-format off */
#define IPC_MESSAGES_POLICY(M) \
M(180, POLICY_SET, policy_set, REQ, WEB|CTL, VAULT, OPEN, 0, "how requests are reviewed from now on; answered by POLICY_STATE") \
M(181, POLICY_GET, policy_get, REQ, WEB|CTL, VAULT, OPEN, 0, "how are requests reviewed?") \
M(182, POLICY_STATE, policy_state, ANS, VAULT, WEB|CTL, OPEN, 0, "the policy as the vault applies it") \
M(183, POLICY_LOAD, policy_load, REQ, VAULT, ADMIND, OPEN, 0, "the newest stored policy") \
M(184, POLICY_SEALED, policy_sealed, ANS, ADMIND, VAULT, OPEN, 0, "it, sealed") \
M(185, POLICY_STORE, policy_store, REQ, VAULT, ADMIND, OPEN, 0, "commit a policy; answered by OK or REFUSED") \
M(186, APPROVE_AUTO, approve_auto, REQ, ADMIND, VAULT, OPEN, 0, "approve by the sealed policy, if it and the content allow that; answered by OK or REFUSED") \
M(187, HALF_APPROVED, half_approved, ANS, VAULT, WEB|CTL, OPEN, 0, "answers APPROVE: the first yes of two is kept") \
M(188, SEAL_VERIFY, seal_verify, REQ, WEB|CTL, VAULT, OPEN, IPC_BLOB_MAX, "is this the vault's seal over this pre-image?") \
M(189, SEAL_SAYS, seal_says, ANS, VAULT, WEB|CTL, OPEN, 0, "it is: who approved it, and when")

#define IPC_FIELDS_policy_set(F, S) \
F(S, str, token, "login token of an administrator; empty from CTL") \
F(S, u8, tool, "enum review_mode") \
F(S, u8, module, "enum review_mode") \
F(S, u8, network, "enum review_mode") \
F(S, u32, days, "an automatic mode ends after so many; 1 to 90") \
F(S, hash, seen, "POLICY_STATE's seal that the change was made from; zero: of no policy")

#define IPC_FIELDS_policy_get(F, S) F(S, str, token, "login token; empty from CTL")

#define IPC_FIELDS_policy_state(F, S) \
F(S, u8, tool, "enum review_mode") \
F(S, u8, module, "enum review_mode") \
F(S, u8, network, "enum review_mode") \
F(S, str, actor, "who set it, or empty") \
F(S, u64, since_us, "Unix time in us; 0: there is none, the default holds") \
F(S, u64, until_us, "end of its automatic modes, 0: it has none") \
F(S, hash, seal, "SHA-256 of the sealed policy, zero if there is none")

#define IPC_FIELDS_policy_load(F, S)

#define IPC_FIELDS_policy_sealed(F, S) \
F(S, bytes, seal, "as POLICY_STORE brought it; empty: there is none") \
F(S, u64, serial, "of the newest stored policy; 0: there is none")

#define IPC_FIELDS_policy_store(F, S) \
F(S, u8, tool, "enum review_mode") \
F(S, u8, module, "enum review_mode") \
F(S, u8, network, "enum review_mode") \
F(S, str, actor, "administrator's name, or root") \
F(S, u64, serial, "Unix time in us, later than the one before") \
F(S, u64, until_us, "as in POLICY_STATE") \
F(S, u64, over, "POLICY_SEALED's serial: if another is stored now, this one is refused") \
F(S, bytes, seal, "the sealed policy")

#define IPC_FIELDS_approve_auto(F, S) F(S, id, approval, "uuid of the approval request")

#define IPC_FIELDS_half_approved(F, S)

#define IPC_FIELDS_seal_verify(F, S) \
F(S, str, token, "login token; empty from CTL") \
F(S, u32, seal_len, "bytes of the seal at the front of the blob") \
F(S, blob, seal_preimage, "seal, then pre-image")

#define IPC_FIELDS_seal_says(F, S) \
F(S, id, about, "the request that was approved") \
F(S, str, approver, "administrator, root, or policy:NAME") \
F(S, str, first, "who said the first yes of two, or empty") \
F(S, u64, time_us, "Unix time in us")
/* clang-format on */

#endif
