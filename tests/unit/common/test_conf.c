/* conf.h: every refusal names file and line; defaults, units, the dump. */
#include "unit.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include "conf.h"

static const char *const processes[] = {"gatewayd", "admind", "admind-http",
    "admind-check", "admind-vault", "sandboxd", "sandboxd-spawn"};

/* The C library's, replaced: this machine may or may not have the suite's
 * users. Here it has one. */
struct passwd *
getpwnam(const char *name)
{
	static struct passwd known = {.pw_uid = 77};

	return strcmp(name, "known-user") == 0 ? &known : NULL;
}

static int
parse(const char *process, const char *text, size_t n, struct err *e)
{
	struct conf *c = conf_new(process);
	int rc;

	assert_non_null(c);
	rc = conf_parse(c, "f.conf", (const uint8_t *)text, n, e);
	conf_free(c);
	return rc;
}

/* A wrong default would abort() here. */
static void
defaults(void **state)
{
	struct conf *c;
	char host[64];
	uint16_t port = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++) {
		assert_non_null(c = conf_new(processes[i]));
		assert_string_equal(conf_str(c, "run_dir"), "/run/mcpbox");
		conf_free(c);
	}
	assert_non_null(c = conf_new("gatewayd"));
	assert_int_equal(
	    conf_address(c, "listen", host, sizeof(host), &port), 0);
	assert_string_equal(host, "127.0.0.1");
	assert_int_equal(port, 8002);
	assert_int_equal(conf_int(c, "header_timeout"), 10000);
	assert_int_equal(conf_address(c, "listen", host, 4, &port), -1);
	conf_free(c);
	assert_non_null(c = conf_new("sandboxd"));
	assert_int_equal(conf_int(c, "memory"), 268435456);
	conf_free(c);
	assert_non_null(c = conf_new("admind"));
	assert_true(conf_bool(c, "local_destructive"));
	conf_free(c);
}

