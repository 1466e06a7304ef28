/*
 * Finds the principal of a credential: asks admind, and remembers the answer
 * for a short time.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include "bytes.h"
#include "gw_access.h"
#include "ipc_values.h"

struct gateway;
struct refusal;

enum {
	PRINCIPAL_MAX = 320, /* enough for an e-mail address (254) */
	/* A signed token of JWT_MAX bytes (docs/decisions/0090) fits. It
	 * takes a quarter of a request's head (HTTP_HEAD_MAX) and an
	 * eighth of a frame (IPC_FRAME_MAX). AUTHORISE has at most 9 KiB more
	 * outside its blob. EXCHANGES_MAX requests hold 32 MiB of
	 * credentials, an eighth of their bodies; so the shares of principals,
	 * which count requests and bodies, need not count credentials. */
	CREDENTIAL_MAX = 8 * 1024,
	/* Bytes of credentials in questions that admind has not answered yet.
	 * Strangers may ask, too. If admind does not read for a while, their
	 * questions may fill a quarter of its queue at most: a full queue
	 * (IPC_QUEUE_MAX) would cut the link, and with it everyone's calls. */
	CREDENTIALS_ASKED_MAX = 4 * 1024 * 1024
};

/* The proof of its sender that a request shows. */
struct credential {
	char *text;           /* token or assertion; "": none was shown */
	struct ipc_hash hash; /* credential_hash() */
	uint8_t via;          /* enum credential_via */
};

struct identity {
	char principal[PRINCIPAL_MAX + 1];
	char permission_set[PRINCIPAL_MAX + 1];
	/* If a signed token has fewer scopes than its owner could have: lists
	 * that it may not read, as a mask of 1 << enum mcp_list; all scopes to
	 * ask for to read them, and to call; else "". */
	uint8_t unread;
	char read_scope[GW_SCOPES_MAX + 1], call_scope[GW_SCOPES_MAX + 1];
};

/* Gets the identity, or NULL and the reason. Called from the loop, or before
 * identity_ask returns. */
typedef void identity_cb(
    void *arg, const struct identity *, const struct refusal *);
struct identity_cache *identity_cache_new(void);
void identity_cache_free(struct identity_cache *);
void identity_cache_drop(struct identity_cache *);
/* Fills in *c. The text stays the caller's. */
void identity_credential(
    struct credential *c, char *text, enum credential_via via);
/* The credential is not needed after this returns. */
void identity_ask(
    struct gateway *, const struct credential *, identity_cb *, void *arg);

#endif
