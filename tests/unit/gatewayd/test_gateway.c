/*
 * gatewayd whole, between a false admind and a false sandboxd, over real
 * sockets in one loop: what each era answers, what each failure of a
 * neighbour becomes, and that RUN is sent once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/stat.h>

#include <cmocka.h>

#include "gateway.h"
#include "ids.h"
#include "json.h"
#include "log.h"
#include "../loop_client.h"

#define ENV                                     \
	"\"_meta\":{\"io.modelcontextprotocol/" \
	"protocolVersion\":\"2026-07-28\","     \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

static struct gateway gw;
static struct ipc_server *admind, *sandboxd;
static struct event_base *base;
static char run_dir[64], address[64], admind_path[128], sandboxd_path[128];

/* What the false neighbours saw. */
static unsigned runs, cancels, authorises, lists, ends;
static uint8_t last_run; /* first byte of the execution id */
static char last_args[256], last_client[256], last_protocol[32];
static uint64_t hanging; /* request id of a RUN left unanswered */
static struct ipc_peer *hanging_peer;
static struct ipc_peer *gateway_at_admind;
static bool attach_fails;

/* ---- admind ---- */

static void
catalogue(struct ipc_peer *p, uint64_t id)
{
	static const char *const items[][2] = {
	    {"a__one", "{\"name\":\"a__one\",\"inputSchema\":{ \"x\" : 1.0 }}"},
	    {"broken", "{\"name\":"},
	    {"a__two",
		"{\"name\":\"a__two\",\"inputSchema\":{\"properties\":{\"r\":{"
		"\"type\":\"string\",\"x-mcp-header\":\"R\"}}}}"},
	};
	struct ipc_catalogue_item m;
	struct ipc_catalogue_end e = {.revision = 1, .count = 3};
	size_t i;

	lists++;
	for (i = 0; i < 3; i++) {
		m.name = ipc_str(items[i][0]);
		m.json = ipc_str(items[i][1]);
		assert_int_equal(ipc_answer(p, id, IPC_CATALOGUE_ITEM, &m), 0);
	}
	assert_int_equal(ipc_answer(p, id, IPC_CATALOGUE_END, &e), 0);
}

static void
authorise(struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_authorise m;
	struct ipc_run_id id = {.timeout_ms = 1000};
	struct ipc_result res = {0};
	char *tool;

	assert_int_equal(ipc_decode(f, &m, NULL), 0);
	authorises++;
	snprintf(last_args, sizeof(last_args), "%.*s", (int)m.arguments.n,
	    (const char *)m.arguments.p);
	snprintf(last_client, sizeof(last_client), "%.*s", (int)m.client.n,
	    (const char *)m.client.p);
	snprintf(last_protocol, sizeof(last_protocol), "%.*s",
	    (int)m.protocol.n, (const char *)m.protocol.p);
	tool = ipc_strdup(m.tool);
	assert_non_null(tool);
	if (strncmp(tool, "t_", 2) == 0) {
		random_bytes(id.execution.b, 16);
		id.execution.b[0] = (uint8_t)tool[2];
		ipc_answer(p, f->request, IPC_RUN_ID, &id);
	} else if (strcmp(tool, "a__two") == 0) {
		id.execution.b[0] = 'o';
		ipc_answer(p, f->request, IPC_RUN_ID, &id);
	} else if (strcmp(tool, "mcpbox_ok") == 0) {
		res.body = ipc_str("{\"content\":[]}");
		ipc_answer(p, f->request, IPC_RESULT, &res);
	} else if (strcmp(tool, "mcpbox_error") == 0) {
		res.is_error = 1;
		res.failure = FAILURE_INVALID_ARGUMENTS;
		res.body = ipc_str("{\"content\":[],\"isError\":true}");
		ipc_answer(p, f->request, IPC_RESULT, &res);
	} else if (strcmp(tool, "busy") == 0) {
		ipc_refuse(p, f->request, FAILURE_BUSY, "full", 123);
	} else if (strcmp(tool, "forbidden") == 0) {
		ipc_refuse(p, f->request, FAILURE_FORBIDDEN, "no", 0);
	} else if (strcmp(tool, "capability") == 0) {
		ipc_refuse(p, f->request, FAILURE_CAPABILITY_REQUIRED,
		    "needs sampling", 0);
	} else if (strcmp(tool, "arguments") == 0) {
		ipc_refuse(
		    p, f->request, FAILURE_INVALID_ARGUMENTS, "bad \"x\"", 0);
	} else if (strstr(tool, "hang") == NULL) {
		ipc_refuse(
		    p, f->request, FAILURE_UNKNOWN_TOOL, "no such tool", 0);
	}
	free(tool);
}

