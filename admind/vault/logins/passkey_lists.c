/*
 * PASSKEY_CHALLENGE, PASSKEYS_GET, PASSKEY_REMOVE, PASSKEY_CODE_MAKE: all about
 * passkeys that shows none.
 *
 * A challenge is worth nothing without the passkey. A login that waits for its
 * passkey gets one, with the ids of the person's passkeys: so a password
 * alone shows these ids, as browsers need them. Removing makes logging in
 * easier, so it needs a fresh proof, or uid 0. Root's code is for the first
 * passkey of an issuer's person: that login is admind's word alone, and the
 * person brings the code beside it. The code names the
 * person, and the role that the passkey conveys at most.
 */
#include <stdio.h>
#include <string.h>

#include "fresh.h"
#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "passkey.h"

static void
answer_json(struct attempt *a, enum ipc_type type, const struct buf *b)
{
	struct ipc_passkey_options options = {0};
	struct ipc_passkeys list = {0};

	if (b->failed) {
		attempt_refuse(a, FAILURE_BUSY, "out of memory");
		return;
	}
	options.json = list.json = ipc_bytes(b->p, b->len);
	callers_answer(a->v, a->ref, type,
	    type == IPC_PASSKEYS ? (const void *)&list
				 : (const void *)&options);
	attempt_free(a);
}

static void
json_b64(struct jsonw *w, const char *name, const void *p, size_t n)
{
	char text[AUTHDATA_ID_MAX * 4 / 3 + 4];

	b64url_encode(p, n, text);
	jsonw_kv_str(w, name, text);
}

/* ---- PASSKEY_CHALLENGE ---- */

