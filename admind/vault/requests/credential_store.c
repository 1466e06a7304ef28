/*
 * See credentials.h. CREDENTIAL_STORE: admind brings the sealed result of a
 * source's run; it becomes the value of that source's secret.
 *
 * admind may be hostile. It names execution, version, server and secret. A
 * wrong name leads to another key, with which nothing opens. So admind can
 * store only a result that the run of an approved version sealed, and only as
 * the secret that this version names. admind must not be able to choose another
 * secret's name, because a tool that was approved with that secret would send
 * the tokens to the tool's own hosts. admind can bring an older result again,
 * as it can put back any older row (stored.h).
 */
#include <stdlib.h>
#include <string.h>

#include "credentials.h"
#include "ids.h"
#include "name.h"
#include "requests.h"
#include "stored.h"

struct credential_op {
	struct vault *v;
	struct vault_ref ref;
};

static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct credential_op *op = arg;

	if (f != NULL && f->type == IPC_OK)
		callers_ok(op->v, op->ref);
	else
		callers_refuse_as(op->v, op->ref, f, gone);
	op->v->ops--;
	free(op);
}

/* Asks admind to commit the value, as SECRET_SET does. 0, or -1 with err. */
static int
store(struct port *port, struct ipc_peer *peer,
    const struct ipc_credential_store *m, const struct buf *value,
    struct err *err)
{
	struct stored_place at = {STORED_SECRETS, m->server, m->key};
	struct ipc_secret_store s = {
	    .server = m->server, .key = m->key, .actor = ipc_str("oauth")};
	struct vault *v = port->v;
	struct credential_op *op;
	struct buf sealed;
	int rc = -1;

	buf_init(&sealed, SECRET_VALUE_MAX + STORED_OVERHEAD);
	if (stored_seal(v->keys, &at, value->p, value->len, &sealed, err) == -1)
		goto out;
	s.value = ipc_bytes(sealed.p, sealed.len);
	if (!callers_room(port) || (op = calloc(1, sizeof(*op))) == NULL) {
		(void)err_set(err, FAILURE_BUSY, "too many requests at once");
		goto out;
	}
	op->v = v;
	op->ref = callers_ref(port, peer, m->request);
	v->ops++;
	if (callers_ask(v, IPC_SECRET_STORE, &s, on_stored, op) == -1) {
		v->ops--;
		free(op);
		(void)err_set(err, FAILURE_BUSY, "admind is not connected");
		goto out;
	}
	rc = 0;
out:
	buf_free(&sealed);
	return rc;
}

int
credential_store_message(
    struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_credential_store m;
	const struct keys *k;
	uint8_t key[KEY_LEN] = {0};
	struct buf value;
	struct err err = {.failure = FAILURE_INTERNAL};
	int rc = -1;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (!name_valid(
		(const char *)m.server.p, m.server.n, NAME_SERVER_MAX) ||
	    !secrets_key_ok(m.key)) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "that is not a server's or a secret's name", 0);
		return 0;
	}
	buf_init(&value, SECRET_VALUE_MAX);
	/* A run that began before the master key changed sealed its result
	 * under a key made from the older key. keys->also has that key until it
	 * is forgotten. */
	for (k = port->v->keys; k != NULL && rc == -1; k = k->also) {
		credentials_key(
		    k, &m.execution, &m.version, m.server, m.key, key);
		buf_clear(&value);
		rc =
		    credentials_open(key, m.sealed.p, m.sealed.n, &value, &err);
	}
	explicit_bzero(key, sizeof(key));
	if (rc == 0 && value.len == 0)
		rc = err_set(
		    &err, FAILURE_INVALID_PARAMS, "the credential is empty");
	if (rc == 0)
		rc = store(port, peer, &m, &value, &err);
	if (rc == -1)
		(void)ipc_refuse(peer, m.request, err.failure, err.text, 0);
	buf_free(&value);
	return 0;
}
