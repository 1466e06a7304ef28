/*
 * admind-http whole, with real sockets: its routes and its IPC clients run on
 * a loop in a child, beside an admind and a vault that play their parts; the
 * test is the browser.
 */
#include "unit.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

#include "crypto.h"
#include "http_client.h"
#include "http_proxied.h"
#include "http_streams.h"
#include "log.h"
#include "reply.h"
#include "routes.h"
#include "version.h"
#include "web.h"

/* A login's token: the cookie's half, the header's. */
#define HALF     "ttttttttttttttttttttttttttttttttttttttttttt"
#define CSRF     "ccccccccccccccccccccccccccccccccccccccccccc"
#define TOKEN    HALF CSRF
#define PENDING  "018f0000-0000-7000-8000-000000000001"
#define DECIDED  "018f0000-0000-7000-8000-000000000002"
#define UNPROVEN "018f0000-0000-7000-8000-000000000004"
#define FORGED   "018f0000-0000-7000-8000-000000000003"

static char tmp[] = "/tmp/mcpbox-http-XXXXXX";
static pid_t child;
static struct buf preimage;
static char hash[HEX32_LEN + 1];
static uint64_t proof_until_ms; /* the child's */

/* ---- the child: admind and the vault as they might be ---- */

static bool
logged_in(struct ipc_bytes token)
{
	return ipc_streq(token, TOKEN);
}

/* Of admind's messages: no token, but what to ask the vault by. */
static bool
known(struct ipc_bytes token)
{
	char text[LOGIN_HASH_TEXT + 1];
	struct ipc_hash h;

	sha256(TOKEN, strlen(TOKEN), &h);
	b64url_encode(&h, sizeof(h), text);
	return ipc_streq(token, text);
}

static int
vault_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct ipc_login login;
	struct ipc_whoami who;
	struct ipc_approve approve;
	struct ipc_reject reject;
	struct ipc_password password;
	struct ipc_prove prove;
	struct ipc_hash want;
	struct ipc_id decided;
	struct err e;
	struct ipc_login_ok ok = {.token = ipc_str(TOKEN),
	    .username = ipc_str("admin"),
	    .role = ipc_str("administrator"),
	    .expires_ms = now_us() / 1000 + 3600000,
	    .idle_ms = now_us() / 1000 + 60000,
	    .device = ipc_str("DEV-ice_1")};
	struct ipc_session_info info = {.username = ipc_str("admin"),
	    .role = ipc_str("administrator"),
	    .expires_ms = ok.expires_ms,
	    .idle_ms = ok.idle_ms,
	    .proof_until_ms = proof_until_ms};

	(void)arg;
	switch (f->type) {
	case IPC_LOGIN:
		if (ipc_decode(f, &login, &e) < 0)
			return -1;
		if (ipc_streq(login.username, "guessed"))
			return ipc_refuse(p, login.request,
			    FAILURE_RATE_LIMITED, "too many", 2500);
		/* from the cookie, or as a code; never both */
		if (ipc_streq(login.username, "known") &&
		    !ipc_streq(login.device, "c00kie") &&
		    !ipc_streq(login.device, "code"))
			return -1;
		if (!ipc_streq(login.source, "127.0.0.1") ||
		    !ipc_streq(login.password, "pass word"))
			return ipc_refuse(p, login.request, FAILURE_BAD_LOGIN,
			    "wrong user name or password", 0);
		return ipc_answer(p, login.request, IPC_LOGIN_OK, &ok);
	case IPC_WHOAMI:
		if (ipc_decode(f, &who, &e) < 0)
			return -1;
		if (!logged_in(who.token))
			return ipc_refuse(p, who.request,
			    FAILURE_UNAUTHENTICATED, "no such login", 0);
		return ipc_answer(p, who.request, IPC_SESSION_INFO, &info);
	case IPC_APPROVE:
		if (ipc_decode(f, &approve, &e) < 0 ||
		    !logged_in(approve.token))
			return -1;
		uuid_parse(DECIDED, 36, &decided);
		if (memcmp(decided.b, approve.approval.b, 16) == 0)
			return ipc_refuse(p, approve.request,
			    FAILURE_ALREADY_DECIDED, "decided", 0);
		uuid_parse(UNPROVEN, 36, &decided);
		if (memcmp(decided.b, approve.approval.b, 16) == 0 &&
		    proof_until_ms == 0)
			return ipc_refuse(p, approve.request,
			    FAILURE_PROOF_REQUIRED, "prove it", 0);
		sha256(preimage.p, preimage.len, &want);
		if (memcmp(want.b, approve.reviewed.b, 32) != 0)
			return ipc_refuse(p, approve.request,
			    FAILURE_HASH_MISMATCH, "another content", 0);
		return ipc_answer_ok(p, approve.request);
	case IPC_REJECT:
		if (ipc_decode(f, &reject, &e) < 0 ||
		    !ipc_streq(reject.reason, "no \"thanks\""))
			return -1;
		return ipc_answer_ok(p, reject.request);
	case IPC_PASSWORD:
		if (ipc_decode(f, &password, &e) < 0)
			return -1;
		return ipc_answer_ok(p, password.request);
	case IPC_PROVE:
		if (ipc_decode(f, &prove, &e) < 0 || !logged_in(prove.token) ||
		    !ipc_streq(prove.source, "127.0.0.1") ||
		    !ipc_streq(prove.password, "pass word"))
			return -1;
		proof_until_ms = ok.idle_ms;
		return ipc_answer_ok(p, prove.request);
	case IPC_LOGOUT:
		return ipc_answer_ok(p, f->request);
	default:
		return -1;
	}
}

