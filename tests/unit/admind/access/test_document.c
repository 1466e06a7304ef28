/*
 * The access document that holds (document.c), the vault's requests about it
 * (access_store.c), and the words to gateways (metadata.c), with a fake
 * database and fake processes.
 */
#include "access_rig.h"

enum { R = 70 };

static struct link vault;
static unsigned heard;

static void
hear(void *unused)
{
	heard++;
}

/* The database is up, and the document is being read. */
static int
start(void **unused)
{
	rig_start(NULL);
	database_up(NULL);
	vault = (struct link){
	    .a = a, .peer = f.vault, .role = IPC_ROLE_VAULT, .refs = 1};
	heard = 0;
	return 0;
}

static enum failure
state(void)
{
	struct err err;

	return document_ready(a, &err) == 0 ? FAILURE_NONE : err.failure;
}

static const char *
shown(const char *document)
{
	static char text[600];
	struct ipc_hash h;
	struct jsonw w;
	struct buf b;

	sha256(document, strlen(document), &h);
	buf_init(&b, sizeof(text));
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	document_json(a, document[0] != '\0' ? &h : NULL, &w);
	jsonw_obj_end(&w);
	snprintf(text, sizeof(text), "%.*s", (int)b.len, (const char *)b.p);
	buf_free(&b);
	return text;
}

#define HOLDS "{\"in_force\":true,\"why\":null,\"keys\":[],\"telemetry\":null}"

static void
vault_refuses(enum failure failure, const char *text)
{
	struct ipc_refused m = {
	    .failure = (uint16_t)failure, .message = ipc_str(text)};
	struct ipc_access_check q;

	(void)fake_took(f.vault, IPC_ACCESS_CHECK, &q);
	fake_answers(f.vault, IPC_REFUSED, &m);
}

/* ---- reading ---- */

