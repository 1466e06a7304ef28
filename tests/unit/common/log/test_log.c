/* log.h: hostile text can neither add a line nor drive a terminal. */
#include "unit.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <endian.h>
#include <signal.h>
#include <unistd.h>

#include "log.h"

static char captured[65536];

/* Runs one log call with stderr in a pipe; returns what came out. */
#define CAPTURE(call)                                             \
	do {                                                      \
		int fds[2], saved;                                \
		ssize_t n;                                        \
		assert_int_equal(pipe(fds), 0);                   \
		assert_true((saved = dup(2)) >= 0);               \
		assert_int_equal(dup2(fds[1], 2), 2);             \
		call;                                             \
		dup2(saved, 2);                                   \
		close(saved);                                     \
		close(fds[1]);                                    \
		n = read(fds[0], captured, sizeof(captured) - 1); \
		captured[n > 0 ? n : 0] = '\0';                   \
		close(fds[0]);                                    \
	} while (0)

static const char hostile[] = "a\nb\r\x1b[31m\"\\\x7f\xff\xc2\x9b\xe2\x80\xae"
			      "\xe2\x80\xa8\xc3\xa4\t.";

static void
text(void **state)
{
	(void)state;
	log_init("unit", LOG_TEXT, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_WARN, "hostile", "x=%s", hostile));
	assert_string_equal(captured,
	    "<4>unit: hostile: x=a\\x0ab\\x0d\\x1b[31m\"\\\\\\x7f\\xff"
	    "\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x80\\xa8\xc3\xa4\\x09.\n");
}

static void
json(void **state)
{
	(void)state;
	unsetenv("JOURNAL_STREAM");
	log_init("unit", LOG_JSON, LOG_LV_INFO);
	CAPTURE(
	    log_call(LOG_LV_ERR, "hostile", "id\"1", "p\n", "x=%s", hostile));
	assert_int_equal(captured[0], '{');
	assert_non_null(
	    strstr(captured, ",\"level\":\"error\",\"proc\":\"unit\""));
	assert_non_null(strstr(captured,
	    "\"msg\":\"x=a\\\\x0ab\\\\x0d\\\\x1b[31m\\\"\\\\\\\\\\\\x7f\\\\xff"
	    "\\\\xc2\\\\x9b\\\\xe2\\\\x80\\\\xae\\\\xe2\\\\x80\\\\xa8\xc3\xa4"
	    "\\\\x09.\""));
	assert_non_null(strstr(captured,
	    ",\"execution_id\":\"id\\\"1\",\"principal\":\"p\\\\x0a\"}\n"));
	assert_ptr_equal(
	    strchr(captured, '\n'), captured + strlen(captured) - 1);
	setenv("JOURNAL_STREAM", "8:1", 1);
	log_init("unit", LOG_JSON, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_INFO, "e", "m"));
	assert_memory_equal(captured, "<6>{\"ts\":\"20", 12);
	unsetenv("JOURNAL_STREAM");
}

static void
levels(void **state)
{
	(void)state;
	log_init("unit", LOG_TEXT, LOG_LV_WARN);
	CAPTURE(log_event(LOG_LV_INFO, "e", "m"));
	assert_string_equal(captured, "");
	CAPTURE(log_event(LOG_LV_ERR, "e", "m"));
	assert_string_equal(captured, "<3>unit: e: m\n");
}

/* Too long a message is cut; it stays one line, and no byte past it is
 * read or written. */
static void
length(void **state)
{
	char *big = malloc(100001);

	(void)state;
	assert_non_null(big);
	memset(big, '\\', 100000);
	big[100000] = '\0';
	log_init("unit", LOG_JSON, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_INFO, "e", "%s", big));
	assert_true(strlen(captured) < 20000);
	assert_memory_equal(captured + strlen(captured) - 3, "\"}\n", 3);
	memset(big, '\n', 100000);
	log_init("unit", LOG_TEXT, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_INFO, "e", "%s", big));
	assert_ptr_equal(
	    strchr(captured, '\n'), captured + strlen(captured) - 1);
	free(big);
}

/* Cut to what there is room for, never inside a character or an escape's
 * first byte. */
static void
escape(void **state)
{
	char out[8];

	(void)state;
	log_escape(out, sizeof(out), "a\nb", 3);
	assert_string_equal(out, "a\\x0ab");
	log_escape(out, sizeof(out), "123456\xc3\xa4", 8);
	assert_string_equal(out, "123456");
	log_escape(out, sizeof(out), "12345\xc3\xa4", 7);
	assert_string_equal(out, "12345\xc3\xa4");
	log_escape(out, 1, "abc", 3);
	assert_string_equal(out, "");
}

/* ---- the journal: a datagram socket that plays journald, and a stream that
 * is its end of our standard error ---- */

static char dir[] = "/tmp/mcpbox-log-XXXXXX", path[64];
static int journald = -1, stream = -1, saved_stderr = -1;

