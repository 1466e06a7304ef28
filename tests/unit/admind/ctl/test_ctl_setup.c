/* What `mcpboxctl setup` makes of texts: its block in a file of PostgreSQL's,
 * and --database URL. */
#include <unistd.h>

#include "setup.h"
#include "setup_lines.h"
#include "unit.h"

static const char lines[] = "local mcpbox a peer map=m\nlocal mcpbox b peer\n";

static enum setup_block
find(const char *text)
{
	return setup_lines_find((const uint8_t *)text, strlen(text), lines);
}

static void
blocks(void **state)
{
	struct buf once, twice;

	assert_int_equal(find(""), SETUP_BLOCK_NONE);
	assert_int_equal(find("local all all peer\n"), SETUP_BLOCK_NONE);
	/* a comment that only begins alike is not a marker */
	assert_int_equal(find("# BEGIN mcpboxes\n"), SETUP_BLOCK_NONE);
	assert_int_equal(find("x # BEGIN mcpbox\n"), SETUP_BLOCK_NONE);

	buf_init(&once, 4096);
	setup_lines_put(
	    (const uint8_t *)"local all all peer\n", 19, lines, &once);
	assert_false(once.failed);
	/* in front: the first line that matches counts */
	assert_memory_equal(once.p, "# BEGIN mcpbox ", 15);
	assert_memory_equal(once.p + once.len - 19, "local all all peer\n", 19);
	assert_int_equal(
	    setup_lines_find(once.p, once.len, lines), SETUP_BLOCK_OURS);
	/* what a person made of it is that person's */
	assert_int_equal(
	    setup_lines_find(once.p, once.len, "other\n"), SETUP_BLOCK_EDITED);
	assert_int_equal(
	    find("# BEGIN mcpbox\n# END mcpbox\n"), SETUP_BLOCK_EDITED);
	/* halves, the wrong order, two of them */
	assert_int_equal(find("# BEGIN mcpbox\nx\n"), SETUP_BLOCK_BROKEN);
	assert_int_equal(find("x\n# END mcpbox"), SETUP_BLOCK_BROKEN);
	assert_int_equal(
	    find("# END mcpbox\n# BEGIN mcpbox\n"), SETUP_BLOCK_BROKEN);
	buf_init(&twice, 8192);
	setup_lines_put(once.p, once.len, lines, &twice);
	assert_int_equal(
	    setup_lines_find(twice.p, twice.len, lines), SETUP_BLOCK_BROKEN);
	buf_free(&once);
	buf_free(&twice);
}

static char authority[] = "/tmp/mcpbox-authority.XXXXXX";

/* The text with the authority's path for each CAFILE. */
static void
fill(char *url, size_t len, const char *text)
{
	const char *hole = strstr(text, "CAFILE");

	if (hole == NULL)
		snprintf(url, len, "%s", text);
	else
		snprintf(url, len, "%.*s%s%s", (int)(hole - text), text,
		    authority, hole + 6);
}

static void
takes(const char *text, struct setup_url *u)
{
	char url[512];
	struct err err = {0};

	fill(url, sizeof(url), text);
	if (setup_url_parse(url, u, &err) == -1)
		fail_msg("%s: %s", url, err.text);
}

static void
refuses(const char *text, const char *why)
{
	struct setup_url u;
	struct err err = {0};
	char url[512];

	fill(url, sizeof(url), text);
	assert_int_equal(setup_url_parse(url, &u, &err), -1);
	if (strstr(err.text, why) == NULL)
		fail_msg("%s: %s", url, err.text);
}

#define TLS "?sslmode=verify-full&sslrootcert=CAFILE"

static void
urls(void **state)
{
	struct setup_url u;

	takes("postgresql://admin@db.example.org:5433/postgres" TLS, &u);
	assert_string_equal(u.user, "admin");
	assert_string_equal(u.host, "db.example.org");
	assert_string_equal(u.dbname, "postgres");
	assert_string_equal(u.sslrootcert, authority);
	assert_int_equal(u.port, 5433);
	takes("postgres://admin@[::1]/postgres" TLS, &u);
	assert_string_equal(u.host, "::1");
	assert_int_equal(u.port, 5432);

	refuses("host=x user=y dbname=z CAFILE", "postgresql://");
	refuses("postgresql://a@h/d", "verify-full");
	refuses("postgresql://a@h/d?sslrootcert=CAFILE", "verify-full");
	refuses("postgresql://a@h/d?sslmode=require&sslrootcert=CAFILE",
	    "sslmode=require");
	refuses("postgresql://a@h/d?sslmode=verify-ca&sslrootcert=CAFILE",
	    "verify-full");
	refuses(
	    "postgresql://a@h/d?ssl=true&sslrootcert=CAFILE", "verify-full");
	refuses("postgresql://a:secret@h/d" TLS, "for every local user");
	refuses("postgresql://a@h/d" TLS "&password=x", "for every local");
	refuses("postgresql://a@h/d?sslmode=verify-full", "sslrootcert");
	refuses("postgresql://a@h/d?sslmode=verify-full&sslrootcert=ca.pem",
	    "absolute path");
	refuses("postgresql://a@h/d?sslmode=verify-full&sslrootcert=/no/such",
	    "/no/such");
	/* what would change who is trusted, or where it goes */
	refuses("postgresql://a@h/d" TLS "&hostaddr=10.0.0.1", "hostaddr");
	refuses("postgresql://a@h/d" TLS "&service=x", "service");
	refuses("postgresql://a@h/d" TLS "&sslcrl=/x", "sslcrl");
	refuses("postgresql://a@h,i/d" TLS, "one host");
	refuses("postgresql://a@%2Frun%2Fpostgresql/d" TLS, "one host");
	refuses("postgresql://a@h:0/d" TLS, "port");
	refuses("postgresql://a@h:65536/d" TLS, "port");
	refuses("postgresql://h/d" TLS, "must name a role");
	refuses("postgresql://a@h" TLS, "must name a role");
	/* libpq's parameters, or settings, by names that become words of lines
	 */
	refuses("postgresql://a%20sslmode%3Ddisable@h/d" TLS, "no blanks");
	refuses("postgresql://a@h/d%20sslmode%3Ddisable" TLS, "no blanks");
	refuses("postgresql://a%0Arun_dir%20x@h/d" TLS, "no blanks");
	refuses("postgresql://a%27@h/d" TLS, "no blanks");
	refuses("postgresql://a@h/d%5C" TLS, "no blanks");
	refuses("postgresql://a@h%0aIPAddressAllow=any/d" TLS, "one host");
}

static void
addresses(void **state)
{
	struct setup_url u = {.host = "127.0.0.1", .port = 5432};
	struct err err;

	assert_int_equal(setup_url_resolve(&u, &err), 0);
	assert_int_equal(u.naddresses, 1);
	assert_string_equal(u.addresses[0], "127.0.0.1");
	snprintf(u.host, sizeof(u.host), "no-such-host.invalid");
	assert_int_equal(setup_url_resolve(&u, &err), -1);
	assert_non_null(strstr(err.text, "can't be resolved"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(blocks),
	    cmocka_unit_test(urls),
	    cmocka_unit_test(addresses),
	};
	int fd = mkstemp(authority), rc;

	if (fd == -1)
		return 1;
	close(fd);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(authority);
	return rc;
}
