/*
 * Pre-images from typed fields, what was inspected, and the version before.
 */
#include "draft.h"
#include "management_tools.h"
#include "tlv.h"
#include "unit.h"
#include "version.h"

static struct draft *
fresh(const char *name, bool bare)
{
	struct draft *d = draft_new();

	assert_non_null(d);
	memset(&d->server_id, 1, sizeof(d->server_id));
	memset(&d->tool_id, 2, sizeof(d->tool_id));
	assert_int_equal(
	    draft_names(d, ipc_str("demo"), ipc_str(name), bare), 0);
	return d;
}

static void
set_object(struct draft *d, const char *object)
{
	memcpy(d->object, object, strlen(object) + 1);
}

static struct ipc_bytes
of(struct buf *b)
{
	return ipc_bytes(b->p, b->len);
}

/* The n-th field with this tag, as text; NULL if there is none. */
static char *
field(const struct draft *d, unsigned tag, unsigned n)
{
	static char text[4][4096];
	static unsigned turn;
	const uint8_t *list;
	struct tlv_reader r;
	struct tlv t;
	size_t len;
	char *out = text[turn++ % 4];

	assert_int_equal(
	    version_check(d->preimage.p, d->preimage.len, &list, &len, NULL),
	    0);
	tlv_open(&r, list, len);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == tag && n-- == 0) {
			assert_true(t.n < sizeof(text[0]));
			memcpy(out, t.p, t.n);
			out[t.n] = '\0';
			return out;
		}
	return NULL;
}

static void
first_version(struct buf *fields, struct buf *inspected)
{
	buf_init(fields, 1 << 20);
	buf_init(inspected, 1 << 20);
	tlv_puts(fields, MF_NAME, "greet");
	tlv_puts(fields, MF_CODE, "def main(): pass");
	tlv_puts(fields, MF_TITLE, "Greet");
	tlv_puts(fields, MF_SECRET, "A");
	tlv_puts(fields, MF_SECRET, "B");
	tlv_puts(fields, MF_MODULE, "");
	tlv_put_u64(fields, MF_CONFIRM, 1);
	tlv_put_u64(fields, MF_TIMEOUT_MS, 5000);
	tlv_put_u64(inspected, INSPECT_OK, 1);
	tlv_puts(inspected, INSPECT_INPUT_SCHEMA, "{\"type\":\"object\"}");
	tlv_puts(inspected, INSPECT_DOC, "Greets.");
}

static void
creates(void **state)
{
	struct draft *d = fresh("greet", false);
	struct buf fields, inspected;
	struct err e;

	first_version(&fields, &inspected);
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), 0);
	assert_string_equal(d->exposed, "demo__greet");
	assert_string_equal(field(d, VERSION_EXPOSED_NAME, 0), "demo__greet");
	assert_string_equal(field(d, VERSION_DESCRIPTION, 0), "Greets.");
	assert_string_equal(
	    field(d, VERSION_INPUT_SCHEMA, 0), "{\"type\":\"object\"}");
	assert_string_equal(field(d, VERSION_KIND, 0), "python");
	assert_string_equal(field(d, VERSION_CODE, 0), "def main(): pass");
	assert_string_equal(field(d, VERSION_SECRET, 1), "B");
	assert_null(field(d, VERSION_SECRET, 2));
	assert_null(field(d, VERSION_MODULE, 0));
	assert_null(field(d, VERSION_OUTPUT_SCHEMA, 0));
	assert_non_null(field(d, VERSION_TIMEOUT_MS, 0));
	buf_free(&fields);
	buf_free(&inspected);
	draft_free(d);

	d = fresh("greet", true);
	assert_string_equal(d->exposed, "greet");
	draft_free(d);
	draft_free(NULL);
}

/* What an author gives wins over what was inspected. */
/* Code that reads otherwise than it runs is no draft, also where the version
 * before has it. */
static void
lines_of_code(void **state)
{
	struct draft *d = fresh("greet", false);
	struct buf fields, inspected;
	struct err e;

	first_version(&fields, &inspected);
	buf_clear(&fields);
	tlv_puts(&fields, MF_CODE, "def main():\n    # a\r    pass\n");
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), -1);
	assert_non_null(strstr(e.text, "character 8 of line 2 is U+000D"));
	buf_put(&d->before, d->preimage.p, d->preimage.len);
	buf_clear(&fields);
	tlv_puts(&fields, MF_TITLE, "Another");
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), -1);
	assert_non_null(strstr(e.text, "character 8 of line 2 is U+000D"));
	buf_free(&fields);
	buf_free(&inspected);
	draft_free(d);
}

