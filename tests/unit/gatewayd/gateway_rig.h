/* gatewayd with a false admind and sandboxd, which answer by the tool. */
#ifndef GATEWAY_RIG_H
#define GATEWAY_RIG_H

#include <sys/stat.h>

#include "credential_hash.h"
#include "daemon.h"
#include "exchange.h"
#include "front.h"
#include "ids.h"
#include "json.h"
#include "log.h"
#include "loop_client.h"
#include "unit.h"

static struct gateway gw;
static struct ipc_server *admind, *sandboxd;
static struct event_base *base;
static char run_dir[64], address[64], admind_path[128], sandboxd_path[128];

/* What the false neighbours saw. */
static unsigned runs, cancels, authorises, lists, ends;
static uint8_t last_run; /* first byte of the execution id */
static char last_args[256], last_client[256], last_protocol[32], last_tool[64];
static unsigned last_method, last_declared;
static uint64_t hanging, left_ms; /* a RUN left unanswered; of credentials */
static struct ipc_peer *hanging_peer, *gateway_at_admind;
static struct ipc_id hanging_id;
static uint32_t last_number; /* of the last CALL_ANSWER */
static unsigned answers;     /* CALL_ANSWERs */
static char last_answers[1024];
static bool goes_on, attach_fails, access_untold, bob_revoked;
static struct ipc_gw_access access_told; /* comes after GW_CONFIG */
static int (*more_hook)(struct ipc_peer *, struct ipc_frame *);
/* A test's own answer to CATALOGUE_GET; true: it did. */
static bool (*catalogue_hook)(struct ipc_peer *, struct ipc_frame *);
static unsigned authenticates, last_via; /* of any message with a credential */
static char last_credential[10 * 1024];
/* A test's own answer to AUTHORISE; true: it did. */
static bool (*authorise_hook)(
    struct ipc_peer *, uint64_t request, const struct ipc_authorise *);
static void (*authenticate_hook)(/* changes the answer */
    const struct ipc_authenticate *, struct ipc_identity *);
static uint8_t text_version; /* the version that serves test://text */
static const char *no_more;  /* a credential that is good no longer */

/* ---- admind ---- */
#define NAME_40 "0123456789012345678901234567890123456789"

static void
catalogue(struct ipc_peer *p, uint64_t id)
{
	static const struct {
		enum mcp_list list;
		const char *name, *uri, *json;
	} items[] = {
	    {MCP_LIST_TOOLS, "a__one", "",
		"{\"name\":\"a__one\",\"inputSchema\":{ \"x\" : 1.0 }}"},
	    {MCP_LIST_TOOLS, "broken", "", "{\"name\":"},
	    {MCP_LIST_TOOLS, "a__two", "",
		"{\"name\":\"a__two\",\"inputSchema\":{\"properties\":{\"r\":{"
		"\"type\":\"string\",\"x-mcp-header\":\"R\"}}}}"},
	    {MCP_LIST_TOOLS, "broken" NAME_40 NAME_40 NAME_40 NAME_40, "",
		"{\"name\":\"broken_by_length\"}"},
	    {MCP_LIST_PROMPTS, "p_plain", "", "{\"name\":\"p_plain\"}"},
	    {MCP_LIST_PROMPTS, "p_values", "",
		"{\"name\":\"p_values\",\"arguments\":[{\"name\":\"city\","
		"\"values\":[\"Paris\",\"Parma\",\"Rome\"],\"required\":true},"
		"{\"name\":\"b\"}],\"title\":\"\\u0054\"}"},
	    {MCP_LIST_RESOURCES, "r_text", "test://text",
		"{\"uri\":\"test://text\",\"name\":\"r_text\",\"_meta\":{"
		"\"mcpbox/ttlMs\":7000}}"},
	    {MCP_LIST_TEMPLATES, "r_item", "test://item/{id}/data",
		"{\"uriTemplate\":\"test://item/{id}/data\",\"name\":"
		"\"r_item\"}"},
	    {MCP_LIST_TEMPLATES, "r_fail", "fail://{+path}",
		"{\"uriTemplate\":\"fail://{+path}\",\"name\":\"r_fail\"}"},
	    /* r_item's template matches this URI, too */
	    {MCP_LIST_STOPPED, "r_off", "test://item/off/data", "{}"},
	};
	struct ipc_catalogue_item m = {0};
	struct ipc_catalogue_end e = {.revision = 1, .count = 3};
	size_t i;

	lists++;
	for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		m.list = (uint8_t)items[i].list;
		m.name = ipc_str(items[i].name);
		m.uri = ipc_str(items[i].uri);
		m.json = ipc_str(items[i].json);
		m.version.b[0] = (uint8_t)(i + 1);
		m.version.b[1] =
		    items[i].list == MCP_LIST_RESOURCES ? text_version : 0;
		assert_int_equal(ipc_answer(p, id, IPC_CATALOGUE_ITEM, &m), 0);
	}
	e.count = (uint32_t)i;
	assert_int_equal(ipc_answer(p, id, IPC_CATALOGUE_END, &e), 0);
}