static void
json_credentials(struct jsonw *w, const char *name, const struct passkeys *set)
{
	jsonw_name(w, name);
	jsonw_arr(w);
	for (size_t i = 0; i < set->n; i++) {
		jsonw_obj(w);
		jsonw_kv_str(w, "type", "public-key");
		json_b64(w, "id", set->row[i].id, set->row[i].nid);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

/* Writes PublicKeyCredentialCreationOptions as JSON (WebAuthn Level 3, section
 * 5.1.9). No attestation is asked for: nothing that a device says of itself is
 * believed. */
static void
json_creation(
    struct jsonw *w, const struct attempt *a, const struct ipc_id *handle)
{
	static const int algs[] = {AUTHKEY_EDDSA, AUTHKEY_ES256};

	jsonw_name(w, "rp");
	jsonw_obj(w);
	jsonw_kv_str(w, "id", a->v->rp_id);
	jsonw_kv_str(w, "name", "mcpbox");
	jsonw_obj_end(w);
	jsonw_name(w, "user");
	jsonw_obj(w);
	json_b64(w, "id", handle->b, sizeof(handle->b));
	jsonw_kv_str(w, "name", a->username);
	jsonw_kv_str(w, "displayName", a->username);
	jsonw_obj_end(w);
	jsonw_name(w, "pubKeyCredParams");
	jsonw_arr(w);
	for (int i = 0; i < 2; i++) {
		jsonw_obj(w);
		jsonw_kv_str(w, "type", "public-key");
		jsonw_name(w, "alg");
		jsonw_int(w, algs[i]);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	json_credentials(w, "excludeCredentials", &a->passkey->set);
	jsonw_name(w, "authenticatorSelection");
	jsonw_obj(w);
	jsonw_kv_str(w, "residentKey", "preferred");
	jsonw_kv_str(w, "userVerification", "required");
	jsonw_obj_end(w);
	jsonw_kv_str(w, "attestation", "none");
}

/* The handle of a set that is still to be made comes from the challenge, so
 * that registering finds the same. */
static void
challenge_found(struct attempt *a)
{
	struct passkey_op *op = a->passkey;
	const struct session *s =
	    sessions_find_any(a->v->sessions, &a->token, now_boot_ms());
	struct ipc_id handle = op->set.handle;
	uint8_t challenge[CLIENTDATA_CHALLENGE];
	struct ipc_hash hash;
	struct jsonw w;
	struct buf b;

	if (s == NULL) {
		attempt_refuse(
		    a, FAILURE_UNAUTHENTICATED, "the login has ended");
		return;
	}
	if (op->kind != CHALLENGES_REGISTER && op->set.n == 0) {
		attempt_refuse(a, FAILURE_NOT_FOUND, "there is no passkey");
		return;
	}
	challenges_make(
	    a->v->challenges, &s->id, op->kind, now_boot_ms(), challenge);
	sha256(challenge, sizeof(challenge), &hash);
	if (op->set.n == 0)
		memcpy(handle.b, hash.b, sizeof(handle.b));
	buf_init(&b, PASSKEY_JSON_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "publicKey");
	jsonw_obj(&w);
	json_b64(&w, "challenge", challenge, sizeof(challenge));
	if (op->kind == CHALLENGES_REGISTER) {
		json_creation(&w, a, &handle);
	} else {
		jsonw_kv_str(&w, "rpId", a->v->rp_id);
		json_credentials(&w, "allowCredentials", &op->set);
		jsonw_kv_str(&w, "userVerification", "required");
	}
	jsonw_name(&w, "timeout");
	jsonw_int(&w, CHALLENGES_MS);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	answer_json(a, IPC_PASSKEY_OPTIONS, &b);
	buf_free(&b);
}

static int
challenge(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_passkey_challenge m;
	enum challenges_kind kind = CHALLENGES_PROOF;
	bool known = true;
	const struct session *s;
	struct attempt *a;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (ipc_streq(m.kind, "register"))
		kind = CHALLENGES_REGISTER;
	else if (ipc_streq(m.kind, "login"))
		kind = CHALLENGES_LOGIN;
	else
		known = ipc_streq(m.kind, "proof");
	a = passkey_begin(
	    port, peer, m.request, m.token, kind == CHALLENGES_LOGIN, &s);
	if (a == NULL || passkey_on(a) == -1)
		return 0;
	if (!known || (kind == CHALLENGES_LOGIN) != s->pending) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS,
		    known ? "this login has its passkey already"
			  : "kind is register, login or proof");
		return 0;
	}
	a->passkey->kind = kind;
	passkey_find(a, challenge_found);
	return 0;
}

/* ---- PASSKEYS_GET ---- */

static void
json_time(struct jsonw *w, const char *name, uint64_t unix_ms)
{
	char text[TIME_TEXT_LEN + 1];

	jsonw_name(w, name);
	if (unix_ms == 0) {
		jsonw_null(w);
		return;
	}
	time_text(unix_ms * 1000, text);
	jsonw_str(w, text);
}

static void
json_passkey(struct jsonw *w, const struct passkey *k)
{
	jsonw_obj(w);
	json_b64(w, "id", k->id, k->nid);
	jsonw_kv_str(w, "label", k->label);
	jsonw_kv_str(
	    w, "algorithm", k->key.alg == AUTHKEY_ES256 ? "ES256" : "EdDSA");
	jsonw_name(w, "role");
	if (k->cap[0] == '\0')
		jsonw_null(w);
	else
		jsonw_str(w, k->cap);
	jsonw_kv_bool(w, "copied", k->backup_eligible);
	json_time(w, "created_at", k->created_ms);
	json_time(w, "used_at", k->used_ms);
	jsonw_obj_end(w);
}

static void
list_found(struct attempt *a)
{
	struct jsonw w;
	struct buf b;

	buf_init(&b, PASSKEY_JSON_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "items");
	jsonw_arr(&w);
	for (size_t i = 0; i < a->passkey->set.n; i++)
		json_passkey(&w, &a->passkey->set.row[i]);
	jsonw_arr_end(&w);
	jsonw_name(&w, "next_cursor");
	jsonw_null(&w);
	jsonw_obj_end(&w);
	answer_json(a, IPC_PASSKEYS, &b);
	buf_free(&b);
}

static int
list(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_passkeys_get m;
	const struct session *s;
	struct attempt *a;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	a = port->role == IPC_ROLE_CTL
	    ? passkey_begin_root(port, peer, m.request, m.username)
	    : passkey_begin(port, peer, m.request, m.token, false, &s);
	if (a != NULL)
		passkey_find(a, list_found);
	return 0;
}

/* ---- PASSKEY_REMOVE ---- */

/* Ends the person's logins but the one that asked. A thief of the passkey may
 * have a login, too. */
static void
removed(struct attempt *a)
{
	(void)sessions_end_user(a->v->sessions, a->username, &a->token);
	log_event(LOG_LV_INFO, "passkey_removed", "of %s by %s", a->username,
	    a->actor);
	attempt_ok(a);
}

static void
remove_found(struct attempt *a)
{
	struct passkey_op *op = a->passkey;
	struct passkey *k =
	    passkeys_find(&op->set, ipc_bytes(op->credential, op->ncredential));

	if (a->ref.role != IPC_ROLE_CTL &&
	    sessions_find(a->v->sessions, &a->token, now_boot_ms()) == NULL) {
		attempt_refuse(
		    a, FAILURE_UNAUTHENTICATED, "the login has ended");
		return;
	}
	if (op->ncredential == 0) {
		op->set.n = 0; /* root: all */
	} else if (k == NULL) {
		attempt_refuse(
		    a, FAILURE_NOT_FOUND, "there is no such passkey");
		return;
	} else {
		memcpy(op->label, k->label, sizeof(op->label));
		passkeys_drop(&op->set, k);
	}
	passkey_store(a, "remove", removed);
}

static int
take_away(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	uint8_t id[AUTHDATA_ID_MAX + 3];
	const struct session *s = NULL;
	struct ipc_passkey_remove m;
	struct attempt *a;
	struct err err;
	long n = -1;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	a = port->role == IPC_ROLE_CTL
	    ? passkey_begin_root(port, peer, m.request, m.username)
	    : passkey_begin(port, peer, m.request, m.token, false, &s);
	if (a == NULL)
		return 0;
	if (m.credential.n <= AUTHDATA_ID_MAX * 4 / 3 + 1)
		n = b64url_decode(
		    (const char *)m.credential.p, m.credential.n, id);
	if (n < 0 || n > AUTHDATA_ID_MAX || (n == 0 && s != NULL)) {
		attempt_refuse(
		    a, FAILURE_NOT_FOUND, "there is no such passkey");
		return 0;
	}
	if (s != NULL &&
	    fresh_check(s, IPC_PASSKEY_REMOVE, now_boot_ms(), &err) == -1) {
		attempt_refuse(a, err.failure, err.text);
		return 0;
	}
	memcpy(a->passkey->credential, id, (size_t)n);
	a->passkey->ncredential = (size_t)n;
	if (passkey_alone(a) == 0)
		passkey_find(a, remove_found);
	return 0;
}

/* ---- PASSKEY_CODE_MAKE ---- */

static int
code(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char name[PASSKEYS_NAME_MAX + 1], role[SESSIONS_ROLE_MAX + 1];
	char text[CHALLENGES_CODE_TEXT + 1], detail[64];
	struct ipc_device_code answer = {0};
	struct ipc_passkey_code_make m;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (!passkeys_name_ok(m.username) ||
	    memchr(m.username.p, '@', m.username.n) == NULL) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "a code is for a person of an issuer, NAME@ISSUER: an "
		    "administrator with a password registers passkeys alone",
		    0);
		return 0;
	}
	if (!attempt_role_ok(m.role)) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "a role is administrator, reviewer or viewer", 0);
		return 0;
	}
	attempt_copy(name, sizeof(name), m.username);
	attempt_copy(role, sizeof(role), m.role);
	challenges_code(port->v->challenges, name, role, now_boot_ms(), text);
	(void)snprintf(detail, sizeof(detail), "{\"role\":\"%s\"}", role);
	(void)audit_event(
	    port->v, "root", "passkey_code", name, detail, NULL, NULL);
	answer.device = ipc_str(text);
	answer.expires_ms = now_us() / 1000 + CHALLENGES_CODE_MS;
	(void)ipc_answer(peer, m.request, IPC_DEVICE_CODE, &answer);
	explicit_bzero(text, sizeof(text));
	return 0;
}

int
passkey_lists_message(
    struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_PASSKEY_CHALLENGE:
		return challenge(port, peer, f);
	case IPC_PASSKEYS_GET:
		return list(port, peer, f);
	case IPC_PASSKEY_REMOVE:
		return take_away(port, peer, f);
	case IPC_PASSKEY_CODE_MAKE:
		return code(port, peer, f);
	default:
		return -1;
	}
}
