/* Administrators that sign in by an issuer (docs/decisions/0105). */
#ifndef IPC_MESSAGES_SIGNIN_H
#define IPC_MESSAGES_SIGNIN_H

/* clang-format off */
#define IPC_MESSAGES_SIGNIN(M) \
M(300, SIGNIN_LIST, signin_list, REQ, WEB, ADMIND, OPEN, 0, "by which issuers can administrators sign in? answered by ADMIN_JSON or REFUSED") \
M(301, SIGNIN_BEGIN, signin_begin, REQ, WEB, ADMIND, OPEN, 0, "a browser begins to sign in; answered by SIGNIN_URL or REFUSED") \
M(302, SIGNIN_URL, signin_url, ANS, ADMIND, WEB, OPEN, 0, "the address at the issuer to which the browser goes") \
M(303, SIGNIN_BACK, signin_back, REQ, WEB, ADMIND, OPEN, 0, "what a browser brought back from an issuer; answered by OK once the vault has the grant, or REFUSED") \
M(304, SIGNIN_GRANT, signin_grant, REQ, ADMIND, VAULT, OPEN, 0, "whoever shows this ticket soon gets a login BY_ISSUER of this name; answered by OK or REFUSED") \
M(305, SIGNIN_REDEEM, signin_redeem, REQ, WEB, VAULT, OPEN, 0, "the ticket, once; answered by LOGIN_OK or REFUSED") \
M(306, SIGNIN_HOLDS, signin_holds, REQ, ADMIND, VAULT, OPEN, 0, "the issuers whose logins may live; all others end; answered by OK") \
M(307, SIGNIN_DROP, signin_drop, REQ, ADMIND, VAULT, OPEN, 0, "end the logins BY_ISSUER of one name; answered by OK") \
M(308, CHECK_SIGNIN, check_signin, REQ, ADMIND, CHECK, OPEN, RESULT_MAX, "who is the ID token of that this run brought? CHECK_OK carries enum jwt_field; CHECK_ERRORS says why not")

#define IPC_FIELDS_signin_list(F, S)

#define IPC_FIELDS_signin_begin(F, S) \
F(S, str, issuer, "an issuer's name in the access document") \
F(S, hash, ticket, "SHA-256 of both halves, the cookie's and the page's")

#define IPC_FIELDS_signin_url(F, S) F(S, str, url, "https, printable ASCII")

#define IPC_FIELDS_signin_back(F, S) \
F(S, hash, ticket, "as in SIGNIN_BEGIN, of the halves that came with it") \
F(S, str, state, "from the query: foreign") \
F(S, str, code, "likewise, or empty") \
F(S, str, iss, "likewise (RFC 9207), or empty") \
F(S, str, error, "likewise, or empty") \
F(S, str, source, "peer address, for the audit log")

#define IPC_FIELDS_signin_grant(F, S) \
F(S, hash, ticket, "as in SIGNIN_BEGIN") \
F(S, str, username, "NAME@ISSUER") \
F(S, str, role, "administrator, reviewer or viewer") \
F(S, str, issuer, "its name in the access document") \
F(S, str, subject, "the claim sub, for the audit log") \
F(S, str, email, "for the audit log; may be empty") \
F(S, hash, basis, "as SIGNIN_HOLDS has it")

#define IPC_FIELDS_signin_redeem(F, S) \
F(S, str, ticket, "LOGIN_TEXT characters: both halves") \
F(S, str, source, "peer address, for the audit log") \
F(S, str, agent, "as in LOGIN")

#define IPC_FIELDS_signin_holds(F, S) \
F(S, bytes, issuers, "for each one 32 bytes: SHA-256 of all that the document says about its administrators")

#define IPC_FIELDS_signin_drop(F, S) F(S, str, username, "NAME@ISSUER")

#define IPC_FIELDS_check_signin(F, S) \
F(S, u64, now_us, "Unix time in us") \
F(S, str, client, "our client_id, which `aud` must be") \
F(S, str, nonce, "which the token must have") \
F(S, u32, issuer_len, "bytes of the blob's first part") \
F(S, blob, issuer_result, "ACCESS_ISSUER record with its keys, then the run's answer: hostile")
/* clang-format on */

#endif
