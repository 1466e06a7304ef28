/* API tokens: admind makes and ends them, then gatewayd forgets them. */
#ifndef IPC_MESSAGES_TOKENS_H
#define IPC_MESSAGES_TOKENS_H

/* clang-format off */
#define IPC_MESSAGES_TOKENS(M) \
M(225, TOKEN_CREATE, token_create, REQ, WEB|CTL, ADMIND, OPEN, 0, "make an API token; answered by TOKEN_CREATED or REFUSED") \
M(226, TOKEN_CREATED, token_created, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "a new token, said this once") \
M(227, TOKEN_REVOKE, token_revoke, REQ, WEB|CTL, ADMIND, OPEN, 0, "end a token; answered by ADMIN_JSON once every connected gateway dropped it") \
M(228, CREDENTIAL_ENDED, credential_ended, REQ, ADMIND, GATEWAY, OPEN, 0, "a credential is good no more: drop what is held for it; answered by OK once dropped")

#define IPC_FIELDS_token_create(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, str, name, "its principal will be token:NAME; no two tokens ever have one") \
F(S, str, scopes, "tools:read, tools:call, manage, manage:edit; one a line") \
F(S, str, listeners, "local, tunnel; one a line") \
F(S, str, allow, "patterns of names, one a line") \
F(S, str, deny, "likewise; these win") \
F(S, u64, expires_ms, "Unix time in ms; 0: never") \
F(S, str, set, "name of a permission set of the access document, in place of scopes, allow and deny, which are empty then; or empty")

#define IPC_FIELDS_token_created(F, S) \
F(S, str, secret, "the token itself, of which only the SHA-256 is kept") \
F(S, blob, json, "the token as REST shows it")

#define IPC_FIELDS_token_revoke(F, S) \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, str, which, "uuid text or name") \
F(S, str, reason, "for the record, or empty")

#define IPC_FIELDS_credential_ended(F, S) \
F(S, hash, credential, "credential_hash() of it; zero: every one of the principal's") \
F(S, str, principal, "whose it was; empty: only its time is over, so its streams and waiting calls end, and calls under way go on")
/* clang-format on */

#endif
