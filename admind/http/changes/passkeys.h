/*
 * A passkey's answer, as a browser's PublicKeyCredential.toJSON() gives it
 * (WebAuthn Level 3, section 5.1), decoded from base64url.
 */
#ifndef HTTP_PASSKEYS_H
#define HTTP_PASSKEYS_H

#include "buf.h"
#include "web.h"

struct json_object;

enum passkeys_part {
	PASSKEYS_ID,
	PASSKEYS_CLIENT,
	PASSKEYS_DATA, /* authenticatorData or attestationObject */
	PASSKEYS_SIGNATURE,
	PASSKEYS_HANDLE,
	PASSKEYS_PARTS
};

struct passkeys_answer {
	struct buf part[PASSKEYS_PARTS];
};

void passkeys_init(struct passkeys_answer *);
void passkeys_free(struct passkeys_answer *);
/* Reads this member of a body: a passkey just created, or else one just used.
 * 0, or -1 with err. */
int passkeys_read(struct json_object *body, const char *member, bool created,
    struct passkeys_answer *, struct err *);
/* Shows the vault that a passkey was used. kind: login or proof. */
void passkeys_ask(struct call *, const char *kind,
    const struct passkeys_answer *,
    void (*then)(struct call *, struct ipc_frame *));

#endif
