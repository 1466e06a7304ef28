/*
 * The catalogue as gateways are sent it (catalogue.c), with a fake database and
 * fake gateways: its parts and their order, pages, the rest of a stopped
 * object, a slow gateway that slows only its own list, and the announcement of
 * changes.
 */
#include <event2/event.h>

#include "activity.h"
#include "catalogue.h"
#include "fake_admind.h"
#include "management_tools.h"
#include "unit.h"

enum { REQUEST = 9, PAGE_ROWS = 64, QUEUED_MAX = 2 * 1024 * 1024 };

static struct fake f;
static struct admind *a;
static uint32_t items; /* taken since the last END */

static int
setup(void **unused)
{
	struct err err;

	fake_admind(&f, NULL);
	a = f.a;
	items = 0;
	assert_int_equal(activity_start(a, &err), 0);
	return 0;
}

static int
teardown(void **unused)
{
	fake_admind_free(&f, false);
	return 0;
}

/* ---- lists ---- */

static void
get(void)
{
	struct ipc_catalogue_get m = {.permission_set = ipc_str("local")};

	assert_int_equal(catalogue_message(f.gateway,
			     fake_frame(IPC_CATALOGUE_GET, REQUEST, &m)),
	    0);
}

/* A row of a page: only members that a test reads have a value. */
struct row {
	const char *name, *uri, *title, *description, *mime, *meta, *schema,
	    *annotations;
	int64_t size, ttl_ms;
	bool sized, hinted;
};

static const struct ipc_hash version = {{0xbe, 0xef}};

static void
put(int64_t revision, const struct row *r)
{
	char columns[] = "isshsssnnsnsnsnss";

	assert_int_equal(strlen(columns), 17);
	/* revision name uri hash title description mime size ttl meta icons
	 * input output annotations arguments server plain_name */
	if (r->sized && r->hinted) {
		columns[7] = columns[8] = 'i';
		fake_db_row(columns, revision, r->name, r->uri, &version,
		    r->title, r->description, r->mime, r->size, r->ttl_ms,
		    r->meta, r->schema, r->annotations, "s", r->name);
	} else if (r->hinted) {
		columns[8] = 'i';
		fake_db_row(columns, revision, r->name, r->uri, &version,
		    r->title, r->description, r->mime, r->ttl_ms, r->meta,
		    r->schema, r->annotations, "s", r->name);
	} else {
		fake_db_row(columns, revision, r->name, r->uri, &version,
		    r->title, r->description, r->mime, r->meta, r->schema,
		    r->annotations, "s", r->name);
	}
}

/* The one row of an empty page: its revision. */
static void
put_none(int64_t revision)
{
	fake_db_row("innnnnnnnnnnnnnnn", revision);
}

/* A page is asked for: of this kind of object, after this name. */
static void
asked(const char *statement, const char *object, const char *after)
{
	assert_int_equal(fake_db_waits(NULL), 1);
	fake_db_is(statement, 0, after);
	assert_int_equal(fake_db_int(statement, 1), PAGE_ROWS);
	fake_db_is(statement, 2, object);
}

static void
no_more(const char *statement, const char *object)
{
	asked(statement, object, "");
	put_none(41);
	fake_db_answer(statement);
}

static void
item_is(enum mcp_list list, const char *name, const char *uri, const char *json)
{
	struct ipc_catalogue_item m;

	assert_int_equal(fake_took(f.local, IPC_CATALOGUE_ITEM, &m), REQUEST);
	items++;
	assert_int_equal(m.list, list);
	assert_true(ipc_streq(m.name, name));
	assert_true(ipc_streq(m.uri, uri));
	if (!ipc_streq(m.json, json))
		fail_msg("%.*s", (int)m.json.n, (const char *)m.json.p);
	assert_memory_equal(&m.version, &version, sizeof(version));
}

/* The management tools, in their table's order. */
static void
management_tools_come(void)
{
	static const struct ipc_hash none;
	struct ipc_catalogue_item m;
	const struct management_tool *t;
	size_t n;

	t = management_tools(&n);
	for (size_t i = 0; i < n; i++) {
		(void)fake_took(f.local, IPC_CATALOGUE_ITEM, &m);
		items++;
		assert_int_equal(m.list, MCP_LIST_TOOLS);
		assert_true(ipc_streq(m.name, t[i].name));
		assert_memory_equal(&m.version, &none, sizeof(none));
	}
}

static void
end_is(uint64_t revision)
{
	struct ipc_catalogue_end m;

	assert_int_equal(fake_took(f.local, IPC_CATALOGUE_END, &m), REQUEST);
	assert_int_equal(m.revision, revision);
	assert_int_equal(m.count, items);
	assert_int_equal(fake_peer_waits(f.local), 0);
	assert_int_equal(fake_db_waits(NULL), 0);
	assert_int_equal(a->nops, 0);
}

