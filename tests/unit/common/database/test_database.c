/*
 * Connection strings: which are taken, what is made of them for each host, and
 * that a password is in none but the secret ones.
 */
#include "unit.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "database.h"

static char dir[] = "/tmp/mcpbox-database-XXXXXX";
static char certificate[64], password[64];

static const char PASSWORD[] = "it's a \\ pass=word";

static void
put(const char *path, const char *text, mode_t mode)
{
	int fd;

	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int
set_up(void **state)
{
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(certificate, sizeof(certificate), "%s/ca.pem", dir);
	snprintf(password, sizeof(password), "%s/password", dir);
	put(certificate, "-----BEGIN CERTIFICATE-----\n", 0444);
	put(password, "it's a \\ pass=word\nsecond line\n", 0400);
	unsetenv("CREDENTIALS_DIRECTORY");
	return 0;
}

static int
tear_down(void **state)
{
	unlink(certificate);
	unlink(password);
	return rmdir(dir);
}

/* What libpq understands of a keyword. */
static void
is(const char *conninfo, const char *keyword, const char *want)
{
	PQconninfoOption *all = PQconninfoParse(conninfo, NULL);
	const char *got = NULL;

	assert_non_null(all);
	for (PQconninfoOption *o = all; o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0)
			got = o->val;
	if (want == NULL)
		assert_null(got);
	else {
		assert_non_null(got);
		assert_string_equal(got, want);
	}
	PQconninfoFree(all);
}

static void
says_all_but_its_password(
    const char *whole, const char *open, const char *secret)
{
	PQconninfoOption *all = PQconninfoParse(whole, NULL);

	assert_non_null(all);
	for (PQconninfoOption *o = all; o->keyword != NULL; o++)
		if (strcmp(o->keyword, "password") != 0)
			is(open, o->keyword, o->val);
		else if (o->val == NULL)
			assert_null(secret);
		else
			assert_string_equal(secret, o->val);
	is(open, "password", NULL);
	PQconninfoFree(all);
}

/* A socket's string is the configuration's own, byte for byte. */
static void
sockets(void **state)
{
	static const char *const local[] = {
	    "host=/run/postgresql dbname=mcpbox user=mcpbox_app",
	    "dbname=mcpbox", "", "host='' dbname=x password=kept",
	    "host=@abstract", "host=/a,/b port=1,2",
	    "postgresql:///mcpbox?host=/run/postgresql",
	    "host=/run/postgresql sslmode=disable service=any"};
	struct database d;
	struct err err;

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		assert_int_equal(database_read(&d, "database", local[i],
				     "/nonexistent", &err),
		    0);
		assert_false(d.remote);
		assert_int_equal(d.n, 1);
		assert_string_equal(d.conninfo[0], local[i]);
		says_all_but_its_password(local[i], d.open, d.password);
		assert_null(d.sslrootcert);
		database_free(&d);
	}
	/* The password is no argument of anybody's. */
	assert_int_equal(database_read(&d, "database",
			     "host=/run/postgresql user='a \\'b' "
			     "password='secret \\\\'",
			     NULL, &err),
	    0);
	is(d.conninfo[0], "password", "secret \\");
	is(d.open, "password", NULL);
	is(d.open, "user", "a 'b");
	assert_string_equal(d.password, "secret \\");
	database_free(&d);
}

static void
one_host(void **state)
{
	struct database d;
	char text[512];
	struct err err;

	snprintf(text, sizeof(text),
	    "host=db.example hostaddr=192.0.2.7 dbname='my db' user=u "
	    "sslmode=verify-full sslrootcert=%s gssencmode=disable "
	    "keepalives_idle=99",
	    certificate);
	/* gssencmode is ours to say. */
	assert_int_equal(
	    database_read(&d, "database", text, password, &err), -1);
	assert_non_null(strstr(err.text, "gssencmode"));
	database_free(&d);
	snprintf(text, sizeof(text),
	    "host=db.example hostaddr=192.0.2.7 dbname='my db' user=u "
	    "sslmode=verify-full sslrootcert=%s keepalives_idle=99",
	    certificate);
	assert_int_equal(
	    database_read(&d, "database", text, password, &err), 0);
	assert_true(d.remote);
	assert_int_equal(d.n, 1);
	assert_int_equal(d.ports[0], 5432);
	assert_string_equal(d.addresses[0], "192.0.2.7");
	assert_string_equal(d.sslrootcert, certificate);
	assert_string_equal(d.password, PASSWORD);
	is(d.conninfo[0], "password", PASSWORD);
	is(d.conninfo[0], "dbname", "my db");
	is(d.conninfo[0], "host", "db.example");
	is(d.conninfo[0], "hostaddr", "192.0.2.7");
	is(d.conninfo[0], "sslmode", "verify-full");
	is(d.conninfo[0], "gssencmode", "disable");
	is(d.conninfo[0], "keepalives_idle", "99"); /* theirs wins */
	is(d.conninfo[0], "target_session_attrs", NULL);
	is(d.open, "password", NULL);
	is(d.open, "dbname", "my db");
	assert_null(strstr(d.open, "pass="));
	database_free(&d);
	assert_null(d.conninfo[0]);
	database_free(&d); /* harmless */
	/* Without a password file the server decides. */
	assert_int_equal(database_read(&d, "database", text, "", &err), 0);
	assert_null(d.password);
	is(d.conninfo[0], "password", NULL);
	database_free(&d);
}

/* Each string begins with another host and keeps the pairs together. */
static void
hosts_in_turn(void **state)
{
	static const char *const want[][3] = {
	    {"a,b,c", "192.0.2.1,192.0.2.2,2001:db8::3", "1,2,3"},
	    {"b,c,a", "192.0.2.2,2001:db8::3,192.0.2.1", "2,3,1"},
	    {"c,a,b", "2001:db8::3,192.0.2.1,192.0.2.2", "3,1,2"}};
	struct database d;
	char text[512];
	struct err err;

	for (int ports = 0; ports < 2; ports++) {
		snprintf(text, sizeof(text),
		    "host=a,b,c hostaddr=192.0.2.1,192.0.2.2,2001:db8::3 "
		    "port=%s sslmode=verify-full sslrootcert=%s",
		    ports == 0 ? "1,2,3" : "77", certificate);
		assert_int_equal(
		    database_read(&d, "database", text, password, &err), 0);
		assert_int_equal(d.n, 3);
		for (size_t i = 0; i < 3; i++) {
			is(d.conninfo[i], "host", want[i][0]);
			is(d.conninfo[i], "hostaddr", want[i][1]);
			is(d.conninfo[i], "port",
			    ports == 0 ? want[i][2] : "77");
			is(d.conninfo[i], "target_session_attrs", "read-write");
			assert_int_equal(d.ports[i], ports == 0 ? i + 1 : 77);
		}
		database_free(&d);
	}
}

static void
too_many_hosts(void **state)
{
	struct database d;
	char text[1024];
	struct err err;

	snprintf(text, sizeof(text),
	    "host=a,a,a,a,a,a,a,a,a hostaddr=1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
	    "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1 sslmode=verify-full "
	    "sslrootcert=%s",
	    certificate);
	assert_int_equal(
	    database_read(&d, "database", text, password, &err), -1);
	assert_int_equal(err.failure, FAILURE_INVALID_PARAMS);
	database_free(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sockets),
	    cmocka_unit_test(one_host),
	    cmocka_unit_test(hosts_in_turn),
	    cmocka_unit_test(too_many_hosts),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