static int
admind_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct ipc_admin_query q;
	struct ipc_approval_get get;
	struct ipc_approval_content content = {.kind = ipc_str("tool"),
	    .state = ipc_str("pending"),
	    .circumstances = ipc_str("\"server\":\"demo\"")};
	struct ipc_admin_json json;
	struct ipc_id forged;
	struct err e;
	char text[512];

	(void)arg;
	if (f->type == IPC_ACTIVITY_FOLLOW || f->type == IPC_SCRIPT_KEY_CHECK)
		return http_streams_message(p, f);
	if (f->type == IPC_ACTIVITY_LEAVE)
		return 0;
	if (f->type == IPC_APPROVAL_GET) {
		if (ipc_decode(f, &get, &e) < 0)
			return -1;
		if (!known(get.token))
			return ipc_refuse(p, get.request,
			    FAILURE_UNAUTHENTICATED, "no such login", 0);
		content.preimage = ipc_bytes(preimage.p, preimage.len);
		uuid_parse(FORGED, 36, &forged);
		if (memcmp(forged.b, get.approval.b, 16) == 0)
			content.circumstances =
			    ipc_str("\"content\":{\"code\":\"canary\"}");
		return ipc_answer(
		    p, get.request, IPC_APPROVAL_CONTENT, &content);
	}
	if (f->type != IPC_ADMIN_QUERY || ipc_decode(f, &q, &e) < 0)
		return -1;
	if (!known(q.token))
		return ipc_refuse(
		    p, q.request, FAILURE_UNAUTHENTICATED, "no such login", 0);
	if (ipc_streq(q.what, "tool"))
		return ipc_refuse(
		    p, q.request, FAILURE_NOT_FOUND, "no such tool", 0);
	if (ipc_streq(q.what, "audit")) /* not JSON: a broken admind */
		json.json = ipc_str("{\"items\":[}");
	else {
		snprintf(text, sizeof(text),
		    "{\"items\":[],\"what\":\"%.*s\",\"state\":\"%.*s\","
		    "\"limit\":%u}",
		    (int)q.what.n, (const char *)q.what.p,
		    (int)q.filter_state.n, (const char *)q.filter_state.p,
		    q.limit);
		json.json = ipc_str(text);
	}
	return ipc_answer(p, q.request, IPC_ADMIN_JSON, &json);
}

static void
answering(struct httpd_req *req, void *arg)
{
	(void)arg;
	reply_headers(req);
}