static void
empty_catalogue(void **unused)
{
	get();
	no_more("catalogue_tools", "tool");
	management_tools_come();
	no_more("catalogue_page", "prompt");
	no_more("catalogue_page", "resource");
	no_more("catalogue_page", "template");
	assert_int_equal(fake_peer_waits(f.local), 0);
	no_more("catalogue_stopped", "resource");
	end_is(41);
}

static void
parts_in_their_order(void **unused)
{
	get();
	put(41,
	    &(struct row){.name = "a__one",
		.title = "One",
		.description = "",
		.schema = "{ \"type\" : \"object\" }",
		.annotations = "{\"readOnlyHint\":true}"});
	put(41, &(struct row){.name = "a__two", .description = "Two \"2\""});
	fake_db_answer("catalogue_tools");
	/* A tool always has a description; schemas are the stored bytes. */
	item_is(MCP_LIST_TOOLS, "a__one", "",
	    "{\"name\":\"a__one\",\"title\":\"One\",\"description\":\"\","
	    "\"inputSchema\":{ \"type\" : \"object\" },"
	    "\"annotations\":{\"readOnlyHint\":true}}");
	item_is(MCP_LIST_TOOLS, "a__two", "",
	    "{\"name\":\"a__two\",\"description\":\"Two \\\"2\\\"\"}");
	management_tools_come();
	put(42, &(struct row){.name = "p", .description = ""});
	fake_db_answer("catalogue_page");
	item_is(MCP_LIST_PROMPTS, "p", "", "{\"name\":\"p\"}");
	put(42,
	    &(struct row){.name = "r",
		.uri = "x://r",
		.mime = "text/plain",
		.sized = true,
		.size = 12,
		.hinted = true,
		.ttl_ms = 5000,
		.meta = "{\"k\":1}"});
	fake_db_answer("catalogue_page");
	item_is(MCP_LIST_RESOURCES, "r", "x://r",
	    "{\"uri\":\"x://r\",\"name\":\"r\",\"mimeType\":\"text/plain\","
	    "\"size\":12,\"_meta\":{\"mcpbox/ttlMs\":5000,\"k\":1}}");
	put(42,
	    &(struct row){.name = "t", .uri = "x://{y}", .meta = "{\"k\":1}"});
	fake_db_answer("catalogue_page");
	item_is(MCP_LIST_TEMPLATES, "t", "x://{y}",
	    "{\"uriTemplate\":\"x://{y}\",\"name\":\"t\",\"_meta\":{\"k\":1}}");
	no_more("catalogue_stopped", "resource");
	/* The first page's revision: a later change is announced anyway. */
	end_is(41);
}

static void
hint_without_an_author_s_object(void **unused)
{
	get();
	no_more("catalogue_tools", "tool");
	management_tools_come();
	no_more("catalogue_page", "prompt");
	put(41,
	    &(struct row){
		.name = "r", .uri = "x://r", .hinted = true, .ttl_ms = 1});
	put(41,
	    &(struct row){.name = "s",
		.uri = "x://s",
		.hinted = true,
		.ttl_ms = 2,
		.meta = "{ }"});
	fake_db_answer("catalogue_page");
	item_is(MCP_LIST_RESOURCES, "r", "x://r",
	    "{\"uri\":\"x://r\",\"name\":\"r\","
	    "\"_meta\":{\"mcpbox/ttlMs\":1}}");
	item_is(MCP_LIST_RESOURCES, "s", "x://s",
	    "{\"uri\":\"x://s\",\"name\":\"s\","
	    "\"_meta\":{\"mcpbox/ttlMs\":2}}");
	no_more("catalogue_page", "template");
	no_more("catalogue_stopped", "resource");
	end_is(41);
}

/* Its URI, so that no template answers for it, and nothing else. */
static void
stopped_object_leaves_its_uri(void **unused)
{
	get();
	no_more("catalogue_tools", "tool");
	management_tools_come();
	no_more("catalogue_page", "prompt");
	no_more("catalogue_page", "resource");
	no_more("catalogue_page", "template");
	asked("catalogue_stopped", "resource", "");
	put(41,
	    &(struct row){.name = "r",
		.uri = "x://r",
		.title = "Secret plans",
		.description = "of the stopped one",
		.mime = "text/plain",
		.meta = "{\"k\":1}"});
	fake_db_answer("catalogue_stopped");
	item_is(MCP_LIST_STOPPED, "r", "x://r", "{}");
	end_is(41);
}

static void
full_page(int first, int rows)
{
	char name[16];

	for (int i = first; i < first + rows; i++) {
		(void)snprintf(name, sizeof(name), "a__%03d", i);
		put(41, &(struct row){.name = name, .description = ""});
	}
	fake_db_answer("catalogue_tools");
}

