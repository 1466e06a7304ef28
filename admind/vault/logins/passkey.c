/*
 * The steps that all requests about passkeys share: the asker, the
 * person's set, a change of the set.
 *
 * admind stores the sets and may be hostile. It can't make or change one (they
 * are sealed for the person's name), and can't take one passkey out. It
 * can leave the whole set out, or bring an older one.
 *
 * - A person with a password: the verifier, also sealed, has the set's handle.
 *   Without the set that has this handle, all that needs a passkey is refused:
 *   a login stays half. With a verifier that has no handle, no set counts.
 * - A person of an issuer has no verifier. Without a set, only root's code lets
 *   a first passkey in. Once this process saw a set, it takes "none" no more.
 * - An older set is refused by its time, until a restart (verifiers.h). Then a
 *   removed passkey can come back, or a counter go back to an older value; and
 *   an older verifier without a handle brings back the time before the first
 *   passkey. Each needs the password or the passkey of the person beside admind
 *   (docs/decisions/0040, 0104).
 *
 * A set and a verifier are changed together, in one transaction of admind, and
 * one change at a time: else a change of the password could store a verifier
 * without the handle that another change has just put into it.
 */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "passkey.h"
#include "stored.h"

static const struct ipc_id none;

static struct attempt *
begin(struct port *port, struct ipc_peer *peer, uint64_t request)
{
	struct attempt *a = attempt_new(port, peer, request);

	if (a != NULL &&
	    (a->passkey = calloc(1, sizeof(*a->passkey))) == NULL) {
		attempt_refuse(a, FAILURE_BUSY, "out of memory");
		return NULL;
	}
	return a;
}

struct attempt *
passkey_begin(struct port *port, struct ipc_peer *peer, uint64_t request,
    struct ipc_bytes token, bool pending, const struct session **s)
{
	struct attempt *a = begin(port, peer, request);

	if (a == NULL)
		return NULL;
	*s = sessions_find_text_any(
	    port->v->sessions, token, now_boot_ms(), &a->token);
	if (*s == NULL || ((*s)->pending && !pending)) {
		attempt_refuse(a, FAILURE_UNAUTHENTICATED, "not logged in");
		return NULL;
	}
	attempt_copy(a->username, sizeof(a->username), ipc_str((*s)->username));
	attempt_copy(a->actor, sizeof(a->actor), ipc_str((*s)->username));
	a->from = (*s)->from;
	a->passkey->by_password = (*s)->by == SESSION_BY_PASSWORD;
	return a;
}

struct attempt *
passkey_begin_root(struct port *port, struct ipc_peer *peer, uint64_t request,
    struct ipc_bytes name)
{
	struct attempt *a = begin(port, peer, request);

	if (a == NULL)
		return NULL;
	if (!passkeys_name_ok(name)) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS,
		    "that is neither an administrator's name nor NAME@ISSUER");
		return NULL;
	}
	attempt_copy(a->username, sizeof(a->username), name);
	attempt_copy(a->actor, sizeof(a->actor), ipc_str("root"));
	a->passkey->by_password = memchr(name.p, '@', name.n) == NULL;
	return a;
}

int
passkey_on(struct attempt *a)
{
	if (a->v->origins[0] != '\0')
		return 0;
	attempt_refuse(a, FAILURE_FORBIDDEN,
	    "passkeys are off: the vault has no passkey_origins");
	return -1;
}

int
passkey_copy(struct attempt *a, struct ipc_bytes from, uint8_t *to, size_t size,
    size_t *n)
{
	if (from.n > size) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS,
		    "a part of the passkey's answer is too long");
		return -1;
	}
	if (from.n > 0)
		memcpy(to, from.p, from.n);
	*n = from.n;
	return 0;
}

int
passkey_alone(struct attempt *a)
{
	if (a->v->changing != NULL) {
		attempt_refuse(a, FAILURE_BUSY,
		    "another administrator is just being changed");
		return -1;
	}
	a->v->changing = a;
	return 0;
}

/* ---- the set that counts ---- */

static bool
is_set(const struct ipc_id *handle)
{
	return memcmp(handle->b, none.b, sizeof(none.b)) != 0;
}

/* Opens the set of a person with a password. */
static int
open_beside(struct attempt *a, struct passkeys *set, struct err *err)
{
	if (!a->known)
		return err_set(err, FAILURE_NOT_FOUND,
		    "there is no administrator of that name");
	if (!is_set(&a->handle))
		return 0;
	if (passkeys_open(a->v->passkey_times, a->v->keys, a->username,
		a->sealed_set, set, err) == -1)
		return -1;
	if (memcmp(set->handle.b, a->handle.b, sizeof(none.b)) != 0)
		return err_set(err, FAILURE_FORBIDDEN,
		    "passkeys of another time of this name");
	return 0;
}

/* Opens the set of a person of an issuer. */
static int
open_alone(struct attempt *a, struct passkeys *set, struct err *err)
{
	if (a->sealed_set.n > 0)
		return passkeys_open(a->v->passkey_times, a->v->keys,
		    a->username, a->sealed_set, set, err);
	if (verifiers_current(a->v->passkey_times, a->username, 0))
		return 0;
	return err_set(err, FAILURE_FORBIDDEN, "the passkeys are missing");
}