/* What a prompt or resource answers, as admind does for static ones. */
static bool
authorise_object(struct ipc_peer *p, uint64_t request, const char *name)
{
	struct ipc_result res = {0};

	if (strcmp(name, "p_plain") == 0) {
		res.body = ipc_str("{\"messages\":[]}");
	} else if (strcmp(name, "p_values") == 0) {
		res.is_error = 1;
		res.failure = FAILURE_INVALID_ARGUMENTS;
		res.body = ipc_str("{\"content\":[{\"type\":\"text\",\"text\":"
				   "\"city is missing\"}],\"isError\":true}");
	} else if (strcmp(name, "r_text") == 0) {
		res.body = ipc_str("{\"contents\":[{\"text\":\"hello\"}]}");
	} else if (strcmp(name, "r_item") == 0) {
		res.body = ipc_str("{\"contents\":[{\"blob\":\"AA==\"}]}");
	} else {
		return false;
	}
	ipc_answer(p, request, IPC_RESULT, &res);
	return true;
}

static struct ipc_refused forbids = {.failure = FAILURE_FORBIDDEN};
static void
authorise(struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_authorise m;
	struct ipc_run_id id = {.timeout_ms = 1000};
	struct ipc_result res = {0};
	char *tool;

	assert_int_equal(ipc_decode(f, &m, NULL), 0);
	authorises++;
	last_via = m.via;
	snprintf(last_args, sizeof(last_args), "%.*s", (int)m.arguments.n,
	    (const char *)m.arguments.p);
	snprintf(last_client, sizeof(last_client), "%.*s", (int)m.client.n,
	    (const char *)m.client.p);
	snprintf(last_protocol, sizeof(last_protocol), "%.*s",
	    (int)m.protocol.n, (const char *)m.protocol.p);
	tool = ipc_strdup(m.tool);
	assert_non_null(tool);
	snprintf(last_tool, sizeof(last_tool), "%s", tool);
	last_method = m.method;
	last_declared = m.declared;
	if (authorise_hook != NULL && authorise_hook(p, f->request, &m)) {
		free(tool);
		return;
	}
	if (m.method != CALL_TOOL) {
		if (!authorise_object(p, f->request, tool))
			ipc_refuse(p, f->request,
			    strcmp(tool, "r_fail") == 0 ? FAILURE_LIMIT
				: strcmp(tool, "r_off") == 0
				? FAILURE_STOPPED
				: FAILURE_UNKNOWN_PROMPT,
			    "no", 0);
	} else if (strncmp(tool, "t_", 2) == 0) {
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
		ipc_answer(p, f->request, IPC_REFUSED, &forbids);
	} else if (strcmp(tool, "capability") == 0) {
		struct ipc_refused no = {.failure = FAILURE_CAPABILITY_REQUIRED,
		    .message = ipc_str("needs sampling"),
		    .data =
			ipc_str("\"requiredCapabilities\":{\"sampling\":{}}")};

		ipc_answer(p, f->request, IPC_REFUSED, &no);
	} else if (strcmp(tool, "forger") == 0) {
		struct ipc_refused no = {.failure = FAILURE_BUSY,
		    .message = ipc_str("x"),
		    .data = ipc_str("\"a\":1},\"id\":5,\"b\":{")};

		ipc_answer(p, f->request, IPC_REFUSED, &no);
	} else if (strcmp(tool, "arguments") == 0) {
		ipc_refuse(
		    p, f->request, FAILURE_INVALID_ARGUMENTS, "bad \"x\"", 0);
	} else if (strstr(tool, "hang") == NULL) {
		ipc_refuse(
		    p, f->request, FAILURE_UNKNOWN_TOOL, "no such tool", 0);
	}
	free(tool);
}