static void
page_come(int first, int rows)
{
	char name[16], json[64];

	for (int i = first; i < first + rows; i++) {
		(void)snprintf(name, sizeof(name), "a__%03d", i);
		(void)snprintf(json, sizeof(json),
		    "{\"name\":\"%s\",\"description\":\"\"}", name);
		item_is(MCP_LIST_TOOLS, name, "", json);
	}
}

static void
pages_go_on_behind_the_last_name(void **unused)
{
	get();
	asked("catalogue_tools", "tool", "");
	full_page(0, PAGE_ROWS);
	page_come(0, PAGE_ROWS);
	asked("catalogue_tools", "tool", "a__063");
	full_page(64, PAGE_ROWS);
	page_come(64, PAGE_ROWS);
	/* Nothing is left, which only the next page says. */
	asked("catalogue_tools", "tool", "a__127");
	put_none(50);
	fake_db_answer("catalogue_tools");
	management_tools_come();
	/* The next list begins at its front. */
	no_more("catalogue_page", "prompt");
	no_more("catalogue_page", "resource");
	no_more("catalogue_page", "template");
	no_more("catalogue_stopped", "resource");
	end_is(41);
}

static void
slow_gateway_slows_its_own_list(void **unused)
{
	get();
	fake_peer_queue(f.local, QUEUED_MAX + 1);
	full_page(0, PAGE_ROWS);
	page_come(0, PAGE_ROWS);
	/* Nothing is read before it took the waiting parts. */
	assert_int_equal(fake_db_waits(NULL), 0);
	for (int i = 0; i < 3; i++)
		event_base_loop(a->proc.base, EVLOOP_ONCE);
	assert_int_equal(fake_db_waits(NULL), 0);
	fake_peer_queue(f.local, QUEUED_MAX);
	event_base_loop(a->proc.base, EVLOOP_ONCE);
	asked("catalogue_tools", "tool", "a__063");
}

static void
gone_gateway_ends_its_list(void **unused)
{
	get();
	f.gateway->peer = NULL;
	full_page(0, PAGE_ROWS);
	assert_int_equal(fake_db_waits(NULL), 0);
	assert_int_equal(fake_peer_waits(f.local), 0);
	assert_int_equal(a->nops, 0);
}

static void
failed_page_is_a_refusal(void **unused)
{
	struct ipc_refused no;

	get();
	fake_db_fail("catalogue_tools", FAILURE_STORAGE_UNAVAILABLE, "gone");
	assert_int_equal(fake_took(f.local, IPC_REFUSED, &no), REQUEST);
	assert_int_equal(no.failure, FAILURE_STORAGE_UNAVAILABLE);
	assert_int_equal(a->nops, 0);
}

static void
tunnel_has_no_list_of_its_own(void **unused)
{
	struct ipc_catalogue_get m = {.permission_set = ipc_str("local")};
	struct ipc_refused no;

	assert_int_equal(catalogue_message(f.tunnelled,
			     fake_frame(IPC_CATALOGUE_GET, REQUEST, &m)),
	    0);
	(void)fake_took(f.tunnel, IPC_REFUSED, &no);
	assert_int_equal(no.failure, FAILURE_FORBIDDEN);
	assert_int_equal(fake_db_waits(NULL), 0);
	m.permission_set = ipc_str("another");
	assert_int_equal(catalogue_message(f.gateway,
			     fake_frame(IPC_CATALOGUE_GET, REQUEST, &m)),
	    0);
	(void)fake_took(f.local, IPC_REFUSED, &no);
	assert_int_equal(no.failure, FAILURE_FORBIDDEN);
	assert_int_equal(fake_db_waits(NULL), 0);
	/* A set that a person may have had before it was pushed out of memory:
	 * the gateway asks again about its client's credential. */
	m.permission_set = ipc_str("0123456789abcdef0123456789abcdef"
				   "0123456789abcdef0123456789abcdef");
	assert_int_equal(catalogue_message(f.tunnelled,
			     fake_frame(IPC_CATALOGUE_GET, REQUEST, &m)),
	    0);
	(void)fake_took(f.tunnel, IPC_REFUSED, &no);
	assert_int_equal(no.failure, FAILURE_BUSY);
	assert_int_equal(fake_db_waits(NULL), 0);
}

/* ---- changes ---- */

static void
told_one(struct ipc_peer *peer, uint64_t revision, unsigned lists)
{
	struct ipc_catalogue_changed m;

	(void)fake_took(peer, IPC_CATALOGUE_CHANGED, &m);
	assert_int_equal(m.revision, revision);
	assert_int_equal(m.lists, lists);
}

static void
told(uint64_t revision, unsigned lists)
{
	told_one(f.local, revision, lists);
	told_one(f.tunnel, revision, lists);
}