static void
given_wins(void **state)
{
	struct draft *d = fresh("greet", false);
	struct buf fields, inspected;
	struct err e;

	first_version(&fields, &inspected);
	tlv_puts(&fields, MF_DESCRIPTION, "Mine.");
	tlv_puts(&fields, MF_INPUT_SCHEMA, "{\"type\":\"object\",\"title\":1}");
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), 0);
	assert_string_equal(field(d, VERSION_DESCRIPTION, 0), "Mine.");
	assert_non_null(strstr(field(d, VERSION_INPUT_SCHEMA, 0), "title"));
	assert_null(field(d, VERSION_DESCRIPTION, 1));
	buf_free(&fields);
	buf_free(&inspected);
	draft_free(d);
}

static void
updates(void **state)
{
	struct draft *d = fresh("greet", false), *u;
	struct buf fields, inspected, none;
	struct err e;
	char note[64];

	first_version(&fields, &inspected);
	buf_init(&none, 16);
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), 0);

	/* Nothing given: the very same bytes. */
	u = fresh("greet", false);
	buf_put(&u->before, d->preimage.p, d->preimage.len);
	assert_int_equal(draft_make(u, of(&none), of(&none), &e), 0);
	assert_int_equal(u->preimage.len, d->preimage.len);
	assert_memory_equal(u->preimage.p, d->preimage.p, d->preimage.len);

	/* New code brings its schema; a written description stays; empty
	 * values clear. */
	buf_clear(&fields);
	tlv_puts(&fields, MF_CODE, "async def main(a): pass");
	tlv_puts(&fields, MF_TITLE, "");
	tlv_puts(&fields, MF_SECRET, "");
	buf_clear(&inspected);
	tlv_puts(&inspected, INSPECT_INPUT_SCHEMA,
	    "{\"type\":\"object\",\"required\":[\"a\"]}");
	tlv_puts(&inspected, INSPECT_DOC, "Other doc.");
	assert_int_equal(draft_make(u, of(&fields), of(&inspected), &e), 0);
	assert_string_equal(field(u, VERSION_DESCRIPTION, 0), "Greets.");
	assert_non_null(strstr(field(u, VERSION_INPUT_SCHEMA, 0), "required"));
	assert_null(field(u, VERSION_TITLE, 0));
	assert_null(field(u, VERSION_SECRET, 0));
	assert_non_null(field(u, VERSION_CONFIRM, 0));
	draft_note(of(&fields), note, sizeof(note));
	assert_string_equal(note, "python_code, title, secrets");
	draft_note(of(&fields), note, 16);
	assert_true(strlen(note) < 16);

	/* A pre-image that is none is not built upon. */
	buf_clear(&u->before);
	buf_puts(&u->before, "mcpbox version 2");
	assert_int_equal(draft_make(u, of(&none), of(&none), &e), -1);

	buf_clear(&fields);
	tlv_put(&fields, MF_TOOL_ID, "0123456789abcdef", 16);
	assert_false(draft_asked(of(&fields)));
	tlv_put_u64(&fields, MF_ENABLED, 0);
	assert_false(draft_asked(of(&fields)));
	tlv_puts(&fields, MF_DESCRIPTION, "");
	assert_true(draft_asked(of(&fields)));
	buf_free(&fields);
	buf_free(&inspected);
	buf_free(&none);
	draft_free(d);
	draft_free(u);
}

/* Each kind has its own parts and no others', also when it changes. */
static void
kinds(void **state)
{
	struct draft *d = fresh("greet", false), *u = fresh("greet", false);
	struct buf fields, inspected, none;
	struct ipc_bytes found;
	struct err e;

	first_version(&fields, &inspected);
	buf_init(&none, 16);
	assert_false(draft_is_command(d, of(&fields)));
	tlv_puts(&d->lock, VERSION_MODULE, "six 1 00");
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), 0);
	assert_string_equal(field(d, VERSION_MODULE, 0), "six 1 00");

	buf_put(&u->before, d->preimage.p, d->preimage.len);
	assert_int_equal(
	    draft_field(u, of(&none), MF_CODE, VERSION_CODE, &found), 1);
	assert_true(ipc_streq(found, "def main(): pass"));
	assert_int_equal(
	    draft_field(u, of(&none), MF_SPEC, VERSION_SPEC, &found), 0);
	buf_clear(&fields);
	tlv_puts(&fields, MF_KIND, "command");
	tlv_puts(&fields, MF_SPEC, "{\"argv\":[]}");
	tlv_puts(&fields, MF_EXECUTABLE, "/usr/bin/wc");
	tlv_put_u64(&fields, MF_CPU_MS, 700);
	buf_clear(&inspected);
	tlv_puts(&inspected, INSPECT_INPUT_SCHEMA, "{\"type\":\"object\"}");
	tlv_puts(&inspected, INSPECT_EXECUTABLE_DIGEST, "ab");
	assert_true(draft_is_command(u, of(&fields)));
	assert_int_equal(draft_make(u, of(&fields), of(&inspected), &e), 0);
	assert_null(field(u, VERSION_CODE, 0));
	assert_null(field(u, VERSION_MODULE, 0));
	assert_string_equal(field(u, VERSION_KIND, 0), "command");
	assert_string_equal(field(u, VERSION_EXECUTABLE, 0), "/usr/bin/wc");
	assert_string_equal(field(u, VERSION_EXECUTABLE_DIGEST, 0), "ab");
	assert_non_null(field(u, VERSION_CPU_MS, 0));

	/* What is left out stays, the digest too; and back to Python. */
	buf_clear(&d->before);
	buf_clear(&d->lock);
	buf_put(&d->before, u->preimage.p, u->preimage.len);
	assert_true(draft_is_command(d, of(&none)));
	assert_int_equal(draft_make(d, of(&none), of(&none), &e), 0);
	assert_int_equal(d->preimage.len, u->preimage.len);
	assert_memory_equal(d->preimage.p, u->preimage.p, u->preimage.len);
	buf_clear(&fields);
	tlv_puts(&fields, MF_KIND, "python");
	tlv_puts(&fields, MF_CODE, "def main(): pass");
	assert_false(draft_is_command(d, of(&fields)));
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), 0);
	assert_null(field(d, VERSION_SPEC, 0));
	assert_null(field(d, VERSION_EXECUTABLE, 0));
	assert_null(field(d, VERSION_EXECUTABLE_DIGEST, 0));
	assert_string_equal(field(d, VERSION_CODE, 0), "def main(): pass");
	buf_free(&fields);
	buf_free(&inspected);
	buf_free(&none);
	draft_free(d);
	draft_free(u);
}

