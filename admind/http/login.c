#include <json-c/json.h>

#include <stdio.h>
#include <string.h>

#include "body.h"
#include "jsonw.h"
#include "log.h"
#include "web.h"

enum { SMALL_MAX = 4096 };

/*
 * The connection's address without its port, which is another one each time;
 * never a header, which anyone may write.
 */
static void
source_of(struct call *c, char out[THROTTLE_SOURCE_LEN])
{
	const char *s = httpd_source(c->req), *colon = strrchr(s, ':');
	size_t n = colon != NULL ? (size_t)(colon - s) : strlen(s);

	if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
	}
	if (n >= THROTTLE_SOURCE_LEN)
		n = THROTTLE_SOURCE_LEN - 1;
	memcpy(out, s, n);
	out[n] = '\0';
}

/* What login and /api/me answer. The cookie's token is never in a body. */
static void
put_session(struct buf *b, struct ipc_bytes username, struct ipc_bytes role,
    struct ipc_bytes csrf, uint64_t expires_ms)
{
	char when[TIME_TEXT_LEN + 1];
	struct jsonw w;

	time_text(expires_ms * 1000, when);
	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_strn(&w, "username", username.p, username.n);
	jsonw_kv_strn(&w, "role", role.p, role.n);
	jsonw_kv_strn(&w, "csrf_token", csrf.p, csrf.n);
	jsonw_kv_str(&w, "expires_at", when);
	jsonw_obj_end(&w);
}

/*
 * HttpOnly: no script reads it. SameSite=Strict: no other site's page makes a
 * browser send it. Not Secure: this listener is plain HTTP on loopback.
 */
static void
set_cookie(struct httpd_req *req, const char *token, uint64_t seconds)
{
	char text[160];

	snprintf(text, sizeof(text),
	    "mcpbox_session=%s; Path=/; HttpOnly; SameSite=Strict; "
	    "Max-Age=%llu",
	    token, (unsigned long long)seconds);
	httpd_header(req, "Set-Cookie", text);
	explicit_bzero(text, sizeof(text));
}

static void
logged_in(struct call *c, struct ipc_frame *f)
{
	struct ipc_login_ok ok;
	uint64_t now_ms = now_us() / 1000;
	char token[SESSION_TOKEN_LEN + 1], source[THROTTLE_SOURCE_LEN];
	struct buf b;
	struct err e;

	if (f->type != IPC_LOGIN_OK || ipc_decode(f, &ok, &e) < 0 ||
	    ok.token.n != SESSION_TOKEN_LEN || ok.expires_ms <= now_ms) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	source_of(c, source);
	throttle_reset(&c->web->throttle, source);
	memcpy(token, ok.token.p, SESSION_TOKEN_LEN);
	token[SESSION_TOKEN_LEN] = '\0';
	set_cookie(c->req, token, (ok.expires_ms - now_ms) / 1000);
	explicit_bzero(token, sizeof(token));
	buf_init(&b, SMALL_MAX);
	put_session(&b, ok.username, ok.role, ok.csrf, ok.expires_ms);
	reply_json(c, 200, &b);
	buf_free(&b);
}

/*
 * Each attempt is counted before it is judged, so that many at once gain
 * nothing.
 */
void
login_post(struct call *c)
{
	static const char *const names[] = {"username", "password", NULL};
	char source[THROTTLE_SOURCE_LEN];
	struct ipc_login msg = {0};
	struct json_object *o;
	uint64_t wait_ms;
	struct err e;

	source_of(c, source);
	if ((wait_ms = throttle_take(
		 &c->web->throttle, source, now_boot_ms())) > 0) {
		log_event(LOG_LV_WARN, "login_throttled", "source %s", source);
		problem_retry(c, FAILURE_RATE_LIMITED,
		    "too many logins from this address", wait_ms);
		return;
	}
	if (body_parse(c, names, &o) < 0)
		return;
	msg.source = ipc_str(source);
	if (body_str(o, "username", &msg.username, &e) < 0 ||
	    body_str(o, "password", &msg.password, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_vault(c, IPC_LOGIN, &msg, logged_in);
	json_object_put(o);
}

static void
logged_out(struct call *c, struct ipc_frame *f)
{
	(void)f;
	set_cookie(c->req, "", 0);
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
	char source[THROTTLE_SOURCE_LEN];

	(void)f;
	source_of(c, source);
	throttle_reset(&c->web->throttle, source);
	reply_empty(c, 204);
}

/* The old password is asked for again: a borrowed browser can't take over an
 * account. Guesses are throttled like logins. */
void
password_post(struct call *c)
{
	static const char *const names[] = {
	    "old_password", "new_password", NULL};
	struct ipc_password msg = {.token = ipc_str(c->token)};
	char source[THROTTLE_SOURCE_LEN];
	struct json_object *o;
	uint64_t wait_ms;
	struct err e;

	source_of(c, source);
	if ((wait_ms = throttle_take(
		 &c->web->throttle, source, now_boot_ms())) > 0) {
		log_event(
		    LOG_LV_WARN, "password_throttled", "source %s", source);
		problem_retry(c, FAILURE_RATE_LIMITED,
		    "too many attempts from this address", wait_ms);
		return;
	}
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
me_known(struct call *c, struct ipc_frame *f)
{
	struct ipc_session_info info;
	struct buf b;
	struct err e;

	if (f->type != IPC_SESSION_INFO || ipc_decode(f, &info, &e) < 0) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, SMALL_MAX);
	put_session(&b, info.username, info.role, info.csrf, info.expires_ms);
	reply_json(c, 200, &b);
	buf_free(&b);
}

void
me_get(struct call *c)
{
	struct ipc_whoami msg = {.token = ipc_str(c->token)};

	ask_vault(c, IPC_WHOAMI, &msg, me_known);
}
