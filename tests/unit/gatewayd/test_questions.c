/* Questions and answers: what is asked of whom, and what counts as answer. */
#include "questions.h"
#include "unit.h"

#define FORM(key)                                                     \
	"\"" key "\":{\"method\":\"elicitation/create\",\"params\":{" \
	"\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\"}}}"
#define URL(key)                                                      \
	"\"" key "\":{\"method\":\"elicitation/create\",\"params\":{" \
	"\"mode\":\"url\",\"message\":\"m\",\"url\":\"https://h/\"}}"
#define SAMPLE(key)                                                       \
	"\"" key "\":{\"method\":\"sampling/createMessage\",\"params\":{" \
	"\"messages\":[],\"maxTokens\":1}}"
#define TOOLS(key)                                                        \
	"\"" key "\":{\"method\":\"sampling/createMessage\",\"params\":{" \
	"\"messages\":[],\"maxTokens\":1,\"tools\":[]}}"
#define ROOTS(key) "\"" key "\":{\"method\":\"roots/list\",\"params\":{}}"
#define EVERYTHING                                                           \
	"{" FORM("f") "," URL("u") "," SAMPLE("s") "," TOOLS("t") "," ROOTS( \
	    "r") "}"
#define ALL                                                              \
	(CLIENT_ELICITATION | CLIENT_ELICITATION_URL | CLIENT_SAMPLING | \
	    CLIENT_SAMPLING_TOOLS | CLIENT_ROOTS)

static struct questions *
make(const char *text)
{
	struct questions *q = questions_new(3, ipc_str(text));

	assert_non_null(q);
	assert_int_equal(questions_number(q), 3);
	return q;
}

static void
expect(void (*f)(const struct questions *, struct buf *),
    const struct questions *q, const char *text)
{
	struct buf b;

	buf_init(&b, 65536);
	f(q, &b);
	buf_putc(&b, '\0');
	assert_false(b.failed);
	assert_string_equal((const char *)b.p, text);
	buf_free(&b);
}

static void
malformed(void **st)
{
	static const char *const bad[] = {"", "{}", "[]", "1", "{", "{\"a\":1}",
	    "{\"a\":{}}", "{\"a\":{\"method\":\"roots/list\"}}",
	    "{\"a\":{\"method\":\"roots/list\",\"params\":[]}}",
	    "{\"a\":{\"method\":\"tools/call\",\"params\":{}}}",
	    "{\"\":{\"method\":\"roots/list\",\"params\":{}}}",
	    "{\"a\\u0062\":{\"method\":\"roots/list\",\"params\":{}}}",
	    "{" ROOTS("a") "," ROOTS("a") "}"};
	struct buf many;
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(questions_new(1, ipc_str(bad[i])));
	buf_init(&many, 4096);
	for (i = 0; i <= QUESTIONS_MAX; i++)
		buf_putf(&many,
		    "%c\"k%u\":{\"method\":\"roots/list\",\"params\":{}}",
		    i > 0 ? ',' : '{', i);
	buf_putc(&many, '}');
	assert_null(questions_new(1, ipc_bytes(many.p, many.len)));
	buf_free(&many);
}

static unsigned
left(uint32_t declared, enum mcp_rev rev)
{
	struct questions *q = make(EVERYTHING);
	unsigned n;

	questions_declared(q, declared, rev);
	n = questions_open(q);
	questions_free(q);
	return n;
}

static void
declared(void **st)
{
	struct questions *q;

	assert_int_equal(left(ALL, MCP_REV_2026_07_28), 5);
	assert_int_equal(left(ALL, MCP_REV_2025_11_25), 5);
	assert_int_equal(left(ALL, MCP_REV_2025_06_18), 3);
	assert_int_equal(left(ALL, MCP_REV_2025_03_26), 2);
	assert_int_equal(left(0, MCP_REV_2026_07_28), 0);
	assert_int_equal(left(CLIENT_ELICITATION, MCP_REV_2026_07_28), 1);
	assert_int_equal(left(CLIENT_SAMPLING_TOOLS, MCP_REV_2026_07_28), 0);
	assert_int_equal(left(CLIENT_SAMPLING, MCP_REV_2026_07_28), 1);

	q = make("{" FORM("f") "," SAMPLE("s") "}");
	questions_declared(q, CLIENT_SAMPLING, MCP_REV_2026_07_28);
	expect(questions_requests, q, "{" SAMPLE("s") "}");
	expect(questions_answers, q,
	    "{\"f\":{\"error\":{\"code\":-32021,\"message\":\"The client "
	    "can't ask its user (capability elicitation).\"}}}");
	questions_free(q);
}

static void
take(struct questions *q, const char *text)
{
	questions_take(q, ipc_str(text));
}