static int
admind_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct ipc_authenticate who;
	struct ipc_identity id = {.cache_ms = 30000};
	struct ipc_gw_config c = {.listener = ipc_str("local"),
	    .session_key = ipc_bytes("0123456789abcdef0123456789abcdef", 32)};

	(void)arg;
	switch (f->type) {
	case IPC_GW_ATTACH:
		gateway_at_admind = p;
		if (attach_fails)
			return ipc_refuse(
			    p, f->request, FAILURE_VAULT_UNAVAILABLE, "", 0);
		return ipc_answer(p, f->request, IPC_GW_CONFIG, &c);
	case IPC_AUTHENTICATE:
		assert_int_equal(ipc_decode(f, &who, NULL), 0);
		if (ipc_streq(who.credential, "bad"))
			return ipc_refuse(
			    p, f->request, FAILURE_UNAUTHENTICATED, "who?", 0);
		id.principal =
		    ipc_str(ipc_streq(who.credential, "bob") ? "bob" : "local");
		id.permission_set = id.principal;
		return ipc_answer(p, f->request, IPC_IDENTITY, &id);
	case IPC_CATALOGUE_GET:
		catalogue(p, f->request);
		return 0;
	case IPC_AUTHORISE:
		authorise(p, f);
		return 0;
	case IPC_SESSION_END:
		ends++;
		return ipc_answer_ok(p, f->request);
	default:
		return -1;
	}
}

/* ---- sandboxd ---- */

static void
result(struct ipc_peer *p, uint64_t request, const struct ipc_id *id,
    enum outcome o, enum failure f, const char *body, const char *meta)
{
	char both[512];
	struct ipc_call_result m = {.execution = *id,
	    .outcome = (uint8_t)o,
	    .failure = (uint16_t)f,
	    .body_len = (uint32_t)strlen(body)};

	snprintf(both, sizeof(both), "%s%s", body, meta);
	m.body_meta = ipc_str(both);
	ipc_answer(p, request, IPC_CALL_RESULT, &m);
}

static void
event(struct ipc_peer *p, uint64_t request, const struct ipc_id *id, int kind,
    const char *json)
{
	struct ipc_call_event m = {
	    .execution = *id, .kind = (uint8_t)kind, .json = ipc_str(json)};

	ipc_answer(p, request, IPC_CALL_EVENT, &m);
}

static int
sandboxd_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	static const char ok[] = "{\"content\":[{\"type\":\"text\",\"text\":"
				 "\"\\u0041\"}]}";
	static const char meta[] = "{\"mcpbox/execution\":{\"duration_ms\":1}}";
	struct ipc_cancel cancel;
	struct ipc_run m;

	(void)arg;
	if (f->type == IPC_CANCEL) {
		assert_int_equal(ipc_decode(f, &cancel, NULL), 0);
		cancels++;
		if (hanging_peer == p && cancel.execution.b[0] == last_run) {
			result(p, hanging, &cancel.execution, OUTCOME_KILLED,
			    FAILURE_KILLED, "{\"content\":[],\"isError\":true}",
			    "{}");
			hanging_peer = NULL;
		}
		return 0;
	}
	assert_int_equal(f->type, IPC_RUN);
	assert_int_equal(ipc_decode(f, &m, NULL), 0);
	runs++;
	last_run = m.execution.b[0];
	switch (last_run) {
	case 'o': /* ok */
		result(p, f->request, &m.execution, OUTCOME_DONE, FAILURE_NONE,
		    ok, meta);
		return 0;
	case 'p': /* progress and logs */
		event(p, f->request, &m.execution, 1,
		    "{\"progress\":1,\"total\":2}");
		event(p, f->request, &m.execution, 2,
		    "{\"level\":\"debug\",\"data\":\"quiet\"}");
		event(p, f->request, &m.execution, 2,
		    "{\"level\":\"error\",\"data\":\"loud\"}");
		event(p, f->request, &m.execution, 1, "not JSON");
		event(p, f->request, &m.execution, 1,
		    "{\"progressToken\":\"forged\",\"progress\":9}");
		result(p, f->request, &m.execution, OUTCOME_DONE, FAILURE_NONE,
		    ok, meta);
		return 0;
	case 't': /* timeout */
		result(p, f->request, &m.execution, OUTCOME_FAILED,
		    FAILURE_TIMEOUT, "{\"content\":[],\"isError\":true}",
		    "{\"mcpbox/failure\":{\"failure_mode\":\"timeout\"}}");
		return 0;
	case 'b': /* a body that isn't one */
		result(p, f->request, &m.execution, OUTCOME_DONE, FAILURE_NONE,
		    "{\"content\":[]},\"x\":{}", "{}");
		return 0;
	case 'r':
		return ipc_refuse(
		    p, f->request, FAILURE_REVOKED, "withdrawn", 0);
	case 'l': /* lost: the sandbox ends */
		ipc_peer_close(p);
		return 0;
	default: /* hang */
		hanging = f->request;
		hanging_peer = p;
		return 0;
	}
}

