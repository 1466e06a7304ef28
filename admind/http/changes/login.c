#include <json-c/json.h>

#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "guard.h"
#include "jsonw.h"
#include "passkeys.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

enum {
	SMALL_MAX = 4096,
	/* The longest time for which browsers keep a cookie; the vault accepts
	 * the device's cookie for the same time. */
	DEVICE_AGE_S = 400 * 86400
};

/* Copies the client's address without the port, which differs each time. The
 * address is never taken from a header, which anyone may write. */
void
login_source(struct call *c, char out[LOGIN_SOURCE_LEN])
{
	const char *s = httpd_source(c->req), *colon = strrchr(s, ':');
	size_t n = colon != NULL ? (size_t)(colon - s) : strlen(s);

	if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
	}
	if (n >= LOGIN_SOURCE_LEN)
		n = LOGIN_SOURCE_LEN - 1;
	memcpy(out, s, n);
	out[n] = '\0';
}

/* Writes the members that the answers of login and /api/me both have. half: the
 * token's second half for login, NULL for /api/me, whose asker has that half
 * already. The first half is in a cookie and never in a body. */
static void
put_session(struct jsonw *w, struct ipc_bytes username, struct ipc_bytes role,
    const char *half, uint64_t expires_ms, uint64_t idle_ms)
{
	char when[TIME_TEXT_LEN + 1], idle[TIME_TEXT_LEN + 1];

	time_text(expires_ms * 1000, when);
	time_text(idle_ms * 1000, idle);
	jsonw_kv_strn(w, "username", username.p, username.n);
	jsonw_kv_strn(w, "role", role.p, role.n);
	if (half != NULL)
		jsonw_kv_str(w, "csrf_token", half);
	jsonw_kv_str(w, "expires_at", when);
	jsonw_kv_str(w, "idle_expires_at", idle);
}

/* Sets the login's cookie. reply_cookie names its protections. */
static void
set_cookie(struct call *c, const char *half, uint64_t seconds)
{
	reply_cookie(c, "mcpbox_session", ipc_str(half), "/", seconds);
}

void
login_done(struct call *c, struct ipc_frame *f)
{
	struct ipc_login_ok ok;
	uint64_t now_ms = now_us() / 1000;
	char half[2][LOGIN_HALF + 1];
	struct jsonw w;
	struct buf b;
	struct err e;

	if (f->type != IPC_LOGIN_OK || ipc_decode(f, &ok, &e) < 0 ||
	    ok.token.n != LOGIN_TEXT || ok.expires_ms <= now_ms ||
	    !guard_device_text(ok.device)) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	for (int i = 0; i < 2; i++) {
		memcpy(half[i], ok.token.p + i * LOGIN_HALF, LOGIN_HALF);
		half[i][LOGIN_HALF] = '\0';
	}
	set_cookie(c, half[0], (ok.expires_ms - now_ms) / 1000);
	/* The device's cookie opens nothing. By http only requests to
	 * /api/login carry the cookie. */
	if (ok.device.n > 0)
		reply_cookie(
		    c, "mcpbox_device", ok.device, "/api/login", DEVICE_AGE_S);
	buf_init(&b, SMALL_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	put_session(
	    &w, ok.username, ok.role, half[1], ok.expires_ms, ok.idle_ms);
	jsonw_kv_bool(&w, "passkey_required", ok.passkey == 1);
	jsonw_obj_end(&w);
	explicit_bzero(half, sizeof(half));
	reply_json(c, 200, &b);
	buf_free(&b);
}

/* Reads an optional member; *out stays as it is if absent. 0 or -1. */
static int
optional(struct json_object *o, const char *name, struct ipc_bytes *out,
    struct err *e)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, name, &v))
		return 0;
	return body_str(o, name, out, e);
}

/*
 * Refuses a login at the name localhost. A login's token has two halves: one in
 * a cookie, and one that a page keeps in sessionStorage. If the login were made
 * at the name localhost, a program of any user of this machine could get both.
 * The program listens at [::1] and our port. A browser that prefers IPv6 then
 * connects to that program for localhost, as the same origin: it sends the
 * cookie, and the program's page reads sessionStorage.
 *
 * A page of ours is never at that name (page.c). Other clients are told here
 * which address to use (docs/decisions/0084).
 */
bool
login_at_the_address(struct call *c)
{
	char fix[160];
	const char *host, *port = "";
	unsigned count;

	host = http1_field(httpd_request(c->req), "host", &count);
	if (host == NULL || !guard_localhost(host, &port))
		return true;
	snprintf(fix, sizeof(fix),
	    "Use http://%s%s for this and all that follows.",
	    c->web->ipv6 ? "[::1]" : "127.0.0.1", port);
	problem_send(c, FAILURE_FORBIDDEN_ORIGIN,
	    "a login is made at this server's address, not at the name "
	    "localhost: another program may answer to that name",
	    fix);
	return false;
}

/*
 * Sends a login to the vault. The vault limits guesses, because no caller can
 * bypass the vault. The vault recognises the browser by the device's cookie, or
 * a person by the code that root gave. A malformed cookie counts as no cookie.
 */