static void
answers_of_the_modern_wire(void **st)
{
	struct questions *q = make(EVERYTHING);

	take(q, "{}");
	take(q,
	    "{\"f\":1,\"u\":{\"action\":\"perhaps\"},\"s\":{\"role\":"
	    "\"user\"},\"r\":{\"roots\":{}},\"x\":{}}");
	take(q, "{\"f\":{\"action\":\"accept\",\"content\":[]}}");
	take(q, "{\"f\":null,\"t\":\"x\"}");
	questions_take(q, ipc_bytes(NULL, 0));
	assert_int_equal(questions_open(q), 5);
	take(q,
	    "{\"f\":{\"action\":\"accept\",\"content\":{\"a\":1}},"
	    "\"u\":{\"action\":\"decline\"}}");
	assert_int_equal(questions_open(q), 3);
	/* The first answer stands. */
	take(q, "{\"f\":{\"action\":\"cancel\"}}");
	take(q,
	    "{\"s\":{\"role\":\"assistant\",\"content\":{}},\"t\":{"
	    "\"role\":\"assistant\",\"content\":[]},\"r\":{\"roots\":[]}}");
	assert_int_equal(questions_open(q), 0);
	expect(questions_requests, q, "{}");
	expect(questions_answers, q,
	    "{\"f\":{\"result\":{\"action\":\"accept\",\"content\":{\"a\":1}}"
	    "},\"u\":{\"result\":{\"action\":\"decline\"}},\"s\":{\"result\":{"
	    "\"role\":\"assistant\",\"content\":{}}},\"t\":{\"result\":{"
	    "\"role\":\"assistant\",\"content\":[]}},\"r\":{\"result\":{"
	    "\"roots\":[]}}}");
	questions_free(q);
}

static void
failing(void **st)
{
	struct questions *q = make("{" ROOTS("a") "," ROOTS("b") "}");

	take(q, "{\"b\":{\"roots\":[]}}");
	questions_fail(q, "no");
	assert_int_equal(questions_open(q), 0);
	expect(questions_answers, q,
	    "{\"a\":{\"error\":{\"code\":-32603,\"message\":\"no\"}},\"b\":{"
	    "\"result\":{\"roots\":[]}}}");
	questions_free(q);
}

/* Too much is an error for the tool, not memory of ours. */
static void
large(void **st)
{
	struct questions *q = make("{" ROOTS("a") "," ROOTS("b") "}");
	static char text[900 * 1024];
	struct buf b;
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "{\"a\":{\"roots\":[\"");
	memset(text + n, 'x', 700 * 1024);
	n += 700 * 1024;
	(void)snprintf(text + n, sizeof(text) - n, "\"]}}");
	take(q, text);
	assert_int_equal(questions_open(q), 1);
	buf_init(&b, 4096);
	questions_answers(q, &b);
	buf_putc(&b, '\0');
	assert_non_null(strstr((char *)b.p, "too large"));
	buf_free(&b);
	questions_free(q);
}

/* The id of the i-th question, in quotes. */
static const char *
id_of(const struct questions *q, unsigned i)
{
	static char id[8][QUESTION_ID_LEN + 3];
	struct buf b;
	bool end;

	buf_init(&b, 4096);
	assert_true(questions_request(q, i, &b, &end));
	assert_false(end);
	memcpy(id[i], b.p + strlen("{\"jsonrpc\":\"2.0\",\"id\":"),
	    QUESTION_ID_LEN + 2);
	buf_free(&b);
	return id[i];
}

static void
legacy(void **st)
{
	struct questions *q = make("{" FORM("f") "," URL("u") "}");
	struct ipc_bytes none = {NULL, 0};
	const char *f = id_of(q, 0), *u = id_of(q, 1);
	struct buf b;
	bool end;

	assert_string_not_equal(f, u);
	buf_init(&b, 4096);
	assert_true(questions_request(q, 1, &b, &end));
	buf_putc(&b, '\0');
	assert_non_null(strstr((char *)b.p, "\"elicitationId\":"));
	assert_false(questions_request(q, 2, &b, &end));
	assert_true(end);
	buf_free(&b);

	assert_false(questions_response(
	    q, ipc_str("\"AAAAAAAAAAAAAAAAAAAAAA\""), ipc_str("{}"), none));
	assert_false(questions_response(q, ipc_str("1"), ipc_str("{}"), none));
	assert_true(questions_response(
	    q, ipc_str(f), ipc_str("{\"action\":\"cancel\"}"), none));
	/* Once. */
	assert_false(questions_response(
	    q, ipc_str(f), ipc_str("{\"action\":\"accept\"}"), none));
	assert_true(questions_response(
	    q, ipc_str(u), none, ipc_str("{\"code\":1,\"message\":\"x\"}")));
	assert_int_equal(questions_open(q), 0);
	expect(questions_answers, q,
	    "{\"f\":{\"result\":{\"action\":\"cancel\"}},\"u\":{\"error\":{"
	    "\"code\":1,\"message\":\"x\"}}}");
	questions_free(q);

	/* A result that is none tells the tool so. */
	q = make("{" FORM("f") "}");
	f = id_of(q, 0);
	assert_true(questions_response(q, ipc_str(f), ipc_str("{}"), none));
	assert_int_equal(questions_open(q), 0);
	questions_free(q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(malformed),
	    cmocka_unit_test(declared),
	    cmocka_unit_test(answers_of_the_modern_wire),
	    cmocka_unit_test(failing),
	    cmocka_unit_test(large),
	    cmocka_unit_test(legacy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
