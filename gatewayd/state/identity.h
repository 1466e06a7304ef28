/*
 * Finds the principal of a credential: asks admind, and remembers the answer
 * for a short time.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>

#include "bounds.h"
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
	CREDENTIALS_ASKED_MAX = 4 * 1024 * 1024,
	TICKET_MAX = 64 /* a ticket has 43 bytes; signed tokens are longer */
};

/* The proof of its sender that a request shows. */
struct credential {
	char *text;           /* token or assertion; "": none was shown */
	struct ipc_hash hash; /* credential_hash() */
	uint8_t via;          /* enum credential_via */
	/* The endpoint that it was shown at; "": /mcp. It goes with every
	 * question to admind, which gives no more rights than it has. */
	char endpoint[ENDPOINT_NAME_MAX + 1];
};

/* The request that a credential came with. A signed token may be bound to one
 * request (docs/decisions/0098). */
struct identity_request {
	const char *method;
	struct ipc_bytes target; /* path and query, as they came */
	struct ipc_hash body;    /* SHA-256 */
};

struct identity {
	char principal[PRINCIPAL_MAX + 1];
	char permission_set[PRINCIPAL_MAX + 1];
	/* The credential from here on, in the place of the one that was asked
	 * about; "": that one stays. */
	char ticket[TICKET_MAX + 1];
	uint64_t until_ms; /* end of its credential, since boot; 0: none */
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
/* Forgets the identities that have this permission set. */
void identity_cache_forget(struct identity_cache *, const char *set);
/* Fills in *c but the endpoint. The text stays the caller's. */
void identity_credential(
    struct credential *c, char *text, enum credential_via via);
/* Puts a ticket in the place of a credential, in the same memory. 0, or -1: the
 * ticket is longer than the credential, and nothing changed. */
int identity_ticket(struct credential *, const char *ticket);
/* Tells whether the next question about this credential needs no admind. */
bool identity_remembered(const struct gateway *, const struct credential *);
/* Credential and request are not needed after this returns. NULL: no request
 * came with the credential, or none that it could be bound to. */
void identity_ask(struct gateway *, const struct credential *,
    const struct identity_request *, identity_cb *, void *arg);

#endif
