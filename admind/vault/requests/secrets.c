/*
 * SECRET_SET: takes a secret's value from uid 0's socket or, with an
 * administrator's login, from the web process. The value is encrypted for its
 * place, and admind stores it. No message returns it: it leaves the vault only
 * in a context for a sandbox (contexts.c).
 *
 * The setter's name is that of a login that we made, whose role was sealed with
 * its verifier, or root on uid 0's socket. admind is not asked, and may not
 * send SECRET_SET. A hostile admind learns that the secret was set, its names
 * and its length. A hostile web process can set values as an administrator who
 * is logged in, for as long as that login lives, and for any server. It can
 * never read a value. A hostile admind can invent a login by an issuer, so such
 * a login needs a fresh proof (fresh.h). The AAD has the server's name, so
 * admind is not needed to translate an id.
 */
#include <stdlib.h>
#include <string.h>

#include "credentials.h"
#include "fresh.h"
#include "ids.h"
#include "log.h"
#include "name.h"
#include "stored.h"
#include "requests.h"

struct secret_op {
	struct vault *v;
	struct vault_ref ref;
};

/* ^[A-Z][A-Z0-9_]{0,254}$ */
bool
secrets_key_ok(struct ipc_bytes k)
{
	if (k.n == 0 || k.n > KEY_NAME_MAX)
		return false;
	for (size_t i = 0; i < k.n; i++) {
		uint8_t c = k.p[i];

		if (!(c >= 'A' && c <= 'Z') &&
		    (i == 0 || !((c >= '0' && c <= '9') || c == '_')))
			return false;
	}
	return true;
}

static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct secret_op *op = arg;

	if (f != NULL && f->type == IPC_OK)
		callers_ok(op->v, op->ref);
	else
		callers_refuse_as(op->v, op->ref, f, gone);
	op->v->ops--;
	free(op);
}

/*
 * Writes into actor the name of the person who sets the secret: "root" if the
 * request came by uid 0's socket, else the login's name. A login that is
 * refused for a lower role, or for want of a proof, goes to the audit log. 0,
 * or -1 with err.
 */
static int
take_actor(struct port *port, const struct ipc_secret_set *m,
    char actor[SESSIONS_USER_MAX + 1], struct err *err)
{
	const struct session *s;

	memcpy(actor, "root", sizeof("root"));
	if (port->role == IPC_ROLE_CTL)
		return m->token.n == 0
		    ? 0
		    : err_set(err, FAILURE_INVALID_REQUEST,
			  "root sets secrets without a token");
	s = sessions_find_text(
	    port->v->sessions, m->token, now_boot_ms(), NULL);
	if (s == NULL)
		return err_set(err, FAILURE_UNAUTHENTICATED, "not logged in");
	memcpy(actor, s->username, SESSIONS_USER_MAX + 1);
	sessions_touch(port->v->sessions, s, now_boot_ms(), now_us() / 1000);
	if (strcmp(s->role, "administrator") != 0)
		(void)err_set(err, FAILURE_FORBIDDEN,
		    "only an administrator may set a secret");
	else if (fresh_check(s, IPC_SECRET_SET, now_boot_ms(), err) == 0)
		return 0;
	policies_refused(port, actor, "secret_refused", "secret", err->failure);
	return -1;
}

int
secrets_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char actor[SESSIONS_USER_MAX + 1];
	struct vault *v = port->v;
	struct secret_op *op = NULL;
	struct stored_place at;
	struct ipc_secret_store s;
	struct ipc_secret_set m;
	struct buf sealed;
	struct err err;

	buf_init(&sealed, SECRET_VALUE_MAX + STORED_OVERHEAD);
	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (take_actor(port, &m, actor, &err) == -1) {
		(void)ipc_refuse(peer, m.request, err.failure, err.text, 0);
		return 0;
	}
	if (!name_valid(
		(const char *)m.server.p, m.server.n, NAME_SERVER_MAX)) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "that is not a server's name", 0);
		return 0;
	}
	if (!secrets_key_ok(m.key)) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "a secret's name has 1 to 255 of A-Z, 0-9 and _ and begins "
		    "with a letter",
		    0);
		return 0;
	}
	if (m.value.n == 0 || m.value.n > SECRET_VALUE_MAX) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "a secret's value has 1 to 10000 bytes", 0);
		return 0;
	}
	at.table = STORED_SECRETS;
	at.row = m.server;
	at.column = m.key;
	if (stored_seal(v->keys, &at, m.value.p, m.value.n, &sealed, &err) ==
	    -1) {
		(void)ipc_refuse(peer, m.request, err.failure, err.text, 0);
		goto out;
	}
	memset(&s, 0, sizeof(s));
	s.server = m.server;
	s.key = m.key;
	s.actor = ipc_str(actor);
	s.value = ipc_bytes(sealed.p, sealed.len);
	if (!callers_room(port) || (op = calloc(1, sizeof(*op))) == NULL) {
		(void)ipc_refuse(peer, m.request, FAILURE_BUSY,
		    "too many requests at once", 1000);
		goto out;
	}
	op->v = v;
	op->ref = callers_ref(port, peer, m.request);
	v->ops++;
	if (callers_ask(v, IPC_SECRET_STORE, &s, on_stored, op) == -1) {
		v->ops--;
		free(op);
		(void)ipc_refuse(peer, m.request, FAILURE_BUSY,
		    "admind is not connected", 1000);
	}
out:
	buf_free(&sealed);
	return 0;
}