void
login_post(struct call *c)
{
	static const char *const names[] = {
	    "username", "password", "device", NULL};
	const struct http1_request *r = httpd_request(c->req);
	char source[LOGIN_SOURCE_LEN], device[DEVICE_TEXT_MAX + 1] = "";
	const char *cookie, *agent;
	struct ipc_login msg = {0};
	struct json_object *o;
	unsigned count;
	struct err e;

	if (!login_at_the_address(c))
		return;
	login_source(c, source);
	if (body_parse(c, names, &o) < 0)
		return;
	msg.source = ipc_str(source);
	agent = http1_field(r, "user-agent", &count);
	if (agent != NULL && count == 1 &&
	    utf8_valid((const uint8_t *)agent, strlen(agent)))
		msg.agent = ipc_str(agent);
	cookie = http1_field(r, "cookie", &count);
	if (cookie != NULL && count == 1 &&
	    guard_device(cookie, c->https, device) == 1)
		msg.device = ipc_str(device);
	if (body_str(o, "username", &msg.username, &e) < 0 ||
	    body_str(o, "password", &msg.password, &e) < 0 ||
	    optional(o, "device", &msg.device, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_vault(c, IPC_LOGIN, &msg, login_done);
	json_object_put(o);
}

static void
logged_out(struct call *c, struct ipc_frame *f)
{
	(void)f;
	set_cookie(c, "", 0);
	reply_empty(c, 204);
}

void
logout_post(struct call *c)
{
	struct ipc_logout msg = {.token = ipc_str(c->token)};

	ask_vault(c, IPC_LOGOUT, &msg, logged_out);
}

static void
password_changed(struct call *c, struct ipc_frame *f)
{
	(void)f;
	reply_empty(c, 204);
}

/* Changes the asker's password. The old password is asked for again, so that a
 * borrowed browser can't take over an account. Wrong passwords count against
 * this login. */
void
password_post(struct call *c)
{
	static const char *const names[] = {
	    "old_password", "new_password", NULL};
	struct ipc_password msg = {.token = ipc_str(c->token)};
	struct json_object *o;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	if (body_str(o, "old_password", &msg.old, &e) < 0 ||
	    body_str(o, "new_password", &msg.new, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_vault(c, IPC_PASSWORD, &msg, password_changed);
	json_object_put(o);
}

static void
proven(struct call *c, struct ipc_frame *f)
{
	(void)f;
	reply_empty(c, 204);
}

/* Shows the vault the asker's password once more, or a passkey. For a few
 * minutes the login may then approve, and change rules and administrators.
 * Wrong answers count against this login. */
void
proof_post(struct call *c)
{
	static const char *const names[] = {"password", "assertion", NULL};
	struct ipc_prove msg = {.token = ipc_str(c->token)};
	struct passkeys_answer answer;
	char source[LOGIN_SOURCE_LEN];
	struct json_object *o;
	struct err e;

	login_source(c, source);
	msg.source = ipc_str(source);
	if (body_parse(c, names, &o) < 0)
		return;
	passkeys_init(&answer);
	if (json_object_object_length(o) > 1)
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "the body has password or assertion, not both", NULL);
	else if (json_object_object_get_ex(o, "assertion", NULL)) {
		if (passkeys_read(o, "assertion", false, &answer, &e) < 0)
			problem_send(c, e.failure, e.text, NULL);
		else
			passkeys_ask(c, "proof", &answer, proven);
	} else if (body_str(o, "password", &msg.password, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_vault(c, IPC_PROVE, &msg, proven);
	passkeys_free(&answer);
	json_object_put(o);
}

static void
me_known(struct call *c, struct ipc_frame *f)
{
	char until[TIME_TEXT_LEN + 1];
	struct ipc_session_info info;
	struct jsonw w;
	struct buf b;
	struct err e;

	if (f->type != IPC_SESSION_INFO || ipc_decode(f, &info, &e) < 0) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, SMALL_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	put_session(
	    &w, info.username, info.role, NULL, info.expires_ms, info.idle_ms);
	jsonw_name(&w, "proof_until");
	if (info.proof_until_ms == 0) {
		jsonw_null(&w);
	} else {
		time_text(info.proof_until_ms * 1000, until);
		jsonw_str(&w, until);
	}
	jsonw_obj_end(&w);
	reply_json(c, 200, &b);
	buf_free(&b);
}

/* The login is whole now, and its cookie lives as long as it. */
static void
completed(struct call *c, struct ipc_frame *f)
{
	uint64_t now_ms = now_us() / 1000;
	struct ipc_session_info info;
	char half[LOGIN_HALF + 1];

	if (f->type == IPC_SESSION_INFO && ipc_decode(f, &info, NULL) == 0 &&
	    info.expires_ms > now_ms) {
		memcpy(half, c->token, LOGIN_HALF);
		half[LOGIN_HALF] = '\0';
		set_cookie(c, half, (info.expires_ms - now_ms) / 1000);
		explicit_bzero(half, sizeof(half));
	}
	me_known(c, f);
}

/* Shows the vault the passkey that a login by password waits for. */
void
login_passkey_post(struct call *c)
{
	static const char *const names[] = {"assertion", NULL};
	struct passkeys_answer answer;
	struct json_object *o;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	passkeys_init(&answer);
	if (passkeys_read(o, "assertion", false, &answer, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		passkeys_ask(c, "login", &answer, completed);
	passkeys_free(&answer);
	json_object_put(o);
}

void
me_get(struct call *c)
{
	struct ipc_whoami msg = {.token = ipc_str(c->token)};

	ask_vault(c, IPC_WHOAMI, &msg, me_known);
}