static struct ipc_identity identity_told = {.cache_ms = 30000};
/* bob, ann with any token of hers, or local; "bad" and "quoted" are refused. */
static int
authenticate(struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_authenticate who;
	struct ipc_identity id = identity_told;

	id.left_ms = left_ms;
	assert_int_equal(ipc_decode(f, &who, NULL), 0);
	authenticates++;
	last_via = who.via;
	snprintf(last_credential, sizeof(last_credential), "%.*s",
	    (int)who.credential.n, (const char *)who.credential.p);
	if (authenticate_hook != NULL)
		authenticate_hook(&who, &id);
	if (ipc_streq(who.credential, "quoted"))
		return ipc_refuse(p, f->request, FAILURE_UNAUTHENTICATED,
		    "not \"a\\b\",\r\n\xc3\xa4", 0);
	if (ipc_streq(who.credential, "bad") ||
	    (bob_revoked && ipc_streq(who.credential, "bob")))
		return ipc_refuse(
		    p, f->request, FAILURE_UNAUTHENTICATED, "who?", 0);
	id.principal = ipc_str(ipc_streq(who.credential, "bob") ? "bob"
		: who.via != 0 || strncmp(last_credential, "ann", 3) == 0
		? "ann"
		: "local");
	if (id.permission_set.n == 0)
		id.permission_set = id.principal;
	return ipc_answer(p, f->request, IPC_IDENTITY, &id);
}

static int
admind_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct ipc_gw_config c = {.listener = ipc_str("local"),
	    .session_key = ipc_bytes("0123456789abcdef0123456789abcdef", 32)};
	struct ipc_task_state task = {.status = TASK_WORKING, .ttl_ms = 1000};
	struct ipc_task_get get;

	(void)arg;
	switch (f->type) {
	case IPC_GW_ATTACH:
		gateway_at_admind = p;
		if (attach_fails)
			return ipc_refuse(
			    p, f->request, FAILURE_VAULT_UNAVAILABLE, "", 0);
		if (ipc_answer(p, f->request, IPC_GW_CONFIG, &c) < 0)
			return -1;
		return access_untold ? 0
				     : ipc_send(p, IPC_GW_ACCESS, &access_told);
	case IPC_AUTHENTICATE:
		return authenticate(p, f);
	case IPC_CATALOGUE_GET:
		if (catalogue_hook == NULL || !catalogue_hook(p, f))
			catalogue(p, f->request);
		return 0;
	case IPC_AUTHORISE:
		authorise(p, f);
		return 0;
	case IPC_TASK_GET:
		assert_int_equal(ipc_decode(f, &get, NULL), 0);
		last_via = get.via;
		if (no_more != NULL && ipc_streq(get.credential, no_more))
			return ipc_refuse(
			    p, f->request, FAILURE_UNAUTHENTICATED, "who?", 0);
		task.task = get.task;
		return ipc_answer(p, f->request, IPC_TASK_STATE, &task);
	case IPC_SESSION_END:
		ends++;
		return ipc_answer_ok(p, f->request);
	default:
		return more_hook != NULL ? more_hook(p, f) : -1;
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
	struct ipc_call_event m = {.execution = *id,
	    .kind = (uint8_t)kind,
	    .number = kind == CALL_EVENT_ASK,
	    .json = ipc_str(json)};

	ipc_answer(p, request, IPC_CALL_EVENT, &m);
}

