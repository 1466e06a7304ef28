/* conf.h: every refusal names file and line; defaults, units, the dump. */
#include "unit.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include "bounds.h"
#include "conf.h"
#include "conf_amount.h"

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
	    {"gatewayd", "header_timeout 99ms\n", "must be from 100ms to 10m"},
	    {"sandboxd", "memory 1G1\n", "must be a size"},
	    {"sandboxd", "memory 63M\n", "must be from 64M to 16G"},
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
	/* In the units that a value is written in. */
	assert_non_null(strstr(
	    (char *)a.p, "to arrive.\nFrom 100ms to 10m.\nDefault: 10s\n"));
	assert_non_null(strstr((char *)a.p, "From 1 to 65536.\n"));
	buf_free(&a);
	buf_free(&b);
}

/* What is shown is what may be written, of each bound in the table. */
static void
amounts(void **state)
{
	static const struct {
		enum conf_type type;
		int64_t n;
		const char *text;
	} forms[] = {{CONF_DURATION, 0, "0s"}, {CONF_DURATION, 100, "100ms"},
	    {CONF_DURATION, 10000, "10s"}, {CONF_DURATION, 90000, "90s"},
	    {CONF_DURATION, 600000, "10m"}, {CONF_DURATION, 2592000000, "720h"},
	    {CONF_SIZE, 0, "0"}, {CONF_SIZE, 64, "64"},
	    {CONF_SIZE, 65536, "64K"}, {CONF_SIZE, 67108864, "64M"},
	    {CONF_SIZE, 100000, "100000"}, {CONF_SIZE, 17179869184, "16G"},
	    {CONF_INT, 0, "0"}, {CONF_INT, 65536, "65536"},
	    {CONF_INT, INT64_MAX, "9223372036854775807"}};
	static const struct {
		enum conf_type type;
		int64_t min, max;
	} bounds[] = {
#define K(process, name, type, fallback, min, max, unit, text) \
	{CONF_##type, min, max},
#include "conf_keys.def"
#undef K
	};
	char text[CONF_AMOUNT_MAX], range[64];
	int64_t back;

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		assert_string_equal(
		    conf_amount_text(forms[i].type, forms[i].n, text),
		    forms[i].text);
	for (size_t i = 0; i < 2 * sizeof(bounds) / sizeof(bounds[0]); i++) {
		int64_t n = i % 2 == 0 ? bounds[i / 2].min : bounds[i / 2].max;

		assert_int_equal(
		    conf_amount_parse(bounds[i / 2].type,
			conf_amount_text(bounds[i / 2].type, n, text), &back),
		    0);
		assert_int_equal(back, n);
	}
	conf_amount_range(CONF_INT, 1, 9, "calls", range, sizeof(range));
	assert_string_equal(range, "from 1 to 9 calls");
	conf_amount_range(
	    CONF_SIZE, 4096, 1073741824, "bytes", range, sizeof(range));
	assert_string_equal(range, "from 4K to 1G");
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

/* FILE's text, then FILE.local's. */
static int
parse_both(struct conf *c, const char *text, const char *local, struct err *e)
{
	assert_int_equal(
	    conf_parse(c, "f.conf", (const uint8_t *)text, strlen(text), e), 0);
	return conf_parse_local(
	    c, "f.conf.local", (const uint8_t *)local, strlen(local), e);
}

static void
own_lines(void **state)
{
	static const struct {
		const char *process, *local, *want;
	} refused[] = {
	    {"gatewayd", "\nmax_connections 1\nmax_connections 2\n",
		"f.conf.local:3: duplicate keyword: max_connections (first in "
		"line 2)"},
	    {"gatewayd", "nonsense 1\n",
		"f.conf.local:1: unknown keyword: nonsense"},
	    {"gatewayd", "max_connections 0\n",
		"f.conf.local:1: max_connections: must be from 1 to 65536"},
	    {"egress", "never ::1\nnever ::2\n",
		"f.conf.local:2: duplicate keyword: never (first in line 1)"},
	};
	char text[5000], local[5000];
	struct conf *c;
	struct err e;

	(void)state;
	assert_non_null(c = conf_new("gatewayd"));
	assert_false(conf_has_local(c));
	if (parse_both(c, "#\nmax_connections 1\nheader_timeout 2s\n",
		"max_connections 7\nallowed_origin https://a\n", &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(conf_int(c, "max_connections"), 7);
	assert_int_equal(conf_int(c, "header_timeout"), 2000);
	assert_string_equal(conf_str(c, "allowed_origin"), "https://a");
	/* FILE itself is still one. */
	assert_int_equal(
	    conf_parse(c, "f", (const uint8_t *)"header_timeout 3s", 17, &e),
	    -1);
	conf_free(c);

	/* What may be run or come is said anew; what is denied is added to,
	 * the default too. */
	assert_non_null(c = conf_new("egress"));
	if (parse_both(c, "never 10.0.0.1, ::2\n",
		"never 10.0.0.3\nown_users ada\n", &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(conf_str(c, "never"), "10.0.0.1, ::2,10.0.0.3");
	assert_non_null(strstr(conf_str(c, "own_users"), ",postgres,ada"));
	conf_free(c);
	assert_non_null(c = conf_new("egress"));
	assert_int_equal(parse_both(c, "", "never 10.0.0.3\n", &e), 0);
	assert_string_equal(conf_str(c, "never"), "10.0.0.3");
	conf_free(c);
	assert_non_null(c = conf_new("sandboxd-spawn"));
	assert_int_equal(
	    parse_both(c, "commands /bin/a,/bin/b", "commands /bin/c", &e), 0);
	assert_string_equal(conf_str(c, "commands"), "/bin/c");
	conf_free(c);

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_non_null(c = conf_new(refused[i].process));
		assert_int_equal(
		    parse_both(c, "#\n", refused[i].local, &e), -1);
		assert_string_equal(e.text, refused[i].want);
		conf_free(c);
	}

	/* Both together are at most a line, so that a dump can be read. */
	for (int over = 0; over < 2; over++) {
		assert_non_null(c = conf_new("egress"));
		memset(text, '1', sizeof(text));
		memcpy(text, "never ", 6);
		text[4000] = '\0';
		memset(local, '1', sizeof(local));
		memcpy(local, "never ", 6);
		local[6 + 4096 - 4000 - 1 + over] = '\0';
		assert_int_equal(parse_both(c, text, local, &e), -over);
		if (over == 0)
			assert_int_equal(
			    strlen("never ") + strlen(conf_str(c, "never")),
			    4096);
		else
			assert_non_null(
			    strstr(e.text, "f.conf.local:1: never: longer"));
		conf_free(c);
	}
}

static int
load(const char *path, struct err *e)
{
	struct conf *c = conf_new("admind-check");
	int rc;

	assert_non_null(c);
	rc = conf_load(c, path, e);
	if (rc == 0) {
		rc = (int)conf_user(c, "admind_user");
		assert_int_equal(conf_has_local(c), rc != 5);
	}
	conf_free(c);
	return rc;
}

static void
put(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fchmod(fileno(f), mode), 0);
	assert_int_equal(fclose(f), 0);
}

/* FILE.local is judged as FILE is; absent, and nothing else, is well. */
static void
own_files(void **state)
{
	char dir[] = "/tmp/mcpbox-conf-XXXXXX", path[64], local[64], other[64];
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f.conf", dir);
	snprintf(local, sizeof(local), "%s/f.conf.local", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	put(path, "admind_user 5\n", 0644);
	assert_int_equal(load(path, &e), 5);
	put(local, "admind_user 6\n", 0644);
	assert_int_equal(load(path, &e), 6);
	put(local, "\nnonsense\n", 0644);
	assert_int_equal(load(path, &e), -1);
	assert_non_null(strstr(e.text, "f.conf.local:2: unknown keyword"));

	for (int i = 0; i < 2; i++) {
		put(local, "admind_user 6\n", i == 0 ? 0664 : 0646);
		assert_int_equal(load(path, &e), -1);
		assert_non_null(
		    strstr(e.text, "f.conf.local: others may write it"));
	}
	put(local, "admind_user 6\n", 0644);
	if (geteuid() == 0) {
		assert_int_equal(chown(local, 77, 0), 0);
		assert_int_equal(load(path, &e), -1);
		assert_non_null(
		    strstr(e.text, "f.conf.local: others may write it"));
		assert_int_equal(chown(local, 0, 0), 0);
	}
	/* Too large; what is no file. */
	assert_int_equal(truncate(local, 256 * 1024 + 1), 0);
	assert_int_equal(load(path, &e), -1);
	assert_non_null(strstr(e.text, "f.conf.local: larger than"));
	assert_int_equal(unlink(local), 0);
	assert_int_equal(mkdir(local, 0755), 0);
	assert_int_equal(load(path, &e), -1);
	assert_non_null(strstr(e.text, "f.conf.local: not a regular file"));
	assert_int_equal(rmdir(local), 0);
	assert_int_equal(mkfifo(local, 0644), 0);
	assert_int_equal(load(path, &e), -1);
	assert_int_equal(unlink(local), 0);
	/* A link is followed, as FILE is; one that leads nowhere is an error.
	 */
	assert_int_equal(symlink("other", local), 0);
	assert_int_equal(load(path, &e), -1);
	assert_non_null(strstr(e.text, "f.conf.local: No such file"));
	put(other, "admind_user 6\n", 0666);
	assert_int_equal(load(path, &e), -1);
	assert_int_equal(chmod(other, 0644), 0);
	assert_int_equal(load(path, &e), 6);
	/* Without FILE there is nothing to add to. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(load(path, &e), -1);
	assert_non_null(strstr(e.text, "f.conf: No such file"));

	/* The default's user is not there: where another one can be named. */
	put(path, "", 0644);
	assert_int_equal(unlink(local), 0);
	assert_int_equal(load(path, &e), -1);
	assert_non_null(strstr(e.text, "f.conf.local"));
	put(local, "admind_user 6\n", 0644);
	assert_int_equal(load(path, &e), 6);
	assert_int_equal(unlink(local), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults),
	    cmocka_unit_test(values),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(dump),
	    cmocka_unit_test(amounts),
	    cmocka_unit_test(files),
	    cmocka_unit_test(own_lines),
	    cmocka_unit_test(own_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
