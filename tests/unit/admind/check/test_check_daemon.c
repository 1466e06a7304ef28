/*
 * mcpbox-admind-check itself: starts it in a directory of its own, asks it
 * over its socket as admind would, and looks from outside at how it is
 * confined. argv[1] is the executable.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "access_fields.h"
#include "ids.h"
#include "ipc_io.h"
#include "ipc_values.h"
#include "signer.h"
#include "unit.h"

static const char *exe;

enum { CHECK_UID = 1900000002 }; /* INTERFACES: numbers for tests, nobody's */

static pid_t running; /* ended by cleanup() if its test failed */

struct daemon {
	char dir[64], sock[128], conf[128], openssl[128];
	pid_t pid;
};

static void
start(struct daemon *d, uid_t admind)
{
	char sub[96];
	FILE *f;

	snprintf(d->dir, sizeof(d->dir), "/tmp/mcpbox-check-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	assert_int_equal(chmod(d->dir, 0755), 0);
	snprintf(sub, sizeof(sub), "%s/admind-check", d->dir);
	assert_int_equal(mkdir(sub, 0755), 0);
	snprintf(d->sock, sizeof(d->sock), "%s/admind.sock", sub);
	snprintf(d->conf, sizeof(d->conf), "%s/check.conf", d->dir);
	assert_non_null(f = fopen(d->conf, "w"));
	fprintf(f, "run_dir %s\nadmind_user %u\n", d->dir, admind);
	assert_int_equal(fclose(f), 0);
	snprintf(d->openssl, sizeof(d->openssl), "%s/openssl.cnf", d->dir);
	assert_non_null(f = fopen(d->openssl, "w"));
	fputs("openssl_conf = a\n[a]\nproviders = b\n[b]\nnull = c\n"
	      "[c]\nactivate = 1\n",
	    f);
	assert_int_equal(fclose(f), 0);
	/* Daemons refuse uid 0: as root it gets a number that is nobody's. */
	if (geteuid() == 0)
		assert_int_equal(chown(sub, CHECK_UID, CHECK_UID), 0);
	assert_int_not_equal(d->pid = fork(), -1);
	if (d->pid == 0) {
		if (geteuid() == 0 &&
		    (setresgid(CHECK_UID, CHECK_UID, CHECK_UID) == -1 ||
			setresuid(CHECK_UID, CHECK_UID, CHECK_UID) == -1))
			_exit(98);
		/* With this configuration libcrypto would have no algorithm at
		 * all. It must not be read. */
		setenv("OPENSSL_CONF", d->openssl, 1);
		/* Confined as it is, its leak checker cannot work. */
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
		execl(exe, exe, "-f", d->conf, (char *)NULL);
		_exit(99);
	}
	running = d->pid;
}

/* Ends it and removes what it left. Returns its wait status. */
static int
stop(struct daemon *d, int sig)
{
	char sub[96];
	int status;

	kill(d->pid, sig);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	running = 0;
	unlink(d->sock);
	unlink(d->conf);
	unlink(d->openssl);
	snprintf(sub, sizeof(sub), "%s/admind-check", d->dir);
	rmdir(sub);
	rmdir(d->dir);
	return status;
}

static int
cleanup(void **state)
{
	if (running != 0) {
		kill(running, SIGKILL);
		waitpid(running, NULL, 0);
		running = 0;
	}
	return 0;
}

static bool
lives(const struct daemon *d)
{
	siginfo_t ended = {0};

	return waitid(P_PID, (id_t)d->pid, &ended,
		   WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    ended.si_pid == 0;
}

/* Returns a connection to the process, once it listens. -1: it has ended. */
static int
open_client(const struct daemon *d, struct err *e)
{
	int sock = -1;

	while (sock == -1 && lives(d)) {
		sock = ipc_client_open(
		    d->sock, IPC_ROLE_ADMIND, IPC_ROLE_CHECK, "test", e);
		if (sock == -1)
			usleep(10000);
	}
	return sock;
}

static enum ipc_type
arguments(int sock, const char *schema, const char *args, enum failure *why)
{
	struct ipc_check_arguments m = {0};
	struct ipc_check_errors bad;
	struct ipc_frame f;
	struct err e;
	char both[1024];
	enum ipc_type type;

	snprintf(both, sizeof(both), "%s%s", schema, args);
	m.schema_len = (uint32_t)strlen(schema);
	m.schema_arguments = ipc_str(both);
	if (ipc_client_call(sock, IPC_CHECK_ARGUMENTS, &m, unit_patience(5000),
		&f, &e) == -1)
		fail_msg("%s", e.text);
	type = f.type;
	if (type == IPC_CHECK_ERRORS) {
		assert_int_equal(ipc_decode(&f, &bad, &e), 0);
		*why = bad.failure;
	}
	ipc_frame_free(&f);
	return type;
}

static void
answers_and_survives(void **state)
{
	struct daemon d;
	struct err e;
	enum failure why = FAILURE_NONE;
	int sock, status;

	start(&d, geteuid());
	sock = open_client(&d, &e);
	assert_int_not_equal(sock, -1);
	/* Often enough that a timer left running would have fired. */
	for (int i = 0; i < 300; i++) {
		assert_int_equal(
		    arguments(sock,
			"{\"type\":\"object\",\"required\":[\"a\"]}",
			"{\"a\":1}", &why),
		    IPC_CHECK_OK);
		assert_int_equal(
		    arguments(sock,
			"{\"type\":\"object\",\"required\":[\"a\"]}", "{}",
			&why),
		    IPC_CHECK_ERRORS);
		assert_int_equal(why, FAILURE_INVALID_ARGUMENTS);
	}
	assert_int_equal(
	    arguments(sock,
		"{\"type\":\"object\",\"properties\":{\"v\":{\"pattern\":"
		"\"^(a|aa)+$\"}}}",
		"{\"v\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"}",
		&why),
	    IPC_CHECK_ERRORS);
	assert_int_equal(why, FAILURE_LIMIT);
	close(sock);
	status = stop(&d, SIGTERM);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A message that admind may not send to this process ends the connection and
 * nothing else. */
static void
refuses_what_is_not_its(void **state)
{
	struct ipc_seal_context m = {0};
	struct daemon d;
	struct ipc_frame f;
	struct err e;
	enum failure why;
	int sock;

	start(&d, geteuid());
	sock = open_client(&d, &e);
	assert_int_not_equal(sock, -1);
	assert_int_equal(ipc_client_call(sock, IPC_SEAL_CONTEXT, &m,
			     unit_patience(5000), &f, &e),
	    -1);
	close(sock);
	sock = open_client(&d, &e);
	assert_int_not_equal(sock, -1);
	assert_int_equal(
	    arguments(sock, "{\"type\":\"object\"}", "{}", &why), IPC_CHECK_OK);
	close(sock);
	stop(&d, SIGTERM);
}

/* SO_PEERCRED: another uid than admind's gets no HELLO. */
static void
refuses_another_uid(void **state)
{
	struct daemon d;
	struct err e;
	int sock;

	start(&d, geteuid() + 1);
	while (access(d.sock, F_OK) != 0 && lives(&d))
		usleep(10000);
	assert_true(lives(&d));
	sock = ipc_client_open(
	    d.sock, IPC_ROLE_ADMIND, IPC_ROLE_CHECK, "test", &e);
	assert_int_equal(sock, -1);
	stop(&d, SIGTERM);
}

/* Asks about a document with ' for ". Returns the fields, to be freed. */
static struct ipc_frame
access_document(int sock, const char *text, struct ipc_check_ok *ok)
{
	static char quoted[4 * SIGNER_JWK_MAX];
	struct ipc_check_access m = {0};
	struct ipc_frame f;
	struct err e;

	signer_quote(text, quoted, sizeof(quoted));
	m.document = ipc_str(quoted);
	if (ipc_client_call(
		sock, IPC_CHECK_ACCESS, &m, unit_patience(5000), &f, &e) == -1)
		fail_msg("%s", e.text);
	assert_int_equal(f.type, IPC_CHECK_OK);
	assert_int_equal(ipc_decode(&f, ok, &e), 0);
	return f;
}

static enum ipc_type
jwt(int sock, const char *token, struct ipc_bytes issuers)
{
	struct ipc_check_jwt m = {.listener = LISTENER_TUNNEL,
	    .via = VIA_AUTHORIZATION,
	    .now_us = UINT64_C(1800000000000000),
	    .token_len = (uint32_t)strlen(token)};
	struct ipc_frame f;
	struct buf both;
	struct err e;
	enum ipc_type type;

	buf_init(&both, IPC_BLOB_MAX);
	buf_puts(&both, token);
	buf_put(&both, issuers.p, issuers.n);
	m.token_issuers = ipc_bytes(both.p, both.len);
	if (ipc_client_call(
		sock, IPC_CHECK_JWT, &m, unit_patience(5000), &f, &e) == -1)
		fail_msg("%s", e.text);
	type = f.type;
	ipc_frame_free(&f);
	buf_free(&both);
	return type;
}

/* Signatures of every algorithm are checked by the process as it is confined.
 * The first question of each algorithm comes after the confinement. */
static void
verifies_tokens(void **state)
{
	static const struct {
		enum signer_way way;
		enum signer_key key;
		const char *alg;
	} all[] = {{SIGN_RS256, SIGNER_RSA, "RS256"},
	    {SIGN_PS256, SIGNER_RSA, "PS256"}, {SIGN_ES256, SIGNER_EC, "ES256"},
	    {SIGN_EDDSA, SIGNER_ED, "EdDSA"}};
	static char text[4 * SIGNER_JWK_MAX], token[SIGNER_TOKEN_MAX];
	char r[SIGNER_JWK_MAX], x[SIGNER_JWK_MAX], d[SIGNER_JWK_MAX], head[64];
	struct ipc_check_ok ok;
	struct ipc_frame f;
	struct daemon da;
	struct err e;
	int sock;

	signer_start();
	signer_jwk(signer_key(SIGNER_RSA), "", r);
	signer_jwk(signer_key(SIGNER_EC), "", x);
	signer_jwk(signer_key(SIGNER_ED), "", d);
	snprintf(text, sizeof(text),
	    "{'resource':'https://mcp.example.org/mcp','issuers':[{'name':'a',"
	    "'issuer':'https://id.example.org','jwks':{'keys':[%s,%s,%s]}}]}",
	    r, x, d);
	start(&da, geteuid());
	sock = open_client(&da, &e);
	assert_int_not_equal(sock, -1);
	f = access_document(sock, text, &ok);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(
		    head, sizeof(head), "{'alg':'%s','typ':'JWT'}", all[i].alg);
		signer_token(all[i].way, signer_key(all[i].key), head,
		    "{'iss':'https://id.example.org','sub':'ann',"
		    "'aud':'https://mcp.example.org/mcp','exp':1800000300}",
		    token);
		assert_int_equal(jwt(sock, token, ok.fields), IPC_CHECK_OK);
		token[strlen(token) - 8] ^= 2;
		assert_int_equal(jwt(sock, token, ok.fields), IPC_CHECK_ERRORS);
	}
	ipc_frame_free(&f);
	close(sock);
	stop(&da, SIGTERM);
	signer_stop();
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1 /* confine.c leaves out seccomp: the runtime needs more */
#else
#define SANITIZED 0
#endif

static void
is_confined(void **state)
{
	static const char *const want[] = {"NoNewPrivs:\t1\n",
	    "CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n",
	    "CapInh:\t0000000000000000\n", "CapAmb:\t0000000000000000\n",
	    "Seccomp:\t2\n"};
	char path[64], text[8192];
	struct daemon d;
	struct err e;
	int fd, sock, status;
	ssize_t n = -1;

	start(&d, geteuid());
	/* HELLO comes from the loop, and that runs after the confinement. */
	sock = open_client(&d, &e);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	if ((fd = open(path, O_RDONLY)) != -1) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	close(sock);
	/* The backstop's signal must not be caught or blocked. */
	status = stop(&d, SIGPROF);
	assert_int_not_equal(sock, -1);
	assert_true(n > 0);
	text[n] = '\0';
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]) - SANITIZED; i++)
		if (strstr(text, want[i]) == NULL)
			fail_msg("no %s in %s", want[i], text);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGPROF);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(answers_and_survives, cleanup),
	    cmocka_unit_test_teardown(refuses_what_is_not_its, cleanup),
	    cmocka_unit_test_teardown(refuses_another_uid, cleanup),
	    cmocka_unit_test_teardown(verifies_tokens, cleanup),
	    cmocka_unit_test_teardown(is_confined, cleanup),
	};

	if (argc != 2)
		return 2;
	exe = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
