/*
 * Handlers of routes that change something, and of routes that go with them.
 */
#ifndef CHANGES_H
#define CHANGES_H

#include "web.h"

/* action.c */
void action_write(struct call *); /* every route of admin_action.def */
/* Reads If-Match: the hash of the object that the change was made from. A
 * change that compares no hash refuses an If-Match, whose sender relies on the
 * comparison. "*" counts as no If-Match. -1: the call is answered. */
int action_match(struct call *, enum admin_seen, struct ipc_hash *seen);

/* access.c */
void access_get(struct call *);
void access_put(struct call *);
void access_refresh_post(struct call *);
void notify_test_post(struct call *);

/* login.c */
void login_post(struct call *);
void login_passkey_post(struct call *);
void logout_post(struct call *);
void password_post(struct call *);
void proof_post(struct call *);
void me_get(struct call *);

/* passkeys.c */
void passkeys_get(struct call *);
void passkeys_post(struct call *);
void passkeys_challenge_post(struct call *);
void passkeys_remove_post(struct call *);
enum { LOGIN_SOURCE_LEN = 46 }; /* INET6_ADDRSTRLEN */
/* Writes the client's address, without the port. */
void login_source(struct call *, char out[LOGIN_SOURCE_LEN]);
/* Tells whether the request came to the server's address. False: it came to the
 * name localhost, and the call is answered. */
bool login_at_the_address(struct call *);
/* Takes LOGIN_OK, and answers with the login's two halves. */
void login_done(struct call *, struct ipc_frame *);

/* signin.c */
void signin_get(struct call *);
void signin_begin_post(struct call *);
void signin_callback_get(struct call *);
void signin_finish_post(struct call *);

/* admins.c */
void admin_post(struct call *);
void admin_role_put(struct call *);
void admin_password_post(struct call *);
void admin_delete_post(struct call *);
void logins_get(struct call *);
void login_delete(struct call *);
void admin_logins_delete(struct call *);

/* sources.c */
void source_discover_post(struct call *);
void source_import_post(struct call *);
void openapi_post(struct call *); /* openapi.c */
/* calls.c */
void calls_post(struct call *);
void drafts_post(struct call *);
void source_authorise_post(struct call *);
void oauth_callback_get(struct call *);

/* secrets.c */
void secret_put(struct call *);

/* tokens.c */
void tokens_post(struct call *);
void token_revoke_post(struct call *);

/* keys.c */
void keys_post(struct call *);

/* transfer.c */
void export_post(struct call *);
void import_post(struct call *);

#endif
