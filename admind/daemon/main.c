/*
 * admind: policy, catalogue, records, audit; the only user of the database. See
 * admind/DESIGN.md.
 *
 *  mcpbox-admind [-tTdV] -f FILE      runs the daemon
 *  mcpbox-admind -m [-b DIR] -f FILE  brings the database to this schema, after
 *                                     a backup in DIR, and exits
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <event2/event.h>
#include <seccomp.h>

#include "access.h"
#include "activity.h"
#include "auth.h"
#include "call.h"
#include "catalogue.h"
#include "confine.h"
#include "daemon.h"
#include "database.h"
#include "ending.h"
#include "identities.h"
#include "limits.h"
#include "log.h"
#include "manage.h"
#include "migrate.h"
#include "records.h"
#include "regrant.h"
#include "service.h"
#include "signin.h"
#include "tasks.h"
#include "tokens.h"

/* Longest mcp_url: longer than any URL of a listener of this machine. */
enum { MCP_URL_MAX = 512 };

static const char *const channels[] = {"mcpbox_catalogue", "mcpbox_session",
    "mcpbox_task", "mcpbox_call", "mcpbox_token", "mcpbox_setting",
    "mcpbox_access", NULL};

/* System calls of libpq, added to the base list. With TLS the kernel can't be
 * told to send no SIGPIPE, so libpq blocks the signal itself. libpq also tries
 * to open files (services, passwords, passwd). The base list lets that fail,
 * and libpq takes the failure as "there is none". */
static const struct confine_rule rules[] = {
    {SCMP_SYS(rt_sigpending), -1, 0, 0},
    {SCMP_SYS(rt_sigtimedwait), -1, 0, 0},
};

static void
db_up(void *arg)
{
	service_status("serving, database reached");
	tokens_db_up(arg);
	identities_db_up(arg);
	document_db_up(arg);
	ends_db_up(arg);
	limits_reload(arg);
	tick_db_up(arg);
}

static void
db_notify(const char *channel, const char *payload, void *arg)
{
	struct admind *a = arg;

	if (strcmp(channel, "mcpbox_session") == 0) {
		auth_session_ended(a, payload);
		return;
	}
	if (strcmp(channel, "mcpbox_task") == 0) {
		tasks_notified(a, payload);
		return;
	}
	if (strcmp(channel, "mcpbox_call") == 0) {
		confirm_notified(a, payload);
		return;
	}
	if (strcmp(channel, "mcpbox_setting") == 0) {
		limits_notified(a, payload);
		return;
	}
	if (strcmp(channel, "mcpbox_access") == 0) {
		document_notified(a, payload);
		ends_notified(a, payload);
		return;
	}
	if (strcmp(channel, "mcpbox_token") == 0) {
		tokens_notified(a, payload);
		return;
	}
	catalogue_notified(a, payload);
	withdraw_calls(a);
	regrant_run(a, NULL, NULL);
}

static void
db_wrong(const char *why, void *arg)
{
	log_fatal("schema", "%s", why);
}

/* Takes `-m` and `-b DIR` out of argv, before the options that every daemon has
 * are parsed. Returns true if -m was there. */
static bool
take_migrate(int *argc, char **argv, struct migrate *m)
{
	bool found = false;
	int n, i = 1;

	while (i < *argc) {
		n = strcmp(argv[i], "-m") == 0                    ? 1
		    : strcmp(argv[i], "-b") == 0 && i + 1 < *argc ? 2
								  : 0;
		if (n == 1)
			found = true;
		if (n == 2)
			m->backup_dir = argv[i + 1];
		/* the terminating NULL is moved, too */
		if (n != 0)
			memmove(&argv[i], &argv[i + n],
			    (size_t)(*argc - i - n + 1) * sizeof(*argv));
		else
			i++;
		*argc -= n;
	}
	return found;
}

/*
 * Writes the line of `systemctl status`. admind is ready even without a
 * database, because it answers with a typed failure then. If it were not ready,
 * none of the other daemons could start, only because of a server that comes
 * back by itself.
 */
static void
say_status(char *buf, size_t len, void *arg)
{
	const struct admind *a = arg;

	if (db_is_up(a->db))
		(void)snprintf(buf, len, "serving, database reached");
	else if (db_why(a->db)[0] == '\0')
		(void)snprintf(buf, len, "connecting to the database");
	else
		(void)snprintf(
		    buf, len, "no database, trying again: %s", db_why(a->db));
}

/* Reads where the database is. Must run before confinement, because the
 * password is read from its file here. It is read once and kept in the
 * connection strings, which each new connection needs. */
static void
read_database(const struct admind *a, const char *keyword,
    const char *password_file, struct database *where)
{
	struct err err;

	if (database_read(where, keyword, conf_str(a->proc.conf, keyword),
		conf_str(a->proc.conf, password_file), &err) == -1)
		log_fatal("database", "%s", err.text);
	/* For a remote server, libpq must not use a certificate, key or
	 * revocation list in a home directory. */
	if (where->remote && setenv("HOME", "/nonexistent", 1) == -1)
		log_fatal("memory", "out of memory");
}

/* Checks the URL that the status shows. People paste the URL into the
 * configuration of a client, so other texts and second lines are refused. */