/* ---- set-up ---- */

static void
start_admind(void)
{
	static const struct ipc_handlers h = {.message = admind_message};
	struct err err;
	uid_t me = getuid();

	admind = ipc_server_new(base, admind_path, "gateway-local",
	    IPC_ROLE_ADMIND, IPC_ROLE_GATEWAY, &me, 1, &h, NULL, &err);
	if (admind == NULL)
		fail_msg("%s", err.text);
}

static void
start_sandboxd(void)
{
	static const struct ipc_handlers h = {.message = sandboxd_message};
	struct err err;
	uid_t me = getuid();

	sandboxd = ipc_server_new(base, sandboxd_path, "gateway-local",
	    IPC_ROLE_SANDBOXD, IPC_ROLE_GATEWAY, &me, 1, &h, NULL, &err);
	if (sandboxd == NULL)
		fail_msg("%s", err.text);
}

static void
wait_ready(void)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (!gw.attached || ipc_client_peer(gw.sandboxd) == NULL) {
		if (lc_ms() > end)
			fail_msg("gatewayd did not connect");
		lc_turn(NULL, base);
	}
}

static int
setup(void **state)
{
	struct httpd_limits l = {
	    100, 100, 5000, 5000, 5000, HTTP_HEAD_MAX, HTTP_BODY_MAX};
	char text[256], dir[96];
	struct err err;

	(void)state;
	runs = cancels = authorises = lists = ends = 0;
	hanging_peer = NULL;
	attach_fails = false;
	snprintf(run_dir, sizeof(run_dir), "/tmp/mcpbox-gw-XXXXXX");
	if (mkdtemp(run_dir) == NULL)
		return -1;
	snprintf(dir, sizeof(dir), "%s/admind", run_dir);
	mkdir(dir, 0700);
	snprintf(
	    admind_path, sizeof(admind_path), "%s/gateway-local.sock", dir);
	snprintf(dir, sizeof(dir), "%s/sandboxd", run_dir);
	mkdir(dir, 0700);
	snprintf(
	    sandboxd_path, sizeof(sandboxd_path), "%s/gateway-local.sock", dir);
	memset(&gw, 0, sizeof(gw));
	base = event_base_new();
	gw.proc.name = "gatewayd";
	gw.proc.base = base;
	gw.proc.conf = conf_new("gatewayd");
	snprintf(text, sizeof(text),
	    "run_dir %s\nallowed_origin http://good.example\n", run_dir);
	if (gw.proc.conf == NULL || base == NULL ||
	    conf_parse(gw.proc.conf, "test", (const uint8_t *)text,
		strlen(text), &err) < 0 ||
	    gateway_init(&gw) < 0)
		return -1;
	start_admind();
	start_sandboxd();
	gw.httpd = httpd_new(base, "127.0.0.1", 0, NULL, &l, &front_handlers,
	    &gw, address, sizeof(address), &err);
	if (gw.httpd == NULL || gateway_connect(&gw, &err) < 0)
		return -1;
	wait_ready();
	return 0;
}

static int
teardown(void **state)
{
	char dir[96];

	(void)state;
	gateway_free(&gw);
	ipc_server_free(admind);
	ipc_server_free(sandboxd);
	lc_run(base, 20);
	/* Nothing may be left behind. */
	assert_int_equal(gw.exchange_count, 0);
	assert_int_equal(gw.exchange_bytes, 0);
	assert_true(TAILQ_EMPTY(&gw.calls));
	event_base_free(base);
	conf_free(gw.proc.conf);
	unlink(admind_path);
	unlink(sandboxd_path);
	snprintf(dir, sizeof(dir), "%s/admind", run_dir);
	rmdir(dir);
	snprintf(dir, sizeof(dir), "%s/sandboxd", run_dir);
	rmdir(dir);
	rmdir(run_dir);
	return 0;
}

