/* Passkeys of the asker. The vault judges them: these functions decode a
 * browser's PublicKeyCredential.toJSON(), and carry it there. */
#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "ids.h"
#include "json_grammar.h"
#include "passkeys.h"
#include "problem.h"
#include "reply.h"

static void
done(struct call *c, struct ipc_frame *f)
{
	(void)f;
	reply_empty(c, 204);
}

/* Sends JSON that the vault wrote. */
static void
show(struct call *c, struct ipc_bytes json)
{
	struct buf b;

	if (!utf8_valid(json.p, json.n) ||
	    !json_grammar_valid(json.p, json.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, json.p, json.n);
	reply_json(c, 200, &b);
	buf_free(&b);
}

/* ---- a browser's answer ---- */

void
passkeys_init(struct passkeys_answer *a)
{
	memset(a, 0, sizeof(*a));
	for (size_t i = 0; i < PASSKEYS_PARTS; i++)
		buf_init(&a->part[i], WEB_BODY_MAX);
}

void
passkeys_free(struct passkeys_answer *a)
{
	for (size_t i = 0; i < PASSKEYS_PARTS; i++)
		buf_free(&a->part[i]);
}

/* Reads a member in base64url, decoded. An optional one may be absent or null.
 */
static int
take(struct json_object *o, const char *name, bool optional, struct buf *to,
    struct err *e)
{
	struct json_object *v = NULL;
	struct ipc_bytes text;
	long n;

	if (optional &&
	    (!json_object_object_get_ex(o, name, &v) || v == NULL ||
		(json_object_is_type(v, json_type_string) &&
		    json_object_get_string_len(v) == 0)))
		return 0;
	if (body_str(o, name, &text, e) < 0)
		return -1;
	buf_clear(to);
	buf_reserve(to, text.n);
	if (to->failed)
		return err_set(e, FAILURE_BUSY, "out of memory");
	n = b64url_decode((const char *)text.p, text.n, to->p);
	if (n < 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "member %s is not base64url without padding", name);
	to->len = (size_t)n;
	return 0;
}

/* Members that WebAuthn defines beside those are passed over, so that an
 * addition of a later browser does no harm. */
int
passkeys_read(struct json_object *body, const char *member, bool created,
    struct passkeys_answer *a, struct err *e)
{
	struct json_object *o, *r;

	if (!json_object_object_get_ex(body, member, &o) ||
	    !json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, "response", &r) ||
	    !json_object_is_type(r, json_type_object))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "member %s is not a PublicKeyCredential as JSON", member);
	if (take(o, "id", false, &a->part[PASSKEYS_ID], e) < 0 ||
	    take(r, "clientDataJSON", false, &a->part[PASSKEYS_CLIENT], e) < 0)
		return -1;
	if (created)
		return take(
		    r, "attestationObject", false, &a->part[PASSKEYS_DATA], e);
	if (take(r, "authenticatorData", false, &a->part[PASSKEYS_DATA], e) <
		0 ||
	    take(r, "signature", false, &a->part[PASSKEYS_SIGNATURE], e) < 0)
		return -1;
	return take(r, "userHandle", true, &a->part[PASSKEYS_HANDLE], e);
}

static struct ipc_bytes
part(const struct passkeys_answer *a, enum passkeys_part which)
{
	return ipc_bytes(a->part[which].p, a->part[which].len);
}

void
passkeys_ask(struct call *c, const char *kind, const struct passkeys_answer *a,
    void (*then)(struct call *, struct ipc_frame *))
{
	struct ipc_passkey_assert msg = {.token = ipc_str(c->token),
	    .kind = ipc_str(kind),
	    .credential = part(a, PASSKEYS_ID),
	    .client_data = part(a, PASSKEYS_CLIENT),
	    .auth_data = part(a, PASSKEYS_DATA),
	    .signature = part(a, PASSKEYS_SIGNATURE),
	    .handle = part(a, PASSKEYS_HANDLE)};

	ask_vault(c, IPC_PASSKEY_ASSERT, &msg, then);
}

/* ---- routes ---- */

static void
listed(struct call *c, struct ipc_frame *f)
{
	struct ipc_passkeys m;

	if (f->type != IPC_PASSKEYS || ipc_decode(f, &m, NULL) < 0)
		m.json = ipc_bytes(NULL, 0);
	show(c, m.json);
}

void
passkeys_get(struct call *c)
{
	struct ipc_passkeys_get msg = {.token = ipc_str(c->token)};

	ask_vault(c, IPC_PASSKEYS_GET, &msg, listed);
}

static void
challenged(struct call *c, struct ipc_frame *f)
{
	struct ipc_passkey_options m;

	if (f->type != IPC_PASSKEY_OPTIONS || ipc_decode(f, &m, NULL) < 0)
		m.json = ipc_bytes(NULL, 0);
	show(c, m.json);
}

void
passkeys_challenge_post(struct call *c)
{
	static const char *const names[] = {"kind", NULL};
	struct ipc_passkey_challenge msg = {.token = ipc_str(c->token)};
	struct json_object *o;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	if (body_str(o, "kind", &msg.kind, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_vault(c, IPC_PASSKEY_CHALLENGE, &msg, challenged);
	json_object_put(o);
}

void
passkeys_post(struct call *c)
{
	static const char *const names[] = {
	    "label", "code", "credential", NULL};
	struct ipc_passkey_register msg = {.token = ipc_str(c->token)};
	struct passkeys_answer a;
	struct json_object *o;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	passkeys_init(&a);
	if (body_str(o, "label", &msg.label, &e) < 0 ||
	    (json_object_object_get_ex(o, "code", NULL) &&
		body_str(o, "code", &msg.code, &e) < 0) ||
	    passkeys_read(o, "credential", true, &a, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
	} else {
		msg.client_data = part(&a, PASSKEYS_CLIENT);
		msg.attestation = part(&a, PASSKEYS_DATA);
		ask_vault(c, IPC_PASSKEY_REGISTER, &msg, done);
	}
	passkeys_free(&a);
	json_object_put(o);
}

/* A credential's id is longer than a path's segment may be, so it is in a body,
 * and this is a POST (RFC 9110 section 9.3.5). */
void
passkeys_remove_post(struct call *c)
{
	static const char *const names[] = {"id", NULL};
	struct ipc_passkey_remove msg = {.token = ipc_str(c->token)};
	struct json_object *o;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	if (body_str(o, "id", &msg.credential, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_vault(c, IPC_PASSKEY_REMOVE, &msg, done);
	json_object_put(o);
}