static int
check_mcp_url(const struct conf *c, struct err *err)
{
	const char *url = conf_str(c, "mcp_url");
	size_t n = strlen(url);
	bool good = n <= MCP_URL_MAX &&
	    (strcmp(url, "-") == 0 || strncmp(url, "http://", 7) == 0 ||
		strncmp(url, "https://", 8) == 0);

	for (size_t i = 0; i < n; i++)
		good = good && url[i] > ' ' && url[i] < 0x7f;
	if (!good)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "mcp_url must be -, or begin with http:// or https:// and "
		    "have at most %d printable characters: mcpbox.conf(5)",
		    MCP_URL_MAX);
	return 0;
}

/* Checks both connection strings, without the passwords, and the URL, for
 * option -t. */
static int
check_settings(const struct conf *c, struct err *err)
{
	static const char *const keywords[] = {"database", "owner_database"};
	struct database d;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < 2; i++) {
		rc = database_read(
		    &d, keywords[i], conf_str(c, keywords[i]), NULL, err);
		database_free(&d);
	}
	return rc == 0 ? check_mcp_url(c, err) : -1;
}

/* Opens the sockets and the ledger, confines the process, then starts
 * everything that the daemon needs. 0, or -1 with err. */
static int
start(struct admind *a, const struct database *where, struct err *err)
{
	static const struct db_events events = {
	    .up = db_up, .notify = db_notify, .wrong_schema = db_wrong};
	struct confine_spec spec = {.process = "admind",
	    .rules = rules,
	    .nrules = sizeof(rules) / sizeof(rules[0]),
	    .connect_unix = true,
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true};
	struct buf layers;

	/* Without HOME, libpq looks up the home directory for its password
	 * file. That may load name service libraries, which is impossible after
	 * confinement. */
	if (setenv("HOME", "/nonexistent", 1) == -1)
		return err_sys(err, FAILURE_INTERNAL, "environment");
	if (check_mcp_url(a->proc.conf, err) == -1 ||
	    auth_load_token(a, err) == -1 ||
	    ending_ledger(a, sweep_own_epoch, err) == -1 ||
	    links_listen(a, err) == -1)
		return -1;
	/*
	 * A remote server needs TCP to its ports, and the one file that libpq
	 * opens for each connection. A seccomp filter can't read addresses, so
	 * the unit restricts them (IPAddressAllow).
	 */
	if (where->remote) {
		spec.read_file = where->sslrootcert;
		spec.connect_ports = where->ports;
		spec.nports = where->n;
	}
	buf_init(&layers, IPC_FRAME_MAX / 2);
	if (confine_self(&spec, &layers, err) == -1)
		return -1;
	buf_putc(&layers, '\0');
	if (layers.failed)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	a->layers = (char *)layers.p;
	ipc_hello_set("admind", a->layers);
	a->epoch = *ipc_hello_epoch();
	a->db = db_new(
	    a->proc.base, where, migrations_count, channels, &events, a, err);
	if (a->db == NULL || gather_start(a, err) == -1 ||
	    activity_start(a, err) == -1 || follow_start(a, err) == -1 ||
	    limits_start(a, err) == -1 || document_start(a, err) == -1 ||
	    signin_start(a, err) == -1 || identities_start(a, err) == -1 ||
	    links_connect(a, err) == -1)
		return -1;
	return tick_start(a, err);
}

int
main(int argc, char **argv)
{
	static struct admind a;
	struct migrate m = {0};
	static struct database where; /* lives as long as the process */
	bool migrate = take_migrate(&argc, argv, &m);
	struct err err;

	proc_check_with(check_settings);
	proc_start(&a.proc, "admind", argc, argv);
	if (migrate) {
		read_database(&a, "owner_database",
		    "owner_database_password_file", &where);
		m.conninfo = where.conninfo[0];
		m.postgres_bin = conf_str(a.proc.conf, "postgres_bin");
		if (migrate_run(&m, &err) == -1) {
			if (!migrate_away(&m))
				log_fatal("migrate", "%s", err.text);
			/* The database server can't be reached, perhaps only
			 * for a moment. This exit status makes the unit try
			 * again. */
			log_event(LOG_LV_ERR, "migrate", "%s", err.text);
			return EX_TEMPFAIL;
		}
		database_free(&where);
		return 0;
	}
	read_database(&a, "database", "database_password_file", &where);
	TAILQ_INIT(&a.jobs);
	TAILQ_INIT(&a.announces);
	TAILQ_INIT(&a.closes);
	TAILQ_INIT(&a.tasks);
	TAILQ_INIT(&a.serving.list);
	verdicts_init(&a.verdicts);
	a.manage = manage_start;
	a.node = conf_str(a.proc.conf, "node");
	a.mcp_url = conf_str(a.proc.conf, "mcp_url");
	if (start(&a, &where, &err) == -1)
		log_fatal("start", "%s", err.text);
	log_event(LOG_LV_INFO, "ready", "node %s", a.node);
	service_status_from(say_status, &a);
	service_ready(a.proc.base, "connecting to the database");
	drain_start(&a);
	/* The kernel frees everything else. Open rows stay open in the
	 * database, and the next admind process of this node closes them. */
	return proc_run(&a.proc);
}