_Noreturn static void
serve(int report)
{
	static const struct httpd_handlers handlers = {
	    .request = routes_request,
	    .gone = routes_gone,
	    .answering = answering,
	    .large = routes_large,
	};
	static const struct ipc_handlers vault = {.message = vault_message},
					 admind = {.message = admind_message},
					 none = {.message = NULL};
	static const struct httpd_limits limits = {.connections = 64,
	    .connections_per_source = 64,
	    .header_ms = 5000,
	    .body_ms = 5000,
	    .idle_ms = 5000,
	    .head_max = 32768,
	    .body_max = WEB_BODY_MAX,
	    .large_max = WEB_LARGE_MAX,
	    .large_at_once = WEB_LARGE_AT_ONCE};
	static struct web web;
	struct event_base *base = event_base_new();
	uid_t me = getuid();
	char path[128], address[64] = "";
	struct err e;

	web.base = base;
	web.origins = HTTP_PROXIED_ORIGIN;
	signal(SIGPIPE, SIG_IGN);
	log_init("test", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	snprintf(path, sizeof(path), "%s/a.sock", tmp);
	if (ipc_server_new(base, path, "admind", IPC_ROLE_ADMIND, IPC_ROLE_WEB,
		&me, 1, &admind, NULL, &e) == NULL)
		log_fatal("test", "%s", e.text);
	if ((web.admind = ipc_client_new(base, path, "admind", IPC_ROLE_WEB,
		 IPC_ROLE_ADMIND, &none, NULL, &e)) == NULL)
		log_fatal("test", "%s", e.text);
	snprintf(path, sizeof(path), "%s/v.sock", tmp);
	if (ipc_server_new(base, path, "vault", IPC_ROLE_VAULT, IPC_ROLE_WEB,
		&me, 1, &vault, NULL, &e) == NULL)
		log_fatal("test", "%s", e.text);
	if ((web.vault = ipc_client_new(base, path, "vault", IPC_ROLE_WEB,
		 IPC_ROLE_VAULT, &none, NULL, &e)) == NULL)
		log_fatal("test", "%s", e.text);
	if ((web.httpd = httpd_new(base, "127.0.0.1", 0, NULL, &limits,
		 &handlers, &web, address, sizeof(address), &e)) == NULL)
		log_fatal("test", "%s", e.text);
	/* Both connections are up before the test starts. */
	while (ipc_client_peer(web.admind) == NULL ||
	    ipc_client_peer(web.vault) == NULL)
		event_base_loop(base, EVLOOP_ONCE);
	if (write(report, address, sizeof(address)) < 0)
		_exit(1);
	event_base_dispatch(base);
	_exit(1);
}

/* ---- the browser ---- */

#define COOKIE "Cookie: mcpbox_session=" HALF
#define HEADER "X-CSRF-Token: " CSRF
#define LOGIN  COOKIE "\r\n" HEADER
#define JSON   "\r\nContent-Type: application/json"

static void
expect(int got, int status, const char *holds)
{
	if (got != status || strstr(answer, holds) == NULL)
		fail_msg("want %d with %s, got: %s", status, holds, answer);
	/* on every answer */
	assert_non_null(strstr(answer, "\r\nCache-Control: no-store\r\n"));
	assert_non_null(
	    strstr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_non_null(strstr(answer, "frame-ancestors 'none'"));
	if (status >= 400)
		assert_non_null(strstr(answer, "application/problem+json"));
}

static void
login(void **state)
{
	static const char good[] =
	    "{\"username\":\"admin\",\"password\":\"pass word\"}";

	(void)state;
	expect(
	    http("POST", "/api/login", "Content-Type: application/json", good),
	    200, "\"csrf_token\":\"" CSRF "\"");
	assert_non_null(strstr(answer,
	    "\r\nSet-Cookie: mcpbox_session=" HALF
	    "; Path=/; HttpOnly; SameSite=Strict; Max-Age=3"));
	assert_non_null(strstr(answer,
	    "\r\nSet-Cookie: mcpbox_device=DEV-ice_1; Path=/api/login; "
	    "HttpOnly; SameSite=Strict; Max-Age=34560000"));
	assert_non_null(strstr(answer, "\"idle_expires_at\":\"2"));
	/* each half is in its place alone */
	assert_null(strstr(strstr(answer, "\r\n\r\n"), HALF));
	*strstr(answer, "\r\n\r\n") = '\0';
	assert_null(strstr(answer, CSRF));
	expect(http("POST", "/api/login", "Content-Type: application/json",
		   "{\"username\":\"admin\",\"password\":\"x\"}"),
	    401, "\"failure_mode\":\"bad_login\"");
	assert_null(strstr(answer, "Set-Cookie"));
	expect(http("POST", "/api/login", "Content-Type: text/plain", good),
	    415, "application/json");
	expect(http("POST", "/api/login",
		   "Content-Type: application/json\r\n"
		   "Origin: http://evil.example",
		   good),
	    403, "forbidden_origin");
	expect(
	    http("POST", "/api/login",
		"Content-Type: application/json\r\nHost: evil.example", good),
	    403, "forbidden_origin");
	expect(
	    http("POST", "/api/login",
		"Content-Type: application/json\r\nHost: localhost:8000", good),
	    403, "Use http://127.0.0.1:8000");
	expect(http("POST", "/api/login", "Content-Type: application/json",
		   "{\"username\":\"admin\"}"),
	    400, "password is missing");
	expect(http("POST", "/api/login", "Content-Type: application/json",
		   "{\"username\":\"a\",\"password\":\"b\",\"x\":1}"),
	    400, "unknown member");
	expect(http("POST", "/api/login", "Content-Type: application/json",
		   "{\"username\":\"a\",\"password\":\"b\\u0000\"}"),
	    400, "U+0000");
	expect(
	    http("POST", "/api/login", "Content-Type: application/json", "[]"),
	    400, "not a JSON object");
	expect(http("GET", "/api/login", COOKIE, NULL), 405, "\r\nAllow: POST");
}

static void
reads(void **state)
{
	(void)state;
	expect(http("GET", "/health", "Accept: */*", NULL), 200,
	    "{\"status\":\"ok\",\"admind\":true,\"vault\":true}");
	expect(http("GET", "/", "Host: 127.0.0.1:8000", NULL), 200,
	    "Content-Type: text/html; charset=utf-8\r\n");
	expect(http("GET", "/", "Host: localhost:8000", NULL), 307,
	    "Location: http://127.0.0.1:8000/\r\n");
	expect(http("GET", "/", "Host: [::1]:8000", NULL), 200, "<h1>");
	expect(http("GET", "/api/servers", "Accept: */*", NULL), 401,
	    "unauthenticated");
	expect(http("GET", "/api/servers",
		   "Cookie: mcpbox_session="
		   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n" HEADER,
		   NULL),
	    401, "no such login");
	expect(
	    http("GET", "/api/me", LOGIN, NULL), 200, "\"username\":\"admin\"");
	expect(http("GET", "/api/servers", LOGIN, NULL), 200,
	    "\"what\":\"servers\",\"state\":\"\",\"limit\":50}");
	expect(http("GET", "/api/approvals?state=pending&limit=7", LOGIN, NULL),
	    200, "\"what\":\"approvals\",\"state\":\"pending\",\"limit\":7}");
	expect(http("GET", "/api/approvals?stat=pending", LOGIN, NULL), 400,
	    "unknown parameter");
	expect(http("GET", "/api/tools/" PENDING, LOGIN, NULL), 404,
	    "\"failure_mode\":\"not_found\"");
	expect(http("GET", "/api/audit", LOGIN, NULL), 500, "internal");
	assert_null(strstr(answer, "[}"));
	expect(http("GET", "/nothing", LOGIN, NULL), 404, "not_found");
	expect(http("POST", "/api/setup", LOGIN JSON, "{}"), 404, "not_found");
	expect(http("DELETE", "/api/modules", LOGIN, NULL), 405,
	    "\r\nAllow: GET, HEAD\r\n");
}

static void
approvals(void **state)
{
	char fields[512], text[256];

	(void)state;
	expect(http("GET", "/api/approvals/" PENDING, LOGIN, NULL), 200,
	    "\"content\":{\"format\":1,");
	snprintf(text, sizeof(text), "\r\nETag: \"%s\"\r\n", hash);
	assert_non_null(strstr(answer, text));
	snprintf(text, sizeof(text), "\"hash\":\"%s\"", hash);
	assert_non_null(strstr(answer, text));
	/* admind's second content is no content */
	expect(http("GET", "/api/approvals/" FORGED, LOGIN, NULL), 500,
	    "internal");
	assert_null(strstr(answer, "canary"));
	assert_null(strstr(answer, "ETag"));
	expect(
	    http("GET", "/api/approvals/123", LOGIN, NULL), 404, "not_found");

	/* no login, either half of one, another's half */
	snprintf(fields, sizeof(fields), "If-Match: \"%s\"", hash);
	expect(http("POST", "/api/approvals/" PENDING "/approve", fields, NULL),
	    401, "unauthenticated");
	snprintf(fields, sizeof(fields), COOKIE "\r\nIf-Match: \"%s\"", hash);
	expect(http("POST", "/api/approvals/" PENDING "/approve", fields, NULL),
	    401, "the cookie alone is no login");
	snprintf(fields, sizeof(fields), HEADER "\r\nIf-Match: \"%s\"", hash);
	expect(http("POST", "/api/approvals/" PENDING "/approve", fields, NULL),
	    401, "the cookie mcpbox_session is missing");
	snprintf(fields, sizeof(fields),
	    COOKIE "\r\nX-CSRF-Token: %.42sx\r\nIf-Match: \"%s\"", CSRF, hash);
	expect(http("POST", "/api/approvals/" PENDING "/approve", fields, NULL),
	    401, "no such login");
	/* the hash */
	expect(http("POST", "/api/approvals/" PENDING "/approve", LOGIN, NULL),
	    428, "hash_required");
	expect(http("POST", "/api/approvals/" PENDING "/approve",
		   LOGIN "\r\nIf-Match: *", NULL),
	    428, "hash_required");
	snprintf(fields, sizeof(fields), LOGIN "\r\nIf-Match: %s", hash);
	expect(http("POST", "/api/approvals/" PENDING "/approve", fields, NULL),
	    412, "hash_mismatch");
	snprintf(fields, sizeof(fields), LOGIN "\r\nIf-Match: \"%.63s%c\"",
	    hash, hash[63] == '0' ? '1' : '0');
	expect(http("POST", "/api/approvals/" PENDING "/approve", fields, NULL),
	    412, "hash_mismatch");
	snprintf(fields, sizeof(fields), LOGIN "\r\nIf-Match: \"%s\"", hash);
	expect(http("POST", "/api/approvals/" DECIDED "/approve", fields, NULL),
	    409, "already_decided");
	expect(http("POST", "/api/approvals/" PENDING "/approve", fields, NULL),
	    200, "{\"id\":\"" PENDING "\",\"state\":\"approved\"}");
	expect(http("POST", "/api/approvals/" PENDING "/reject", LOGIN JSON,
		   "{\"reason\":\"no \\\"thanks\\\"\"}"),
	    200, "\"state\":\"rejected\"");
	expect(
	    http("POST", "/api/approvals/" PENDING "/reject", LOGIN JSON, "{}"),
	    400, "reason is missing");
}

#define ITEM(id) "{\"id\":\"" id "\",\"hash\":\"%s\"}"
#define BULK(a, b) \
	"{\"action\":\"approve\",\"items\":[" ITEM(a) "," ITEM(b) "]}"

/* A page is told in time, asks the person, and sends the request again. */
static void
proof(void **state)
{
	static const char me[] = "/api/me", path[] = "/api/proof",
			  many[] = "/api/approvals/bulk",
			  yes[] = "/api/approvals/" UNPROVEN "/approve",
			  good[] = "{\"password\":\"pass word\"}",
			  wrong[] = "{\"no_such\":1}";
	char fields[512], body[512];

	(void)state;
	snprintf(fields, sizeof(fields), LOGIN "\r\nIf-Match: \"%s\"", hash);
	expect(http("GET", me, LOGIN, NULL), 200, "\"proof_until\":null");
	expect(http("POST", yes, fields, NULL), 403, "proof_required");
	assert_non_null(strstr(answer, "POST /api/proof with your password"));
	/* All of many are refused if the first one is; later ones alone. */
	snprintf(body, sizeof(body), BULK(UNPROVEN, PENDING), hash, hash);
	expect(http("POST", many, LOGIN JSON, body), 403, "nothing was");
	snprintf(body, sizeof(body), BULK(PENDING, UNPROVEN), hash, hash);
	expect(http("POST", many, LOGIN JSON, body), 200, "\"failed\":1}");
	assert_non_null(strstr(answer, "\"failure_mode\":\"proof_required\""));
	/* A key or token is refused before the body is read. */
	expect(http("POST", "/api/keys", LOGIN JSON, wrong), 403,
	    "proof_required");
	assert_non_null(strstr(answer, "at most five minutes old"));
	expect(http("POST", "/api/tokens", LOGIN JSON, wrong), 403,
	    "proof_required");
	/* Both halves, and nothing but the right password. */
	expect(http("POST", path, COOKIE JSON, good), 401, "unauthenticated");
	expect(http("POST", path, LOGIN JSON, good), 204, "HTTP/1.1 204");
	expect(http("GET", me, LOGIN, NULL), 200, "\"proof_until\":\"2");
	expect(http("POST", yes, fields, NULL), 200, "\"approved\"");
	expect(http("POST", "/api/keys", LOGIN JSON, wrong), 400,
	    "unknown member");
	expect(http("POST", "/api/tokens", LOGIN JSON, wrong), 400,
	    "unknown member");
}

static void
account(void **state)
{
	(void)state;
	expect(http("POST", "/api/password", LOGIN JSON,
		   "{\"old_password\":\"a\",\"new_password\":\"b\"}"),
	    204, "HTTP/1.1 204");
	expect(http("POST", "/api/logout", COOKIE, NULL), 401, "Sign in again");
	expect(http("POST", "/api/logout", LOGIN, NULL), 204,
	    "Set-Cookie: mcpbox_session=; Path=/; HttpOnly; SameSite=Strict; "
	    "Max-Age=0\r\n");
}

/* The last: it uses up the source's attempts. */
/* How often is the vault's to say; which browser it is, ours to pass on. */
static void
throttled(void **state)
{
	static const char guess[] =
	    "{\"username\":\"guessed\",\"password\":\"x\"}";
	static const char known[] =
	    "{\"username\":\"known\",\"password\":\"pass word\"}";
	static const char code[] = "{\"username\":\"known\",\"password\":"
				   "\"pass word\",\"device\":\"code\"}";

	(void)state;
	expect(
	    http("POST", "/api/login", "Content-Type: application/json", guess),
	    429, "\"failure_mode\":\"rate_limited\"");
	assert_non_null(strstr(answer, "\r\nRetry-After: 3\r\n"));
	expect(http("POST", "/api/login",
		   "Cookie: mcpbox_device=c00kie\r\n"
		   "Content-Type: application/json",
		   known),
	    200, "\"csrf_token\"");
	expect(
	    http("POST", "/api/login", "Content-Type: application/json", code),
	    200, "\"csrf_token\"");
}

static int
start(void **state)
{
	struct ipc_hash h;
	char address[64];
	int fds[2];

	(void)state;
	buf_init(&preimage, 4096);
	version_begin(&preimage);
	tlv_put_u64(&preimage, VERSION_FORMAT, 1);
	tlv_puts(&preimage, VERSION_CODE, "def main(): return 1");
	sha256(preimage.p, preimage.len, &h);
	hex_encode(h.b, sizeof(h.b), hash);
	if (mkdtemp(tmp) == NULL || pipe(fds) < 0 || (child = fork()) < 0)
		return -1;
	if (child == 0) {
		close(fds[0]);
		serve(fds[1]);
	}
	close(fds[1]);
	if (read(fds[0], address, sizeof(address)) != sizeof(address))
		return -1;
	close(fds[0]);
	http_port = (uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10);
	return http_port != 0 ? 0 : -1;
}

static int
stop(void **state)
{
	char path[128];

	(void)state;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	snprintf(path, sizeof(path), "%s/a.sock", tmp);
	unlink(path);
	snprintf(path, sizeof(path), "%s/v.sock", tmp);
	unlink(path);
	rmdir(tmp);
	buf_free(&preimage);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(login),
	    cmocka_unit_test(http_proxied),
	    cmocka_unit_test(reads),
	    cmocka_unit_test(approvals),
	    cmocka_unit_test(proof),
	    cmocka_unit_test(http_streams_busy),
	    cmocka_unit_test(account),
	    cmocka_unit_test(throttled),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