static void
send_post(struct lc *c, const char *fields, const char *body)
{
	static char text[16 * 1024];

	snprintf(text, sizeof(text),
	    "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
	    "Content-Type: application/json\r\n"
	    "Accept: application/json, text/event-stream\r\n"
	    "%sContent-Length: %zu\r\n\r\n%s",
	    fields, strlen(body), body);
	lc_sends(c, base, text);
}

/* One POST on a connection of its own: status, answer kept in `answer`. */
static char answer[64 * 1024];

static int
post(const char *fields, const char *body)
{
	struct lc c = lc_open(address);
	int status;

	send_post(&c, fields, body);
	status = lc_answer(&c, base);
	snprintf(answer, sizeof(answer), "%s", c.p);
	lc_close(&c);
	return status;
}

static bool
has(const char *text)
{
	return strstr(answer, text) != NULL;
}

#define CALL(tool, more)                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"" tool "\"" more "}}"
#define LEGACY "MCP-Protocol-Version: 2025-11-25\r\n"
#define MODERN_CALL(tool)                                                \
	"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n" \
	"Mcp-Name: " tool "\r\n"

/* ---- tests ---- */

static void
test_front(void **state)
{
	static const struct {
		const char *request;
		int status;
	} t[] = {
	    {"GET /health HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 200},
	    {"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200},
	    {"GET /health HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200},
	    {"GET /health HTTP/1.1\r\nHost: LOCALHOST\r\n\r\n", 200},
	    {"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		403},
	    {"POST /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Content-Length: 0\r\n\r\n",
		405},
	    {"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: 127.0.0.1.nip.io\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: 127.1\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: 127.0..1\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: 128.0.0.1\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: [::2]\r\n\r\n", 403},
	    {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
	    {"GET /mcp/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
	    {"GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\n"
	     "Host: localhost\r\n\r\n",
		404},
	    {"GET /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Accept: text/event-stream\r\n\r\n",
		405},
	    {"PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
	     "0\r\n\r\n",
		405},
	    {"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
	    {"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Mcp-Session-Id: x\r\n\r\n",
		404},
	    {"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "MCP-Protocol-Version: 2026-07-28\r\n\r\n",
		405},
	    {"GET /health HTTP/1.1\r\nHost: localhost:8\r\n"
	     "Origin: http://localhost:8\r\n\r\n",
		200},
	    {"GET /health HTTP/1.1\r\nHost: localhost:8\r\n"
	     "Origin: http://localhost:9\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: http://evil.example\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: null\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: http://good.example\r\n\r\n",
		200},
	    {"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: http://good.example\r\n\r\n",
		204},
	    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
		415},
	    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Content-Length: 9999999\r\n\r\n",
		413},
	    {"BREW /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 501},
	};
	const char *body;
	struct lc c;
	size_t i;
	int status;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		c = lc_open(address);
		lc_sends(&c, base, t[i].request);
		status = lc_answer(&c, base);
		if (status != t[i].status)
			fail_msg("%s: %d", t[i].request, status);
		/* Whatever was wrong, the body is JSON. */
		body = strstr(c.p, "\r\n\r\n") + 4;
		if (status != 204)
			assert_int_equal(json_scan((const uint8_t *)body,
					     strlen(body), NULL),
			    0);
		lc_close(&c);
	}
}

static void
test_legacy(void **state)
{
	char token[512], fields[1024];
	const char *p;

	(void)state;
	assert_int_equal(post("",
			     "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":"
			     "\"initialize\",\"params\":{\"protocolVersion\":"
			     "\"2025-06-18\",\"capabilities\":{},"
			     "\"clientInfo\":{\"name\":\"c\",\"version\":"
			     "\"1\"}}}"),
	    200);
	assert_true(has("\"protocolVersion\":\"2025-06-18\""));
	assert_true(has("\"id\":\"i\""));
	p = strstr(answer, "Mcp-Session-Id: ");
	assert_non_null(p);
	snprintf(
	    token, sizeof(token), "%.*s", (int)strcspn(p + 16, "\r"), p + 16);
	/* A version nobody has: our newest. */
	assert_int_equal(post("",
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"initialize\",\"params\":{\"protocolVersion\":"
			     "\"1999-01-01\"}}"),
	    200);
	assert_true(has("\"protocolVersion\":\"2025-11-25\""));

	snprintf(fields, sizeof(fields),
	    "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-06-18\r\n",
	    token);
	assert_int_equal(post(fields,
			     "{\"jsonrpc\":\"2.0\",\"method\":"
			     "\"notifications/initialized\"}"),
	    202);
	assert_true(has("Content-Length: 0\r\n"));
	assert_int_equal(
	    post(fields, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    200);
	assert_true(has("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"));
	assert_int_equal(post(fields,
			     "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":"
			     "\"tools/list\"}"),
	    200);
	/* Byte for byte, and without the broken one. */
	assert_true(has("\"result\":{\"tools\":[{\"name\":\"a__one\","
			"\"inputSchema\":{ \"x\" : 1.0 }},{\"name\":"
			"\"a__two\""));
	assert_false(has("resultType"));
	assert_int_equal(lists, 1);
	post(
	    fields, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}");
	assert_int_equal(lists, 1); /* cached */
	/* Another principal's session is unknown. */
	snprintf(fields, sizeof(fields),
	    "Mcp-Session-Id: %s\r\nAuthorization: Bearer bob\r\n", token);
	assert_int_equal(
	    post(fields, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    404);
	assert_true(has("session_unknown") && has("\"id\":2"));
	/* An array under a session of a later revision. */
	snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n", token);
	assert_int_equal(post(fields,
			     "[{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
			     "\"ping\"}]"),
	    400);
	assert_true(has("-32600"));
	/* DELETE, then 404. */
	{
		struct lc c = lc_open(address);
		char text[2048];

		snprintf(text, sizeof(text),
		    "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
		    fields);
		lc_sends(&c, base, text);
		assert_int_equal(lc_answer(&c, base), 204);
		lc_close(&c);
		assert_int_equal(ends, 1);
	}
	assert_int_equal(
	    post(fields, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    404);
	/* Without a session: served. */
	assert_int_equal(
	    post(LEGACY, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    200);
	/* SESSION_ENDED from another gateway. */
}

static void
test_array(void **state)
{
	(void)state;
	assert_int_equal(
	    post("",
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		"\"ping\"}," CALL(
		    "t_ok", "") ","
				"{\"jsonrpc\":\"2.0\",\"method\":"
				"\"notifications/initialized\"},"
				"{\"jsonrpc\":\"2.0\",\"id\":\"z\",\"method\":"
				"\"nope\"},7]"),
	    200);
	assert_true(has("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},"));
	assert_true(has("\"text\":\"\\u0041\""));
	assert_true(has("\"id\":\"z\",\"error\":{\"code\":-32601"));
	assert_true(has("\"id\":null,\"error\":{\"code\":-32600"));
	assert_int_equal(runs, 1);
	assert_int_equal(post("",
			     "[{\"jsonrpc\":\"2.0\",\"method\":"
			     "\"notifications/initialized\"}]"),
	    202);
	/* One bad credential answers for all. */
	assert_int_equal(post("Authorization: Bearer bad\r\n",
			     "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"ping\"}]"),
	    401);
	assert_true(has("WWW-Authenticate: Bearer"));
}

static void
test_modern(void **state)
{
	(void)state;
	assert_int_equal(post("MCP-Protocol-Version: 2026-07-28\r\n"
			      "Mcp-Method: server/discover\r\n"
			      "Mcp-Session-Id: ignored\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":"
			     "\"server/discover\",\"params\":{" ENV "}}"),
	    200);
	assert_true(has("\"resultType\":\"complete\"") &&
	    has("\"supportedVersions\":[\"2026-07-28\"]") &&
	    has("\"ttlMs\":") && has("\"cacheScope\":\"private\"") &&
	    has("io.modelcontextprotocol/serverInfo"));
	assert_int_equal(post("MCP-Protocol-Version: 2026-07-28\r\n"
			      "Mcp-Method: tools/list\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":"
			     "\"tools/list\",\"params\":{" ENV "}}"),
	    200);
	assert_true(has("\"tools\":[{\"name\":\"a__one\"") &&
	    has("\"ttlMs\":0,\"cacheScope\":\"private\""));
	assert_int_equal(post(MODERN_CALL("t_ok"),
			     CALL("t_ok", ",\"arguments\":{ \"k\":1 }," ENV)),
	    200);
	assert_true(has("\"resultType\":\"complete\",\"content\":[{\"type\":"
			"\"text\",\"text\":\"\\u0041\"}],\"_meta\":{\"io."
			"modelcontextprotocol/serverInfo\""));
	assert_true(has("\"mcpbox/execution\":{\"duration_ms\":1}"));
	assert_string_equal(last_args, "{ \"k\":1 }");
	assert_string_equal(last_protocol, "2026-07-28");
	/* Steps 10 and 11. */
	assert_int_equal(
	    post(MODERN_CALL("capability"), CALL("capability", "," ENV)), 400);
	assert_true(has("-32021"));
	assert_int_equal(
	    post(MODERN_CALL("a__two"),
		CALL("a__two", ",\"arguments\":{\"r\":\"x\"}," ENV)),
	    400);
	assert_true(has("-32020"));
	assert_int_equal(runs, 1);
	assert_int_equal(
	    post(MODERN_CALL("a__two") "Mcp-Param-R: x\r\n",
		CALL("a__two", ",\"arguments\":{\"r\":\"x\"}," ENV)),
	    200);
	assert_int_equal(runs, 2);
	/* Removed methods are 404 there. */
	assert_int_equal(post("MCP-Protocol-Version: 2026-07-28\r\n"
			      "Mcp-Method: ping\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":"
			     "\"ping\",\"params\":{" ENV "}}"),
	    404);
	assert_true(has("-32601") && has("\"id\":\"q\""));
}

static void
test_results(void **state)
{
	(void)state;
	assert_int_equal(post(LEGACY "User-Agent: ua/1\r\n",
			     CALL("t_ok", ",\"arguments\":{}")),
	    200);
	assert_true(has("Content-Type: application/json\r\n"));
	assert_true(has("\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
			"\"\\u0041\"}],\"_meta\":{\"mcpbox/execution\""));
	assert_string_equal(last_client, "ua/1");
	assert_string_equal(last_protocol, "2025-11-25");
	assert_int_equal(post(LEGACY, CALL("t_timeout", "")), 200);
	assert_true(
	    has("\"isError\":true") && has("\"failure_mode\":\"timeout\""));
	assert_int_equal(post(LEGACY, CALL("t_bad", "")), 200);
	assert_true(has("-32603") && has("\"internal\""));
	assert_int_equal(post(LEGACY, CALL("t_revoked", "")), 200);
	assert_true(has("-32603") && has("\"revoked\""));
	assert_int_equal(post(LEGACY, CALL("mcpbox_ok", "")), 200);
	assert_true(has("\"result\":{\"content\":[]}"));
	assert_int_equal(post(LEGACY, CALL("mcpbox_error", "")), 200);
	assert_true(has("\"isError\":true") &&
	    has("\"mcpbox/failure\":{\"failure_mode\":\"invalid_arguments\""));
	assert_int_equal(post(LEGACY, CALL("nope", "")), 200);
	assert_true(has("-32602") && has("unknown_tool"));
	assert_int_equal(post(LEGACY, CALL("busy", "")), 200);
	assert_true(has("-32603") && has("\"retry_after_ms\":123"));
	assert_int_equal(post(LEGACY, CALL("arguments", "")), 200);
	assert_true(has("\"isError\":true") && has("bad \\\"x\\\""));
	assert_int_equal(post(LEGACY, CALL("forbidden", "")), 403);
	assert_true(has("\"forbidden\"") && has("\"id\":1"));
	assert_int_equal(
	    post(LEGACY "Authorization: Bearer bad\r\n", CALL("t_ok", "")),
	    401);
	assert_true(has("WWW-Authenticate: Bearer") && has("\"id\":1"));
	/* 401 comes before what is wrong with the body. */
	assert_int_equal(post("Authorization: Bearer bad\r\n", "{"), 401);
	assert_int_equal(post("", "{"), 400);
	assert_true(has("-32700"));
}

static void
test_events(void **state)
{
	(void)state;
	/* Without a token: plain JSON, events dropped. */
	assert_int_equal(post(LEGACY, CALL("t_progress", "")), 200);
	assert_true(has("application/json") && !has("notifications"));
	/* With one: a stream. The forged token and the bad JSON are dropped. */
	assert_int_equal(
	    post(LEGACY,
		CALL("t_progress", ",\"_meta\":{\"progressToken\":\"T\"}")),
	    200);
	assert_true(has("Content-Type: text/event-stream\r\n") &&
	    has("X-Accel-Buffering: no\r\n"));
	assert_true(has("data: {\"jsonrpc\":\"2.0\",\"method\":"
			"\"notifications/progress\",\"params\":{"
			"\"progressToken\":\"T\",\"progress\":1,\"total\":2}}"
			"\n\n"));
	assert_true(has("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"));
	assert_false(has("forged"));
	assert_false(has("notifications/message")); /* not offered there */
	/* A client that takes no stream gets JSON all the same. */
	{
		struct lc c = lc_open(address);
		static const char body[] =
		    CALL("t_progress", ",\"_meta\":{\"progressToken\":1}");
		char text[2048];

		snprintf(text, sizeof(text),
		    "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
		    "Accept: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		    strlen(body), body);
		lc_sends(&c, base, text);
		assert_int_equal(lc_answer(&c, base), 200);
		assert_non_null(strstr(c.p, "application/json"));
		lc_close(&c);
	}
	/* Modern: log lines from the level asked for. */
	assert_int_equal(
	    post(MODERN_CALL("t_progress"),
		CALL("t_progress",
		    ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
		    "\"2026-07-28\",\"io.modelcontextprotocol/"
		    "clientCapabilities\":{},\"io.modelcontextprotocol/"
		    "logLevel\":\"warning\"}")),
	    200);
	assert_true(has("text/event-stream") &&
	    has("\"method\":\"notifications/message\"") && has("loud"));
	assert_false(has("quiet") || has("notifications/progress"));
}

static void
until(const unsigned *what, unsigned value)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (*what < value) {
		if (lc_ms() > end)
			fail_msg("it did not happen");
		lc_turn(NULL, base);
	}
}

static void
test_cancel(void **state)
{
	struct lc c;
	char fields[1024], text[256];
	const char *p;

	(void)state;
	/* Modern: closing the response is cancelling. */
	c = lc_open(address);
	send_post(&c, MODERN_CALL("t_hang"), CALL("t_hang", "," ENV));
	until(&runs, 1);
	assert_int_equal(cancels, 0);
	lc_close(&c);
	until(&cancels, 1);
	lc_run(base, 30);
	assert_int_equal(gw.exchange_count, 0);

	/* Legacy: it is not; the call goes on. */
	c = lc_open(address);
	send_post(&c, LEGACY, CALL("t_hang", ""));
	until(&runs, 2);
	lc_close(&c);
	lc_run(base, 50);
	assert_int_equal(cancels, 1);
	assert_int_equal(gw.exchange_count, 1);
	/* ... until the sandbox answers; nobody listens, nothing breaks. */
	{
		struct ipc_id id = {{'h'}};

		/* another execution's result is nonsense and ends it */
		result(hanging_peer, hanging, &id, OUTCOME_DONE, FAILURE_NONE,
		    "{}", "{}");
		lc_run(base, 30);
		assert_int_equal(gw.exchange_count, 0);
	}

	/* Legacy, by notification within a session. */
	post("",
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":"
	    "{\"protocolVersion\":\"2025-11-25\"}}");
	p = strstr(answer, "Mcp-Session-Id: ");
	assert_non_null(p);
	snprintf(fields, sizeof(fields), "%.*s\r\n", (int)strcspn(p, "\r"), p);
	c = lc_open(address);
	send_post(&c, fields, CALL("t_hang", ""));
	until(&runs, 3);
	/* Another id, and the same id without the session: no effect. */
	snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%s}}",
	    "2");
	assert_int_equal(post(fields, text), 202);
	snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%s}}",
	    "1");
	assert_int_equal(post(LEGACY, text), 202);
	lc_run(base, 30);
	assert_int_equal(cancels, 1);
	assert_int_equal(post(fields, text), 202);
	until(&cancels, 2);
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"isError\":true"));
	lc_close(&c);
	assert_int_equal(runs, 3);
}

/* The neighbours die at the worst moment: typed errors, no second RUN, and
 * service resumes by itself. */
static void
test_neighbours_die(void **state)
{
	struct lc c;

	(void)state;
	/* The sandbox goes away in the middle: it may have run. */
	assert_int_equal(post(LEGACY, CALL("t_lost", "")), 200);
	assert_true(has("-32603") && has("\"lost\"") && !has("retry_after"));
	assert_int_equal(runs, 1);
	wait_ready();
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("\\u0041"));
	assert_int_equal(runs, 2);

	/* Not there at all: nothing ran. */
	ipc_server_free(sandboxd);
	sandboxd = NULL;
	lc_run(base, 30);
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("sandbox_unavailable") && has("retry_after_ms"));
	assert_int_equal(runs, 2);
	start_sandboxd();
	wait_ready();

	/* admind goes away with a call unanswered. */
	c = lc_open(address);
	send_post(&c, LEGACY, CALL("x_hang", ""));
	until(&authorises, 4);
	ipc_server_free(admind);
	admind = NULL;
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"busy\""));
	assert_non_null(strstr(c.p, "retry_after_ms"));
	lc_close(&c);
	/* Away: typed, with a hint; lists too, though one was cached. */
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(
	    has("\"busy\"") && has("retry_after_ms") && has("\"id\":1"));
	assert_int_equal(post(LEGACY,
			     "{\"jsonrpc\":\"2.0\",\"method\":"
			     "\"notifications/initialized\"}"),
	    503);
	assert_int_equal(post("", "{"), 400); /* needs nobody */
	assert_int_equal(runs, 2);
	{
		struct lc h = lc_open(address);

		lc_sends(&h, base,
		    "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
		assert_int_equal(lc_answer(&h, base), 503);
		lc_close(&h);
	}
	start_admind();
	wait_ready();
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("\\u0041"));

	/* A management tool that was under way may have been done. */
	c = lc_open(address);
	send_post(&c, LEGACY, CALL("mcpbox_hang", ""));
	until(&authorises, 6);
	ipc_server_free(admind);
	admind = NULL;
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"lost\""));
	lc_close(&c);
	start_admind();
	wait_ready();
}