static void
values(void **state)
{
	static const char text[] = "# comment\n"
				   "\n"
				   "  listen\t[::1]:0  \n"
				   "\t# another\n"
				   "header_timeout 500ms\n"
				   "body_timeout 2m\n"
				   "session_ttl 1h\n"
				   "max_connections 7\n"
				   "listener tunnel\n"
				   "allowed_origin https://a b \xc3\xa4";
	struct conf *c = conf_new("gatewayd");
	char host[64];
	struct err e;
	uint16_t port = 9;

	(void)state;
	assert_non_null(c);
	if (conf_parse(c, "f", (const uint8_t *)text, sizeof(text) - 1, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(
	    conf_address(c, "listen", host, sizeof(host), &port), 0);
	assert_string_equal(host, "::1");
	assert_int_equal(port, 0);
	assert_int_equal(conf_int(c, "header_timeout"), 500);
	assert_int_equal(conf_int(c, "body_timeout"), 120000);
	assert_int_equal(conf_int(c, "session_ttl"), 3600000);
	assert_int_equal(conf_int(c, "max_connections"), 7);
	assert_string_equal(conf_str(c, "listener"), "tunnel");
	assert_string_equal(
	    conf_str(c, "allowed_origin"), "https://a b \xc3\xa4");
	conf_free(c);

	assert_non_null(c = conf_new("sandboxd"));
	assert_int_equal(conf_parse(c, "f",
			     (const uint8_t *)"memory 1G\ntmp_size 65536\n"
					      "admind_user 1900000001\n",
			     48, &e),
	    0);
	assert_int_equal(conf_int(c, "memory"), 1073741824);
	assert_int_equal(conf_int(c, "tmp_size"), 65536);
	assert_int_equal(conf_user(c, "admind_user"), 1900000001);
	assert_int_equal(
	    conf_parse(c, "f",
		(const uint8_t *)"gateway_tunnel_user known-user", 30, &e),
	    0);
	assert_int_equal(conf_user(c, "gateway_tunnel_user"), 77);
	/* an unknown default user is nobody */
	assert_int_equal(conf_user(c, "gateway_local_user"), (uid_t)-1);
	conf_free(c);
}

static void
refusals(void **state)
{
	static const struct {
		const char *process, *text, *want;
	} v[] = {
	    {"gatewayd", "nonsense 1\n", "f.conf:1: unknown keyword"},
	    /* another process's keyword is unknown here */
	    {"gatewayd", "slots 4\n", "f.conf:1: unknown keyword"},
	    {"gatewayd", "\n\nmax_connections 1\n#\nmax_connections 1\n",
		"f.conf:5: duplicate keyword: max_connections (first in "
		"line 3)"},
	    {"gatewayd", "max_connections\n",
		"f.conf:1: max_connections: "
		"missing value"},
	    {"gatewayd", "max_connections   \n", ": missing value"},
	    {"gatewayd", "max_connections 1 2\n", ": surplus value"},
	    {"gatewayd", "max_connections 1 # one\n", ": surplus value"},
	    {"gatewayd", "max_connections 0\n", "must be from 1 to 65536"},
	    {"gatewayd", "max_connections 65537\n", "must be from 1 to 65536"},
	    {"gatewayd", "max_connections -1\n", "whole number"},
	    {"gatewayd", "max_connections +1\n", "whole number"},
	    {"gatewayd", "max_connections 1.5\n", "whole number"},
	    {"gatewayd", "max_connections 0x10\n", "whole number"},
	    {"gatewayd", "max_connections 99999999999999999999\n",
		"whole number"},
	    {"gatewayd", "max_connections 5s\n", "whole number"},
	    {"gatewayd", "header_timeout 10\n", "must be a duration"},
	    {"gatewayd", "header_timeout 10 s\n", "surplus value"},
	    {"gatewayd", "header_timeout 10S\n", "must be a duration"},
	    {"gatewayd", "header_timeout 10d\n", "must be a duration"},
	    {"gatewayd", "header_timeout 99ms\n", "must be from 100 to"},
	    {"gatewayd", "header_timeout 9223372036854775807h\n",
		"must be a duration"},
	    {"gatewayd", "listen 8002\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listen localhost:8002\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listen 127.0.0.1:65536\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listen 127.0.0.1:\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listen 127.0.0.256:1\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listen ::1:80\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listen [::1]\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listen [:80\n", "must be ADDRESS:PORT"},
	    {"gatewayd", "listener both\n", "must be one of local|tunnel"},
	    {"gatewayd", "listener loca\n", "must be one of"},
	    {"gatewayd", "listener local|tunnel\n", "must be one of"},
	    {"gatewayd", "run_dir run\n", "must be an absolute path"},
	    {"sandboxd", "memory 1T\n", "must be a size"},
	    {"sandboxd", "memory 1KB\n", "must be a size"},
	    {"sandboxd", "memory 1\n", "must be from"},
	    {"sandboxd", "memory 9007199254740993G\n", "must be a size"},
	    {"sandboxd", "admind_user no-such-user-here\n",
		"no such user: no-such-user-here"},
	    {"sandboxd", "admind_user 4294967295\n", "no such user"},
	    {"sandboxd", "admind_user -5\n", "no such user"},
	    {"admind", "local_destructive true\n", "must be yes or no"},
	    {"gatewayd", "\xff\n", "f.conf:1: not UTF-8"},
	    {"gatewayd", "#\n# \xc3\n", "f.conf:2: not UTF-8"},
	    {"gatewayd", "max_connections 1\r\n",
		"f.conf:1: control character 0x0d"},
	    {"gatewayd", "# \x1b[31m\n", "f.conf:1: control character 0x1b"},
	    {"gatewayd", "include other.conf\n", "unknown keyword"},
	};
	char line[5000];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		e.text[0] = '\0';
		if (parse(v[i].process, v[i].text, strlen(v[i].text), &e) == 0)
			fail_msg("accepted: %s", v[i].text);
		if (strstr(e.text, v[i].want) == NULL ||
		    strncmp(e.text, "f.conf:", 7) != 0)
			fail_msg("%s gave: %s", v[i].text, e.text);
	}
	assert_int_equal(parse("gatewayd", "#\0\n", 3, &e), -1);
	assert_non_null(strstr(e.text, "f.conf:1: control character 0x00"));
	memset(line, '#', sizeof(line));
	assert_int_equal(parse("gatewayd", line, 4096, &e), 0);
	assert_int_equal(parse("gatewayd", line, 4097, &e), -1);
	assert_non_null(strstr(e.text, "f.conf:1: line longer than 4096"));
	assert_int_equal(parse("gatewayd", "", 0, &e), 0);
}

/* What -T prints is read back to the same values. */
static void
dump(void **state)
{
	struct conf *c, *d;
	struct buf a, b;
	struct err e;

	(void)state;
	buf_init(&a, 65536);
	buf_init(&b, 65536);
	assert_non_null(c = conf_new("gatewayd"));
	assert_int_equal(conf_parse(c, "f",
			     (const uint8_t *)"header_timeout 1m\n"
					      "allowed_origin http://x y\n",
			     44, &e),
	    0);
	conf_dump(c, &a);
	assert_non_null(d = conf_new("gatewayd"));
	if (conf_parse(d, "dump", a.p, a.len, &e) < 0)
		fail_msg("%s", e.text);
	conf_dump(d, &b);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.p, b.p, a.len);
	assert_int_equal(conf_int(d, "header_timeout"), 60000);
	assert_string_equal(conf_str(d, "allowed_origin"), "http://x y");
	conf_free(c);
	conf_free(d);
	buf_clear(&a);
	conf_man("gatewayd", &a);
	buf_putc(&a, '\0');
	assert_false(a.failed);
	assert_non_null(
	    strstr((char *)a.p, ".It Ic max_connections Ar number\n"));
	assert_null(strstr((char *)a.p, "slots"));
	buf_free(&a);
	buf_free(&b);
}

/* conf_load: the file's owner and mode; unknown default users. */
static void
files(void **state)
{
	static const char text[] = "admind_user 5\n";
	char path[] = "/tmp/mcpbox-conf-XXXXXX";
	struct conf *c;
	struct err e;
	int fd;

	(void)state;
	assert_true((fd = mkstemp(path)) >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_non_null(c = conf_new("admind-check"));
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_int_equal(conf_load(c, path, &e), -1);
	assert_non_null(strstr(e.text, "others may write it"));
	assert_int_equal(fchmod(fd, 0620), 0);
	assert_int_equal(conf_load(c, path, &e), -1);
	assert_int_equal(fchmod(fd, 0644), 0);
	if (conf_load(c, path, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(conf_user(c, "admind_user"), 5);
	conf_free(c);

	/* the defaults' users don't exist here */
	assert_non_null(c = conf_new("sandboxd"));
	assert_int_equal(conf_load(c, path, &e), -1);
	assert_non_null(strstr(e.text, "no such user: mcpbox-gw-local"));
	conf_free(c);
	close(fd);
	unlink(path);

	assert_non_null(c = conf_new("gatewayd"));
	assert_int_equal(conf_load(c, path, &e), -1);
	assert_non_null(strstr(e.text, "No such file"));
	assert_int_equal(conf_load(c, "/tmp", &e), -1);
	assert_non_null(strstr(e.text, "not a regular file"));
	assert_int_equal(conf_load(c, "/dev/zero", &e), -1);
	conf_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults),
	    cmocka_unit_test(values),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(dump),
	    cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