static void
journald_start(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct timeval tv = {.tv_usec = 100000};

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	unlink(path);
	journald = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(journald >= 0);
	assert_int_equal(
	    bind(journald, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(
	    setsockopt(journald, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
}

static void
journal_begin(enum log_format form)
{
	int fds[2];
	char text[64];
	struct stat st;

	journald_start();
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fflush(stderr);
	assert_true((saved_stderr = dup(2)) >= 0);
	assert_int_equal(dup2(fds[1], 2), 2);
	close(fds[1]);
	stream = fds[0];
	assert_int_equal(fstat(2, &st), 0);
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev,
	    (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", text, 1);
	log_init("unit", form, LOG_LV_INFO);
	log_journal(path);
}

static void
journal_end(void)
{
	dup2(saved_stderr, 2);
	close(saved_stderr);
	close(stream);
	close(journald);
	journald = -1;
	unsetenv("JOURNAL_STREAM");
}

/* One entry as NAME=value lines, in the order sent; "" if none came. It is
 * read as journald reads it. */
static const char *
entry(void)
{
	static char raw[65536], out[65536];
	ssize_t n = recv(journald, raw, sizeof(raw), 0);
	const char *p = raw, *end = raw + (n > 0 ? n : 0), *eol;
	size_t k = 0;
	uint64_t len;

	while (p < end) {
		eol = memchr(p, '\n', (size_t)(end - p));
		assert_non_null(eol);
		/* The short form is not used. */
		assert_null(memchr(p, '=', (size_t)(eol - p)));
		for (const char *c = p; c < eol; c++)
			assert_true((*c >= 'A' && *c <= 'Z') || *c == '_');
		memcpy(out + k, p, (size_t)(eol - p));
		k += (size_t)(eol - p);
		out[k++] = '=';
		memcpy(&len, eol + 1, sizeof(len));
		len = le64toh(len);
		p = eol + 1 + sizeof(len);
		assert_true(len < (uint64_t)(end - p));
		memcpy(out + k, p, len);
		k += len;
		p += len;
		assert_int_equal(*p++, '\n');
		out[k++] = '\n';
	}
	out[k] = '\0';
	return out;
}

static const char *
stream_got(void)
{
	ssize_t n = recv(stream, captured, sizeof(captured) - 1, MSG_DONTWAIT);

	captured[n > 0 ? n : 0] = '\0';
	return captured;
}

static void
journal_fields(void **state)
{
	(void)state;
	journal_begin(LOG_TEXT);
	log_call(
	    LOG_LV_WARN, "call_failed", "0190-1", "user:a@b", "exit %d", 3);
	assert_string_equal(entry(),
	    "MESSAGE=unit: call_failed: exit 3 execution_id=0190-1 "
	    "principal=user:a@b\n"
	    "PRIORITY=4\nSYSLOG_IDENTIFIER=mcpbox-unit\n"
	    "MCPBOX_EVENT=call_failed\nMCPBOX_EXECUTION_ID=0190-1\n"
	    "MCPBOX_PRINCIPAL=user:a@b\n");
	log_event(LOG_LV_ERR, "plain", "m");
	assert_string_equal(entry(),
	    "MESSAGE=unit: plain: m\nPRIORITY=3\n"
	    "SYSLOG_IDENTIFIER=mcpbox-unit\nMCPBOX_EVENT=plain\n");
	assert_string_equal(stream_got(), "");
	journal_end();
}

/* Whoever writes a value writes that value: no field, no line, no blob. */
static void
journal_injection(void **state)
{
	(void)state;
	journal_begin(LOG_TEXT);
	log_call(LOG_LV_INFO, "e", "1\nPRIORITY=0",
	    "x\nMCPBOX_PRINCIPAL\n\x01\x01\x01", "m\n_UID=0\n%s", hostile);
	assert_string_equal(entry(),
	    "MESSAGE=unit: e: m\\x0a_UID=0\\x0aa\\x0ab\\x0d\\x1b[31m\"\\\\"
	    "\\x7f\\xff\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x80\\xa8\xc3\xa4\\x09."
	    " execution_id=1\\x0aPRIORITY=0"
	    " principal=x\\x0aMCPBOX_PRINCIPAL\\x0a\\x01\\x01\\x01\n"
	    "PRIORITY=6\nSYSLOG_IDENTIFIER=mcpbox-unit\nMCPBOX_EVENT=e\n"
	    "MCPBOX_EXECUTION_ID=1\\x0aPRIORITY=0\n"
	    "MCPBOX_PRINCIPAL=x\\x0aMCPBOX_PRINCIPAL\\x0a\\x01\\x01\\x01\n");
	journal_end();
}

/* Who asked for JSON gets it as the message; the fields are there, too. */
static void
journal_json(void **state)
{
	const char *e;

	(void)state;
	journal_begin(LOG_JSON);
	log_call(LOG_LV_INFO, "e", "id\"1", NULL, "m");
	e = entry();
	assert_memory_equal(e, "MESSAGE={\"ts\":\"20", 17);
	assert_non_null(
	    strstr(e, "\"execution_id\":\"id\\\"1\"}\nPRIORITY=6\n"));
	assert_non_null(strstr(e, "\nMCPBOX_EXECUTION_ID=id\"1\n"));
	journal_end();
}

/* journald is away: standard error, with <N>; it comes back under its name with
 * another socket: entries again. */
static void
journal_renewed(void **state)
{
	(void)state;
	journal_begin(LOG_TEXT);
	close(journald);
	unlink(path);
	log_event(LOG_LV_WARN, "e", "one");
	assert_string_equal(stream_got(), "<4>unit: e: one\n");
	log_event(LOG_LV_WARN, "e", "two");
	assert_string_equal(stream_got(), "<4>unit: e: two\n");
	journald_start();
	log_event(LOG_LV_WARN, "e", "three");
	assert_memory_equal(entry(), "MESSAGE=unit: e: three\n", 23);
	assert_string_equal(stream_got(), "");
	journal_end();
}

/* Both of journald's sockets are full, as when it hangs: nobody waits, and the
 * first line that gets through says how many did not. */
static void
journal_full(void **state)
{
	unsigned sent = 20000, entries = 0, lines = 0, missing = 0;
	const char *e, *p;

	(void)state;
	journal_begin(LOG_TEXT);
	alarm((unsigned)unit_patience(5000) / 1000);
	for (unsigned i = 0; i < sent; i++)
		log_event(LOG_LV_INFO, "flood", "%u", i);
	while (*(e = entry()) != '\0') {
		assert_non_null(strstr(e, "MCPBOX_EVENT=flood\n"));
		entries++;
	}
	while (*stream_got() != '\0')
		for (p = captured; (p = strchr(p, '\n')) != NULL; p++)
			lines++;
	assert_true(entries > 0 && lines > 0 && entries + lines < sent);
	log_event(LOG_LV_INFO, "after", "m");
	assert_non_null(strstr(entry(), "MCPBOX_EVENT=after\n"));
	e = entry();
	assert_non_null(strstr(e, "MCPBOX_EVENT=log_lost\n"));
	p = strstr(e, "did not take ");
	assert_non_null(p);
	missing = (unsigned)strtoul(p + 13, NULL, 10);
	assert_int_equal(entries + lines + missing, sent);
	assert_string_equal(entry(), "");
	alarm(0);
	journal_end();
}

/* JOURNAL_STREAM of a parent whose standard error was another file. */
static void
journal_of_others(void **state)
{
	struct stat st;
	char text[64];

	(void)state;
	journald_start();
	assert_int_equal(fstat(2, &st), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text),
		    i == 3 ? "%llu:%llux" : "%llu:%llu",
		    (unsigned long long)st.st_dev + (i == 0),
		    (unsigned long long)st.st_ino + (i == 1));
		if (i == 2)
			snprintf(text, sizeof(text), "junk");
		setenv("JOURNAL_STREAM", text, 1);
		log_init("unit", LOG_TEXT, LOG_LV_INFO);
		log_journal(path);
		CAPTURE(log_event(LOG_LV_INFO, "e", "m"));
		assert_string_equal(captured, "<6>unit: e: m\n");
	}
	assert_string_equal(entry(), "");
	close(journald);
	unsetenv("JOURNAL_STREAM");
}

static int
make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/socket", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static unsigned
hex_digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Every code point and every byte comes back from what was written, and what
 * shows nothing is escaped. */
static void
inverts(void **state)
{
	char in[4], out[64], back[64];
	size_t n, len;

	for (uint32_t c = 0; c < 0x110000 + 256; c++) {
		if (c >= 0x110000) {
			in[0] = (char)(c & 0xff);
			n = 1;
		} else if (c < 0x80) {
			in[0] = (char)c;
			n = 1;
		} else {
			n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
			for (size_t i = n - 1; i > 0; i--)
				in[i] = (char)(0x80 |
				    ((c >> (6 * (n - 1 - i))) & 0x3f));
			in[0] = (char)(0xf00u >> n | c >> (6 * (n - 1)));
		}
		log_escape(out, sizeof(out), in, n);
		len = 0;
		for (const char *p = out; *p != '\0'; len++) {
			if (*p != '\\') {
				back[len] = *p++;
			} else if (p[1] == '\\') {
				back[len] = '\\';
				p += 2;
			} else {
				assert_int_equal(p[1], 'x');
				back[len] = (char)(hex_digit(p[2]) << 4 |
				    hex_digit(p[3]));
				p += 4;
			}
		}
		assert_int_equal(len, n);
		assert_memory_equal(back, in, n);
		if (c == 0xad || c == 0x3164 || c == 0xfe0f || c == 0xe0041)
			assert_int_equal(out[0], '\\');
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(text),
	    cmocka_unit_test(json),
	    cmocka_unit_test(inverts),
	    cmocka_unit_test(levels),
	    cmocka_unit_test(length),
	    cmocka_unit_test(escape),
	    cmocka_unit_test(journal_of_others),
	    cmocka_unit_test(journal_fields),
	    cmocka_unit_test(journal_injection),
	    cmocka_unit_test(journal_json),
	    cmocka_unit_test(journal_renewed),
	    cmocka_unit_test(journal_full),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