/* Root may take a set away that does not open: that is the way back in. */
static void
on_found(struct attempt *a)
{
	struct passkey_op *op = a->passkey;
	struct err err;
	int rc;

	memset(&op->set, 0, sizeof(op->set));
	rc = op->by_password ? open_beside(a, &op->set, &err)
			     : open_alone(a, &op->set, &err);
	a->sealed_set = ipc_bytes(NULL, 0);
	if (rc == -1 && err.failure == FAILURE_FORBIDDEN) {
		log_event(LOG_LV_WARN, "passkeys_refused", "%s: %s",
		    a->username, err.text);
		if (a->ref.role == IPC_ROLE_CTL) {
			memset(&op->set, 0, sizeof(op->set));
			rc = 0;
		} else {
			err_set(&err, FAILURE_FORBIDDEN,
			    "the stored passkeys are not those that this "
			    "vault sealed last: root can remove them by "
			    "mcpboxctl passkeys remove");
		}
	}
	if (rc == -1)
		attempt_refuse(a, err.failure, err.text);
	else
		a->then(a);
}

/* attempt_find() calls on_found by `then`, so the next step waits in `after`.
 */
static void
found(struct attempt *a)
{
	a->then = a->after;
	on_found(a);
}

void
passkey_find(struct attempt *a, void (*then)(struct attempt *))
{
	a->after = then;
	attempt_find(a, found);
}

/* ---- a change of the set ---- */

static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct attempt *a = arg;

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(a->v, a->ref, f, gone);
		attempt_free(a);
		return;
	}
	if (a->stored_us != 0) {
		verifiers_stored(a->v->verifiers, a->username, a->stored_us);
		a->sealed_us = a->stored_us;
	}
	verifiers_stored(a->v->passkey_times, a->username, a->passkey->set_us);
	a->then(a);
}

/* Writes the detail of the audit row. It names the passkey by the first bytes
 * of its id, as lists do. */
static void
write_detail(const struct attempt *a, struct buf *b)
{
	char id[AUTHDATA_ID_MAX * 4 / 3 + 4];
	const struct passkey_op *op = a->passkey;
	struct jsonw w;

	jsonw_open(&w, b);
	jsonw_obj(&w);
	if (op->ncredential > 0) {
		b64url_encode(op->credential, op->ncredential, id);
		id[op->ncredential > 12 ? 16 : strlen(id)] = '\0';
		jsonw_kv_str(&w, "passkey", id);
	}
	if (op->label[0] != '\0')
		jsonw_kv_str(&w, "label", op->label);
	if (op->cap[0] != '\0')
		jsonw_kv_str(&w, "role", op->cap);
	jsonw_kv_str(&w, "source", a->from.source);
	jsonw_obj_end(&w);
}

/* Seals a new verifier if the password shall now be half a login, or the whole.
 */
static int
seal_verifier(struct attempt *a, struct buf *sealed, struct err *err)
{
	struct passkey_op *op = a->passkey;
	const struct ipc_id *handle = op->set.n > 0 ? &op->set.handle : &none;

	a->stored_us = 0;
	if (!op->by_password ||
	    memcmp(handle->b, a->handle.b, sizeof(none.b)) == 0)
		return 0;
	return verifiers_seal(a->v->verifiers, a->v->keys, a->username, a->role,
	    a->job.encoded, handle, sealed, &a->stored_us, err);
}

/* A set without passkeys is stored, too, for a person of an issuer: so "none"
 * stays an answer that only a vault without memory takes. */
static int
seal_set(struct attempt *a, struct buf *sealed, struct err *err)
{
	struct passkey_op *op = a->passkey;

	if (!is_set(&op->set.handle))
		random_bytes(op->set.handle.b, sizeof(op->set.handle.b));
	op->set_us = verifiers_now(a->v->passkey_times, a->username);
	if (op->set.n == 0 && op->by_password)
		return 0;
	return passkeys_seal(a->v->passkey_times, a->v->keys, a->username,
	    &op->set, sealed, &op->set_us, err);
}

void
passkey_store(
    struct attempt *a, const char *change, void (*then)(struct attempt *))
{
	struct buf set, verifier, detail;
	struct ipc_passkeys_store m;
	struct err err;

	buf_init(&set, PASSKEYS_PLAIN_MAX + STORED_OVERHEAD);
	buf_init(&verifier, VERIFIERS_PLAIN_MAX + STORED_OVERHEAD);
	buf_init(&detail, PASSKEY_DETAIL_MAX);
	if (seal_set(a, &set, &err) == -1 ||
	    seal_verifier(a, &verifier, &err) == -1) {
		attempt_refuse(a, err.failure, err.text);
		goto out;
	}
	write_detail(a, &detail);
	memset(&m, 0, sizeof(m));
	m.change = ipc_str(change);
	m.username = ipc_str(a->username);
	m.role = ipc_str(a->passkey->by_password ? a->role : "");
	m.actor = ipc_str(a->actor);
	m.detail =
	    detail.failed ? ipc_str("{}") : ipc_bytes(detail.p, detail.len);
	m.verifier = ipc_bytes(verifier.p, verifier.len);
	m.passkeys = ipc_bytes(set.p, set.len);
	a->then = then;
	if (callers_ask(a->v, IPC_PASSKEYS_STORE, &m, on_stored, a) == -1)
		attempt_refuse(a, FAILURE_BUSY, "admind is not connected");
out:
	buf_free(&detail);
	buf_free(&verifier);
	buf_free(&set);
}