static unsigned answered_ok;

static void
changed_cb(void *arg, struct ipc_frame *f, enum failure gone)
{
	(void)arg;
	(void)gone;
	if (f != NULL && f->type == IPC_OK)
		answered_ok++;
}

static void
test_changed(void **state)
{
	static const char list[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}";
	struct ipc_catalogue_changed m = {.revision = 2};
	struct ipc_session_ended e;
	struct session s;
	char token[SESSION_TEXT_LEN + 1], fields[512];
	uint64_t id;

	(void)state;
	answered_ok = 0;
	post(LEGACY, list);
	post(LEGACY, list);
	assert_int_equal(lists, 1);
	assert_int_equal(ipc_request(gateway_at_admind, IPC_CATALOGUE_CHANGED,
			     &m, 1000, changed_cb, NULL, &id),
	    0);
	until(&answered_ok, 1);
	post(LEGACY, list);
	assert_int_equal(lists, 2);
	/* A session deleted through another gateway. */
	session_make((const uint8_t *)"0123456789abcdef0123456789abcdef",
	    LISTENER_LOCAL, MCP_REV_2025_11_25, now_us() / 1000 + 60000,
	    "local", ipc_str("{}"), &s, token);
	snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n", token);
	assert_int_equal(post(fields, list), 200);
	e.session = s.id;
	e.expires_ms = s.expires_ms;
	assert_int_equal(ipc_send(gateway_at_admind, IPC_SESSION_ENDED, &e), 0);
	lc_run(base, 30);
	assert_int_equal(post(fields, list), 404);
}

/* No key yet: sessions can't be made or read, everything else is served. */
static void
test_no_key(void **state)
{
	(void)state;
	ipc_server_free(admind);
	while (ipc_client_peer(gw.admind) != NULL)
		lc_turn(NULL, base);
	gw.has_key = false;
	attach_fails = true;
	start_admind();
	while (ipc_client_peer(gw.admind) == NULL)
		lc_turn(NULL, base);
	assert_int_equal(post("",
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"initialize\",\"params\":{\"protocolVersion\":"
			     "\"2025-11-25\"}}"),
	    200);
	assert_false(has("Mcp-Session-Id"));
	assert_int_equal(post("Mcp-Session-Id: x\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"ping\"}"),
	    200);
	if (!has("vault_unavailable"))
		fail_msg("%s", answer);
	attach_fails = false;
	wait_ready(); /* it asks again by itself */
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_front),
	    T(test_legacy),
	    T(test_array),
	    T(test_modern),
	    T(test_results),
	    T(test_events),
	    T(test_cancel),
	    T(test_neighbours_die),
	    T(test_changed),
	    T(test_no_key),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