static void
acknowledge(struct ipc_peer *peer)
{
	struct ipc_ok ok = {0};

	fake_answers(peer, IPC_OK, &ok);
}

static void
nobody_is_told(void)
{
	assert_int_equal(fake_peer_waits(f.local), 0);
	assert_int_equal(fake_peer_waits(f.tunnel), 0);
}

static void
notified_change_is_told(void **unused)
{
	a->revision = 41;
	catalogue_notified(a, "42 5");
	assert_int_equal(a->revision, 42);
	told(42, 5);
	acknowledge(f.local);
	assert_false(TAILQ_EMPTY(&a->announces));
	acknowledge(f.tunnel);
	assert_true(TAILQ_EMPTY(&a->announces));
	/* Once is enough, and no earlier one counts. */
	catalogue_notified(a, "42 5");
	catalogue_notified(a, "40 1");
	nobody_is_told();
}

/* After a gap the mask may be incomplete. */
static void
gap_names_all_lists(void **unused)
{
	a->revision = 41;
	catalogue_notified(a, "43 1");
	told(43, 15);
	acknowledge(f.local);
	acknowledge(f.tunnel);
}

static void
malformed_notices(void **unused)
{
	static const char *const bad[] = {"", "x", "42", "42 ", "42 1x",
	    "42x 1", " 1", "42 0", "99999999999999999999 1"};

	a->revision = 41;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		catalogue_notified(a, bad[i]);
	nobody_is_told();
	assert_int_equal(a->revision, 41);
}

static unsigned done;

static void
on_done(void *arg)
{
	assert_ptr_equal(arg, &done);
	done++;
}

static void
read_revision(int64_t since, int64_t revision, int64_t lists)
{
	assert_int_equal(fake_db_int("catalogue_revision", 0), since);
	fake_db_row("ii", revision, lists);
	fake_db_answer("catalogue_revision");
}

static void
change_waits_for_the_gateways(void **unused)
{
	done = 0;
	a->revision = 41;
	catalogue_announce(a, on_done, &done);
	nobody_is_told();
	read_revision(41, 42, 1);
	told(42, 1);
	acknowledge(f.tunnel);
	assert_int_equal(done, 0);
	/* Any end counts: a gateway that is gone has no cache. */
	fake_goes(f.local, FAILURE_BUSY);
	assert_int_equal(done, 1);
	/* The NOTIFY of the same change sends no second message. */
	catalogue_notified(a, "42 1");
	nobody_is_told();
}

static void
change_that_is_on_its_way(void **unused)
{
	done = 0;
	a->revision = 41;
	catalogue_notified(a, "42 1");
	told(42, 1);
	/* The maker of a token waits for the same acknowledgements. */
	catalogue_announce(a, on_done, &done);
	read_revision(42, 42, 0);
	nobody_is_told();
	assert_int_equal(done, 0);
	acknowledge(f.local);
	acknowledge(f.tunnel);
	assert_int_equal(done, 1);
	/* Nothing to wait for. */
	catalogue_announce(a, on_done, &done);
	read_revision(42, 42, 0);
	assert_int_equal(done, 2);
	nobody_is_told();
}

static void
restored_database_is_told(void **unused)
{
	done = 0;
	a->revision = 41;
	catalogue_announce(a, on_done, &done);
	read_revision(41, 30, 0);
	assert_int_equal(a->revision, 30);
	told(30, 15);
	acknowledge(f.local);
	acknowledge(f.tunnel);
	assert_int_equal(done, 1);
}

static void
without_the_database(void **unused)
{
	done = 0;
	a->revision = 41;
	catalogue_announce(a, on_done, &done);
	fake_db_fail("catalogue_revision", FAILURE_STORAGE_UNAVAILABLE, "gone");
	assert_int_equal(done, 1);
	nobody_is_told();
	assert_int_equal(a->revision, 41);
	catalogue_announce(a, NULL, NULL);
	read_revision(41, 42, 2);
	told(42, 2);
	acknowledge(f.local);
	acknowledge(f.tunnel);
	assert_true(TAILQ_EMPTY(&a->announces));
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(empty_catalogue),
	    T(parts_in_their_order), T(hint_without_an_author_s_object),
	    T(stopped_object_leaves_its_uri),
	    T(pages_go_on_behind_the_last_name),
	    T(slow_gateway_slows_its_own_list), T(gone_gateway_ends_its_list),
	    T(failed_page_is_a_refusal), T(tunnel_has_no_list_of_its_own),
	    T(notified_change_is_told), T(gap_names_all_lists),
	    T(malformed_notices), T(change_waits_for_the_gateways),
	    T(change_that_is_on_its_way), T(restored_database_is_told),
	    T(without_the_database)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