static void
no_document(void **unused)
{
	assert_false(a->access->settled);
	assert_int_equal(state(), FAILURE_STORAGE_UNAVAILABLE);
	fake_db_answer("document_read");
	assert_true(a->access->settled);
	assert_int_equal(state(), FAILURE_NONE);
	assert_null(a->access->now);
	assert_string_equal(shown(""),
	    "{\"in_force\":false,\"why\":null,\"keys\":[],\"telemetry\":null}");
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
whole_way(void **unused)
{
	struct ipc_access_check q;
	struct ipc_check_access c;
	struct ipc_ok ok = {0};
	struct ipc_hash h;

	answer_row(SERIAL, "{}", NULL);
	(void)fake_took(f.vault, IPC_ACCESS_CHECK, &q);
	sha256("{}", 2, &h);
	assert_memory_equal(&q.document, &h, sizeof(h));
	assert_true(ipc_streq(q.seal, "SEAL"));
	assert_int_equal(fake_peer_waits(f.check), 0);
	fake_answers(f.vault, IPC_OK, &ok);
	assert_int_equal(state(), FAILURE_STORAGE_UNAVAILABLE);
	(void)fake_took(f.check, IPC_CHECK_ACCESS, &c);
	assert_true(ipc_streq(c.document, "{}"));
	{
		struct ipc_check_ok fields = {0};
		struct buf b;

		fields_of(&(struct said_document){0}, &b);
		fields.fields = ipc_bytes(b.p, b.len);
		fake_answers(f.check, IPC_CHECK_OK, &fields);
		buf_free(&b);
	}
	assert_int_equal(state(), FAILURE_NONE);
	assert_int_equal(a->access->now->nissuers, 2);
	assert_string_equal(shown("{}"), HOLDS);
	/* another document than the one that was read last */
	assert_string_equal(shown("{\"x\":1}"),
	    "{\"in_force\":false,\"why\":\"admind is reading "
	    "it\",\"keys\":[],\"telemetry\":null}");
}

/* A row that the vault did not seal, or knows to be old, opens no door and
 * leaves none open. */
static void
row_that_can_not_hold(void **unused)
{
	struct ipc_credential_ended m;
	struct ipc_gw_access g;

	document_holds(&(struct said_document){0}, SERIAL);
	no_runs();
	assert_int_equal(learn("a.b.c", &ann, who_is), FAILURE_NONE);
	document_notified(a, "document");
	answer_row(SERIAL + 1, "{\"x\":1}", "FORGED");
	assert_int_equal(state(), FAILURE_NONE); /* the one before, so far */
	vault_refuses(FAILURE_NOT_APPROVED, "the seal is not this vault's");
	assert_int_equal(state(), FAILURE_NONE);
	assert_null(a->access->now);
	hear_access(f.tunnel, &g);
	assert_int_equal(g.metadata.n, 0);
	(void)fake_took(f.tunnel, IPC_CREDENTIAL_ENDED, &m);
	assert_true(ipc_streq(m.principal, who_is));
	assert_string_equal(shown("{\"x\":1}"),
	    "{\"in_force\":false,\"why\":\"the seal is not this "
	    "vault's\",\"keys\":[],\"telemetry\":null}");
	assert_int_equal(learn("a.b.c", &ann, who_is), FAILURE_UNAUTHENTICATED);
	/* the tick leaves it alone; another vault may know it */
	fake_end_all();
	document_retry(a, false);
	assert_int_equal(fake_db_waits("document_read"), 0);
	document_retry(a, true);
	assert_int_equal(fake_db_waits("document_read"), 1);
}

static void
serial_of_a_wrong_clock(void **unused)
{
	const uint64_t day = 24 * 3600 * S;

	answer_row(wall_us + day + 1, "{}", NULL);
	assert_int_equal(fake_peer_waits(f.vault), 0);
	assert_null(a->access->now);
	assert_int_equal(state(), FAILURE_NONE);
	assert_non_null(strstr(shown("{}"), "more than a day ahead"));
	assert_non_null(strstr(shown("{}"), "set the clock right"));
	document_notified(a, "document");
	document_holds(&(struct said_document){0}, wall_us + day);
	assert_string_equal(shown("{}"), HOLDS);
}

static void
check_refuses_stored_document(void **unused)
{
	struct ipc_check_errors bad = {.failure = FAILURE_INVALID_PARAMS,
	    .summary = ipc_str("the access document is not valid: x"),
	    .json = ipc_str("[]")};
	struct ipc_check_access q;

	answer_row(SERIAL, "{}", NULL);
	vault_knows();
	(void)fake_took(f.check, IPC_CHECK_ACCESS, &q);
	fake_answers(f.check, IPC_CHECK_ERRORS, &bad);
	assert_null(a->access->now);
	assert_non_null(strstr(shown("{}"), "is not valid: x"));
}

/* A process is away: no token is accepted, no person ends, and it is tried
 * again. */
static void
processes_that_are_away(void **unused)
{
	struct ipc_check_access q;
	struct auth auth;

	document_holds(&(struct said_document){0}, SERIAL);
	no_runs();
	assert_int_equal(learn("a.b.c", &ann, who_is), FAILURE_NONE);
	fake_client_up(a->vault, false);
	document_notified(a, "document");
	answer_row(SERIAL + 1, "{}", NULL);
	assert_int_equal(state(), FAILURE_VAULT_UNAVAILABLE);
	assert_int_equal(comes("a.b.c", &auth), FAILURE_VAULT_UNAVAILABLE);
	assert_non_null(strstr(shown("{}"), "the vault is not reachable"));
	gateways_hear_nothing();
	fake_client_up(a->vault, true);
	document_retry(a, false);
	answer_row(SERIAL + 1, "{}", NULL);
	vault_knows();
	(void)fake_took(f.check, IPC_CHECK_ACCESS, &q);
	fake_goes(f.check, FAILURE_BUSY);
	assert_int_not_equal(state(), FAILURE_NONE);
	assert_int_not_equal(comes("a.b.c", &auth), FAILURE_NONE);
	document_retry(a, false);
	document_holds(&(struct said_document){0}, SERIAL + 1);
	assert_int_equal(comes("a.b.c", &auth), FAILURE_NONE);
	/* the database itself */
	document_db_up(a);
	assert_int_equal(comes("a.b.c", &auth), FAILURE_STORAGE_UNAVAILABLE);
	fake_db_fail("document_read", FAILURE_STORAGE_UNAVAILABLE, "gone");
	assert_int_equal(comes("a.b.c", &auth), FAILURE_STORAGE_UNAVAILABLE);
	document_retry(a, false);
	answer_row(SERIAL + 1, "{}", NULL);
	assert_int_equal(comes("a.b.c", &auth), FAILURE_NONE);
	gateways_hear_nothing();
}

/* A change during a reading is read after it, and each waiter hears of a
 * reading that began after it asked. */
static void
change_during_a_reading(void **unused)
{
	document_load(a, hear, NULL);
	answer_row(SERIAL, "{}", NULL);
	vault_knows();
	check_compiles(&(struct said_document){0});
	assert_int_equal(heard, 0);
	assert_int_equal(fake_db_waits("document_read"), 1);
	answer_row(SERIAL, "{}", NULL);
	assert_int_equal(heard, 1);
	assert_int_equal(fake_db_waits("document_read"), 0);
}

/* ---- the vault's requests ---- */

static void
seal_is_given_back(void **unused)
{
	static const struct ipc_hash none;
	struct ipc_access_load m = {0};
	struct ipc_access_sealed s;
	struct ipc_hash h;

	assert_int_equal(
	    access_store_message(&vault, fake_frame(IPC_ACCESS_LOAD, R, &m)),
	    0);
	sha256("{}", 2, &h);
	fake_db_row("shi", "SEAL", &h, (int64_t)SERIAL);
	fake_db_answer("access_load");
	assert_int_equal(fake_took(f.vault, IPC_ACCESS_SEALED, &s), R);
	assert_true(ipc_streq(s.seal, "SEAL"));
	assert_memory_equal(&s.document, &h, sizeof(h));
	assert_int_equal(s.serial, SERIAL);
	/* no document, and a row that is void */
	(void)access_store_message(&vault, fake_frame(IPC_ACCESS_LOAD, R, &m));
	fake_db_row("nni", (int64_t)SERIAL);
	fake_db_answer("access_load");
	(void)fake_took(f.vault, IPC_ACCESS_SEALED, &s);
	assert_int_equal(s.seal.n, 0);
	assert_memory_equal(&s.document, &none, sizeof(none));
	assert_int_equal(s.serial, SERIAL);
}

static void
stores(uint64_t serial, const char *document)
{
	struct ipc_access_store m = {.serial = serial,
	    .actor = ipc_str("root"),
	    .seal = ipc_str("SEAL"),
	    .document = ipc_str(document)};

	sha256("{\"over\":1}", 10, &m.over);
	assert_int_equal(
	    access_store_message(&vault, fake_frame(IPC_ACCESS_STORE, R, &m)),
	    0);
}

static void
document_is_stored(void **unused)
{
	struct ipc_ok ok;
	struct ipc_hash h;

	fake_db_answer("document_read");
	stores(SERIAL, "{}");
	assert_int_equal(fake_db_waits(NULL), 0);
	check_compiles(&(struct said_document){0});
	sha256("{}", 2, &h);
	assert_int_equal(fake_db_int("access_store", 0), SERIAL);
	fake_db_is("access_store", 1, "{}");
	assert_memory_equal(
	    fake_db_bytes("access_store", 2).p, h.b, sizeof(h.b));
	fake_db_is("access_store", 3, "root");
	fake_db_is("access_store", 4, "SEAL");
	assert_int_equal(fake_db_elements("access_store", 5), 2);
	assert_int_equal(fake_db_elements("access_store", 6), 2);
	sha256("{\"over\":1}", 10, &h);
	assert_memory_equal(
	    fake_db_bytes("access_store", 7).p, h.b, sizeof(h.b));
	fake_db_row("n");
	fake_db_answer("access_store");
	/* The answer comes when the document holds here. */
	answer_row(SERIAL, "{}", NULL);
	vault_knows();
	check_compiles(&(struct said_document){0});
	assert_int_equal(fake_took(f.vault, IPC_OK, &ok), R);
	assert_string_equal(shown("{}"), HOLDS);
}

static void
refused_with(enum failure failure, const char *words)
{
	struct ipc_refused m;

	assert_int_equal(fake_took(f.vault, IPC_REFUSED, &m), R);
	assert_string_equal(
	    failure_info(m.failure)->name, failure_info(failure)->name);
	if (memmem(m.message.p, m.message.n, words, strlen(words)) == NULL)
		fail_msg("%.*s", (int)m.message.n, (const char *)m.message.p);
}

static void
invalid_document_is_not_stored(void **unused)
{
	static char list[20000];
	struct ipc_check_errors bad = {.failure = FAILURE_INVALID_PARAMS,
	    .summary = ipc_str("2 errors, the first: X")};
	struct ipc_check_access q;

	fake_db_answer("document_read");
	stores(SERIAL, "{\"x\":1}");
	(void)fake_took(f.check, IPC_CHECK_ACCESS, &q);
	bad.json = ipc_str("[{\"pointer\":\"/x\",\"message\":\"X\"},1]");
	fake_answers(f.check, IPC_CHECK_ERRORS, &bad);
	refused_with(FAILURE_INVALID_PARAMS,
	    "2 errors, the first: X\n[{\"pointer\":\"/x\",\"message\":\"X\"},1"
	    "]");
	/* a long list is cut, and says so */
	memset(list, 'e', sizeof(list) - 1);
	stores(SERIAL, "{\"x\":1}");
	(void)fake_took(f.check, IPC_CHECK_ACCESS, &q);
	bad.json = ipc_str(list);
	fake_answers(f.check, IPC_CHECK_ERRORS, &bad);
	refused_with(FAILURE_INVALID_PARAMS,
	    "The list is cut: these are 8192 of 19999 bytes.");
	/* admind-check is away */
	fake_client_up(a->check, false);
	stores(SERIAL, "{}");
	refused_with(FAILURE_BUSY, "the checking process is not reachable");
	fake_client_up(a->check, true);
	/* a clock that is wrong */
	stores(wall_us + 25 * 3600 * S, "{}");
	refused_with(FAILURE_INVALID_PARAMS, "set the clock right");
	stores(SERIAL, "\xff");
	refused_with(FAILURE_INVALID_PARAMS, "not UTF-8");
	assert_int_equal(fake_db_sent("access_store"), 0);
	/* the database's own words, such as of an issuer's name that meant
	 * another issuer */
	stores(SERIAL, "{}");
	check_compiles(&(struct said_document){0});
	fake_db_fail("access_store", FAILURE_CONFLICT, "the name pocket means");
	refused_with(FAILURE_CONFLICT, "the name pocket means");
	/* another administrator was first */
	stores(SERIAL, "{}");
	check_compiles(&(struct said_document){0});
	fake_db_fail("access_store", FAILURE_HASH_MISMATCH,
	    "the access document was changed meanwhile: read it again");
	refused_with(FAILURE_HASH_MISMATCH, "read it again");
}

/* ---- gateways ---- */

static void
metadata_of_each_listener(void **unused)
{
	struct ipc_gw_access m;

	answer_row(SERIAL, "{}", NULL);
	vault_knows();
	check_compiles(&(struct said_document){.narrows = true});
	hear_access(f.local, &m);
	assert_int_equal(m.assertion, 0);
	assert_int_equal(m.metadata.n, 0);
	assert_int_equal(m.resource_metadata.n, 0);
	assert_int_equal(m.scope.n, 0);
	hear_access(f.tunnel, &m);
	assert_int_equal(m.assertion, 1); /* of door */
	assert_true(ipc_streq(m.resource_metadata,
	    "https://mcp.example.org/.well-known/oauth-protected-resource/"
	    "mcp"));
	assert_true(
	    ipc_streq(m.scope, "tools:read tools:call manage manage:edit"));
	assert_true(ipc_streq(m.metadata,
	    "{\"resource\":\"https://mcp.example.org/mcp\","
	    "\"authorization_servers\":[\"https://id.example.org\"],"
	    "\"scopes_supported\":[\"tools:read\",\"tools:call\",\"manage\","
	    "\"manage:edit\"],\"bearer_methods_supported\":[\"header\"],"
	    "\"resource_name\":\"mcpbox\"}"));
	/* An issuer whose scopes do not count need not know ours; each knows
	 * those of OpenID, and a rule judges an address. */
	document_notified(a, "document");
	answer_row(SERIAL + 1, "{}", NULL);
	vault_knows();
	check_compiles(&(struct said_document){.listeners = LOCALLY});
	hear_access(f.local, &m);
	assert_int_equal(m.assertion, 0);
	assert_int_equal(m.scope.n, 0);
	assert_true(ipc_streq(m.metadata,
	    "{\"resource\":\"https://mcp.example.org/mcp\","
	    "\"authorization_servers\":[\"https://id.example.org\"],"
	    "\"scopes_supported\":[\"openid\",\"email\"],"
	    "\"bearer_methods_supported\":[\"header\"],"
	    "\"resource_name\":\"mcpbox\"}"));
	hear_access(f.tunnel, &m);
	assert_int_equal(m.assertion, 1);
	/* door alone: no client asks it for a token */
	assert_true(ipc_streq(m.metadata,
	    "{\"resource\":\"https://mcp.example.org/mcp\","
	    "\"bearer_methods_supported\":[\"header\"],"
	    "\"resource_name\":\"mcpbox\"}"));
}

/* A gateway hears it after its set-up, and has no set-up before the document
 * was read. */
static void
gateway_attaches(void **unused)
{
	struct ipc_gw_attach q = {0};
	struct ipc_gw_config c;
	struct ipc_gw_access m;

	a->have_session_key = true;
	(void)auth_message(f.tunnelled, fake_frame(IPC_GW_ATTACH, R, &q));
	assert_int_equal(fake_db_waits("auth_attach"), 0);
	document_holds(&(struct said_document){0}, SERIAL);
	fake_db_row("inn", (int64_t)7);
	fake_db_answer("auth_attach");
	assert_int_equal(fake_took(f.tunnel, IPC_GW_CONFIG, &c), R);
	hear_access(f.tunnel, &m);
	assert_int_equal(m.assertion, 1);
	assert_true(m.metadata.n > 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(no_document),
	    TEST(whole_way),
	    TEST(row_that_can_not_hold),
	    TEST(serial_of_a_wrong_clock),
	    TEST(check_refuses_stored_document),
	    TEST(processes_that_are_away),
	    TEST(change_during_a_reading),
	    TEST(seal_is_given_back),
	    TEST(document_is_stored),
	    TEST(invalid_document_is_not_stored),
	    TEST(metadata_of_each_listener),
	    TEST(gateway_attaches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
