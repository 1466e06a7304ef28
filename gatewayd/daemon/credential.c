/*
 * CREDENTIAL_ENDED: a credential was revoked, or its time is over.
 *
 * Revoked: everything that is held for it ends before the message is answered.
 * Its identity is forgotten, its streams end, its calls are cancelled, and
 * calls that wait for a client of its principal to come back are dropped.
 * Without a hash the same happens to all credentials of the principal: admind
 * does not remember every token by which a person came (docs/decisions/0090).
 *
 * Its time is over (the message has no principal): its identity, its streams
 * and the calls that wait for its client end. A call under way goes on. It was
 * authorised while the token was good, and its client would come with a fresh
 * token anyway, so to kill it would only leave work half done.
 *
 * Only admind sends this message; a client can't. Calls through other gateways
 * are ended by admind and sandboxd.
 */
#include <string.h>

#include "call.h"
#include "daemon.h"
#include "ids.h"
#include "parked.h"
#include "stream.h"

/* Returns the next call to cancel, or NULL. A call_cancel() may end other
 * calls, so each search begins at the head of the list. ex->ended marks the
 * exchanges whose call was returned. */
static struct call *
next_call(struct gateway *gw, const struct ipc_hash *credential,
    const char *principal)
{
	struct exchange *ex;

	TAILQ_FOREACH(ex, &gw->exchanges, all) {
		if (ex->call == NULL || ex->ended ||
		    !(credential != NULL
			    ? ct_equal(&ex->credential.hash, credential,
				  sizeof(*credential))
			    : strcmp(ex->who.principal, principal) == 0))
			continue;
		ex->ended = true;
		return ex->call;
	}
	return NULL;
}

int
credential_ended(struct gateway *gw, struct ipc_frame *f)
{
	static const struct ipc_hash all;
	const struct ipc_hash *credential;
	struct ipc_credential_ended m;
	char principal[PRINCIPAL_MAX + 1] = "";
	struct call *c;

	if (ipc_decode(f, &m, NULL) < 0 || m.principal.n > PRINCIPAL_MAX)
		return -1;
	if (m.principal.n > 0)
		memcpy(principal, m.principal.p, m.principal.n);
	credential = memcmp(&m.credential, &all, sizeof(all)) == 0
	    ? NULL
	    : &m.credential;
	if (credential == NULL && m.principal.n == 0)
		return -1;
	identity_cache_drop(gw->identities);
	stream_credential_ended(gw, credential, principal);
	while (m.principal.n > 0 &&
	    (c = next_call(gw, credential, principal)) != NULL)
		call_cancel(c);
	parked_end(gw, &m.credential, m.principal);
	return 0;
}
