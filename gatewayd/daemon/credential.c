/*
 * CREDENTIAL_ENDED: a token was revoked, or its time is over.
 *
 * All that is held for the token ends before the message is answered: its
 * identity is forgotten, its streams end, its calls are cancelled, and calls
 * that wait for its client to come back are dropped. Only admind sends this
 * message; a client can't. Calls through other gateways are ended by admind and
 * sandboxd.
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
next_call(struct gateway *gw, const struct ipc_hash *credential)
{
	struct exchange *ex;
	struct ipc_hash h;

	TAILQ_FOREACH(ex, &gw->exchanges, all) {
		if (ex->call == NULL || ex->ended)
			continue;
		sha256(ex->credential, strlen(ex->credential), &h);
		if (!ct_equal(&h, credential, sizeof(h)))
			continue;
		ex->ended = true;
		return ex->call;
	}
	return NULL;
}

int
credential_ended(struct gateway *gw, struct ipc_frame *f)
{
	struct ipc_credential_ended m;
	struct call *c;

	if (ipc_decode(f, &m, NULL) < 0)
		return -1;
	identity_cache_drop(gw->identities);
	stream_credential_ended(gw, &m.credential);
	while ((c = next_call(gw, &m.credential)) != NULL)
		call_cancel(c);
	if (m.principal.n > 0)
		parked_end(gw, m.principal);
	return 0;
}