static int
sandboxd_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	static const char ok[] = "{\"content\":[{\"type\":\"text\",\"text\":"
				 "\"\\u0041\"}]}";
	static const char meta[] = "{\"mcpbox/execution\":{\"duration_ms\":1}}";
	static const char questions[] =
	    "{\"f\":{\"method\":\"elicitation/create\",\"params\":{"
	    "\"message\":\"?\",\"requestedSchema\":{}}},\"r\":{\"method\":"
	    "\"roots/list\",\"params\":{}}}";
	struct ipc_cancel cancel;
	struct ipc_call_answer said;
	struct ipc_run m;

	(void)arg;
	if (f->type == IPC_CALL_ANSWER) {
		assert_int_equal(ipc_decode(f, &said, NULL), 0);
		answers++;
		last_number = said.number;
		snprintf(last_answers, sizeof(last_answers), "%.*s",
		    (int)said.json.n, (const char *)said.json.p);
		if (goes_on)
			return 0;
		result(p, hanging, &said.execution, OUTCOME_DONE, FAILURE_NONE,
		    ok, meta);
		hanging_peer = NULL;
		return 0;
	}
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
	case 'a': /* asks, then waits */
		event(p, f->request, &m.execution, CALL_EVENT_ASK, questions);
		hanging = f->request;
		hanging_peer = p;
		hanging_id = m.execution;
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
		hanging_id = m.execution;
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

	while (!gw.attached || ipc_client_peer(gw.sandboxd) == NULL ||
	    (!gw.access.told && !access_untold)) {
		if (lc_ms() > end)
			fail_msg("gatewayd did not connect");
		lc_turn(NULL, base);
	}
}

/* The time for a client's next bytes, and for one that takes none. So long that
 * no slow machine reaches it; a test of the limit itself sets another one. */
static uint64_t client_ms = 600 * 1000;

static int
setup(void **state)
{
	struct httpd_limits l = {100, 100, client_ms, client_ms, client_ms,
	    HTTP_HEAD_MAX, HTTP_BODY_MAX, 0, 60};
	char text[256], dir[96];
	struct err err;

	(void)state;
	runs = cancels = authorises = lists = ends = answers = 0;
	hanging_peer = NULL;
	attach_fails = bob_revoked = goes_on = access_untold = false;
	memset(&access_told, 0, sizeof(access_told));
	left_ms = authenticates = last_via = text_version = 0;
	no_more = NULL;
	authorise_hook = NULL;
	more_hook = NULL;
	catalogue_hook = NULL;
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
	    "run_dir %s\nallowed_origin http://good.example\nmax_streams 3\n"
	    "max_streams_per_principal 2\n",
	    run_dir);
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

static unsigned dropped; /* CREDENTIAL_ENDEDs that were answered by OK */
static void
credential_dropped(void *arg, struct ipc_frame *f, enum failure gone)
{
	(void)arg;
	(void)gone;
	assert_non_null(f);
	assert_int_equal(f->type, IPC_OK);
	dropped++;
}

/* admind says CREDENTIAL_ENDED, and hears OK. */
static inline void
credential_ends_by(const struct ipc_hash *h, const char *principal)
{
	struct ipc_credential_ended m = {
	    .credential = *h, .principal = ipc_str(principal)};
	unsigned before = dropped;
	long end = lc_ms() + LC_DEADLINE_MS;
	uint64_t id;

	assert_int_equal(ipc_request(gateway_at_admind, IPC_CREDENTIAL_ENDED,
			     &m, 5000, credential_dropped, NULL, &id),
	    0);
	while (dropped == before) {
		assert_true(lc_ms() < end);
		lc_run(base, 5);
	}
}

/* admind says that this bearer token is good no more. */
static inline void
credential_ends(const char *credential, const char *principal)
{
	struct ipc_hash h;

	credential_hash(VIA_AUTHORIZATION, credential, strlen(credential), &h);
	credential_ends_by(&h, principal);
}

#endif