/* A prompt or resource: its kind follows from what is given, its schema never
 * from its code; text, blob and code replace each other. */
static void
objects(void **state)
{
	struct draft *d = fresh("a", false), *u = fresh("a", false);
	struct buf fields, inspected, none;
	struct err e;

	buf_init(&fields, 1 << 16);
	buf_init(&inspected, 1 << 16);
	buf_init(&none, 16);
	set_object(d, "resource");
	set_object(u, "resource");
	tlv_puts(&fields, MF_URI, "a:b");
	tlv_puts(&fields, MF_MIME_TYPE, "text/plain");
	tlv_puts(&fields, MF_TEXT, "");
	tlv_put_u64(&fields, MF_TTL_MS, 5);
	tlv_puts(&fields, MF_CLIENT_CAPABILITY, "roots");
	tlv_puts(&fields, MF_OBJECT_SCHEMA, "{\"type\":\"object\"}");
	assert_int_equal(draft_make(d, of(&fields), of(&none), &e), 0);
	assert_string_equal(field(d, VERSION_OBJECT, 0), "resource");
	assert_string_equal(field(d, VERSION_KIND, 0), "static");
	assert_string_equal(field(d, VERSION_URI, 0), "a:b");
	assert_string_equal(field(d, VERSION_TEXT, 0), "");
	assert_string_equal(field(d, VERSION_CLIENT_CAPABILITY, 0), "roots");
	assert_string_equal(
	    field(d, VERSION_INPUT_SCHEMA, 0), "{\"type\":\"object\"}");

	/* Code instead, with another signature and a docstring. */
	buf_put(&u->before, d->preimage.p, d->preimage.len);
	buf_clear(&fields);
	tlv_puts(&fields, MF_CODE, "def main(x): pass");
	tlv_puts(&fields, MF_SECRET, "S");
	tlv_puts(&fields, MF_MIME_TYPE, "");
	tlv_puts(&fields, MF_CLIENT_CAPABILITY, "");
	tlv_puts(&inspected, INSPECT_INPUT_SCHEMA, "{\"x\":1}");
	tlv_puts(&inspected, INSPECT_DOC, "Doc.");
	assert_int_equal(draft_kind(u, of(&fields)), DRAFT_PYTHON);
	assert_int_equal(draft_make(u, of(&fields), of(&inspected), &e), 0);
	assert_string_equal(field(u, VERSION_KIND, 0), "python");
	assert_null(field(u, VERSION_TEXT, 0));
	assert_null(field(u, VERSION_MIME_TYPE, 0));
	assert_null(field(u, VERSION_CLIENT_CAPABILITY, 0));
	assert_string_equal(field(u, VERSION_URI, 0), "a:b");
	assert_string_equal(
	    field(u, VERSION_INPUT_SCHEMA, 0), "{\"type\":\"object\"}");
	assert_string_equal(field(u, VERSION_SECRET, 0), "S");

	/* And static again: no code and no secrets; a blob replaces a text. */
	buf_clear(&d->before);
	buf_put(&d->before, u->preimage.p, u->preimage.len);
	buf_clear(&fields);
	tlv_puts(&fields, MF_BLOB, "AAAA");
	assert_int_equal(draft_make(d, of(&fields), of(&none), &e), 0);
	assert_null(field(d, VERSION_CODE, 0));
	assert_null(field(d, VERSION_SECRET, 0));
	assert_string_equal(field(d, VERSION_BLOB, 0), "AAAA");
	buf_clear(&u->before);
	buf_put(&u->before, d->preimage.p, d->preimage.len);
	buf_clear(&fields);
	tlv_puts(&fields, MF_TEXT, "t");
	assert_int_equal(draft_make(u, of(&fields), of(&none), &e), 0);
	assert_null(field(u, VERSION_BLOB, 0));
	assert_string_equal(field(u, VERSION_TEXT, 0), "t");
	/* What is left out stays. */
	buf_clear(&fields);
	tlv_puts(&fields, MF_TITLE, "T");
	buf_clear(&d->before);
	buf_put(&d->before, u->preimage.p, u->preimage.len);
	assert_int_equal(draft_kind(d, of(&fields)), DRAFT_STATIC);
	assert_int_equal(draft_make(d, of(&fields), of(&none), &e), 0);
	assert_string_equal(field(d, VERSION_TEXT, 0), "t");
	assert_string_equal(field(d, VERSION_TITLE, 0), "T");
	buf_free(&fields);
	buf_free(&inspected);
	buf_free(&none);
	draft_free(d);
	draft_free(u);
}

