/*
 * admind: policy, catalogue, records, audit; the only user of the database.
 * See DESIGN.md beside this file.
 *
 *	mcpbox-admind [-tTdV] -f FILE	the daemon
 *	mcpbox-admind -m -f FILE	bring the database to this schema, exit
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <seccomp.h>

#include "activity.h"
#include "admind.h"
#include "confine.h"
#include "limits.h"
#include "log.h"
#include "migrate.h"
#include "tasks.h"
#include "tokens.h"

static const char *const channels[] = {"mcpbox_catalogue", "mcpbox_session",
    "mcpbox_task", "mcpbox_call", "mcpbox_token", "mcpbox_setting", NULL};

/* What libpq does beyond the base list: it holds back a SIGPIPE where the
 * kernel can't be told to (TLS). Its habit of opening files
 * (services, passwords, passwd) fails by the base list, which it takes as
 * "there is none". */
static const struct confine_rule rules[] = {
    {SCMP_SYS(rt_sigpending), -1, 0, 0},
    {SCMP_SYS(rt_sigtimedwait), -1, 0, 0},
};

static void
db_up(void *arg)
{
	tokens_db_up(arg);
	limits_reload(arg);
	sweep_db_up(arg);
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

/* `-m` is not one of the options every daemon has: taken out before those are
 * parsed. True if it was there. */
static bool
take_migrate(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++)
		if (strcmp(argv[i], "-m") == 0) {
			memmove(&argv[i], &argv[i + 1],
			    (size_t)(*argc - i) * sizeof(*argv));
			(*argc)--;
			return true;
		}
	return false;
}

/* A fresh view of the database for the daemon's life. */
static int
start(struct admind *a, struct err *err)
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

	/* Else libpq looks the home directory up for its password file, which
	 * may load name service libraries: not possible once confined. */
	if (setenv("HOME", "/nonexistent", 1) == -1)
		return err_sys(err, FAILURE_INTERNAL, "environment");
	if (auth_load_token(a, err) == -1 || links_listen(a, err) == -1)
		return -1;
	buf_init(&layers, IPC_FRAME_MAX / 2);
	if (confine_self(&spec, &layers, err) == -1)
		return -1;
	buf_putc(&layers, '\0');
	if (layers.failed)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	a->layers = (char *)layers.p;
	ipc_hello_set("admind", a->layers);
	a->epoch = *ipc_hello_epoch();
	a->db = db_new(a->proc.base, conf_str(a->proc.conf, "database"),
	    migrations_count, channels, &events, a, err);
	if (a->db == NULL || gather_start(a, err) == -1 ||
	    activity_start(a, err) == -1 || follow_start(a, err) == -1 ||
	    limits_start(a, err) == -1 || links_connect(a, err) == -1)
		return -1;
	return sweep_start(a, err);
}

int
main(int argc, char **argv)
{
	static struct admind a;
	bool migrate = take_migrate(&argc, argv);
	struct err err;

	proc_start(&a.proc, "admind", argc, argv);
	if (migrate) {
		if (migrate_run(
			conf_str(a.proc.conf, "owner_database"), &err) == -1)
			log_fatal("migrate", "%s", err.text);
		return 0;
	}
	TAILQ_INIT(&a.jobs);
	TAILQ_INIT(&a.announces);
	TAILQ_INIT(&a.closes);
	TAILQ_INIT(&a.tasks);
	TAILQ_INIT(&a.serving.list);
	a.node = conf_str(a.proc.conf, "node");
	if (start(&a, &err) == -1)
		log_fatal("start", "%s", err.text);
	log_event(LOG_LV_INFO, "ready", "node %s", a.node);
	/* The kernel takes what is left. What is open stays open in the
	 * database and is closed by the next life of this node. */
	return proc_run(&a.proc);
}