static void
names_keep_their_limits(void **state)
{
	struct draft *d = fresh("a", false);

	assert_int_equal(draft_names(d, ipc_str("abcdefghijklmnopqrstuvwxy"),
			     ipc_str("a"), false),
	    -1);
	assert_int_equal(
	    draft_names(d, ipc_str("abcdefghijklmnopqrstuvwx"),
		ipc_str("abcdefghijklmnopqrstuvwxyzabcdefghijkl"), false),
	    0);
	assert_int_equal(strlen(d->exposed), 64);
	draft_free(d);
}

/* Of kind http: what follows from the specification comes from there alone,
 * whatever the fields and the version before say. */
static void
follows_from_a_specification(void **state)
{
	struct draft *d = fresh("rest", false), *next = fresh("rest", false);
	struct buf fields, inspected;
	struct err e;

	(void)state;
	/* It was Python once, with a right or two. */
	first_version(&fields, &inspected);
	tlv_puts(&fields, MF_REQUIRE, "old.example");
	assert_int_equal(draft_make(d, of(&fields), of(&inspected), &e), 0);
	buf_put(&next->before, d->preimage.p, d->preimage.len);
	buf_free(&fields);
	buf_free(&inspected);

	buf_init(&fields, 1 << 20);
	buf_init(&inspected, 1 << 20);
	tlv_puts(&fields, MF_KIND, "http");
	tlv_puts(&fields, MF_SPEC, "{}");
	tlv_puts(&fields, MF_INPUT_SCHEMA, "{\"title\":\"mine\"}");
	tlv_puts(&fields, MF_SECRET, "STOLEN");
	tlv_puts(&fields, MF_REQUIRE, "evil.example");
	tlv_put_u64(&fields, MF_CONFIRM, 0);
	tlv_puts(&inspected, INSPECT_INPUT_SCHEMA, "{\"type\":\"object\"}");
	tlv_puts(&inspected, INSPECT_SECRET, "KEY");
	tlv_puts(&inspected, INSPECT_REQUIRE, "api.example:443");
	tlv_put_u64(&inspected, INSPECT_CONFIRM, 1);
	assert_int_equal(draft_make(next, of(&fields), of(&inspected), &e), 0);
	assert_string_equal(field(next, VERSION_KIND, 0), "http");
	assert_string_equal(field(next, VERSION_SPEC, 0), "{}");
	assert_string_equal(
	    field(next, VERSION_INPUT_SCHEMA, 0), "{\"type\":\"object\"}");
	assert_string_equal(field(next, VERSION_SECRET, 0), "KEY");
	assert_null(field(next, VERSION_SECRET, 1));
	assert_string_equal(field(next, VERSION_REQUIRE, 0), "api.example:443");
	assert_null(field(next, VERSION_REQUIRE, 1));
	assert_int_equal(field(next, VERSION_CONFIRM, 0)[7], 1);
	assert_null(field(next, VERSION_CODE, 0));
	assert_null(field(next, VERSION_MODULE, 0));
	buf_free(&fields);
	buf_free(&inspected);
	draft_free(d);
	draft_free(next);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(creates),
	    cmocka_unit_test(lines_of_code),
	    cmocka_unit_test(given_wins),
	    cmocka_unit_test(updates),
	    cmocka_unit_test(kinds),
	    cmocka_unit_test(follows_from_a_specification),
	    cmocka_unit_test(objects),
	    cmocka_unit_test(names_keep_their_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
