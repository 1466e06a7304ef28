#include <sys/file.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "setup.h"
#include "tables.h"

/*
 * `mcpboxctl setup` on an installed system runs the steps in the order of the
 * table. A step does its work if that was not done before. The first step that
 * fails ends the run. Nothing is undone, so the next run finds the finished
 * steps.
 *
 * setup connects to no other machine than the server that --database names, and
 * only root may run it.
 */

static const struct step {
	const char *name;
	setup_step *here,
	    *elsewhere; /* for --database URL; NULL: no step then */
} steps[] = {
    {"users", setup_machine_users, setup_machine_users},
    {"directories", setup_machine_directories, setup_machine_directories},
    {"runners", setup_machine_runners, setup_machine_runners},
    {"database", setup_remote_back, NULL},
    {"server", setup_cluster_server, setup_elsewhere_server},
    {"roles", setup_cluster_roles, setup_elsewhere_roles},
    {"access", setup_cluster_access, NULL},
    {"login", setup_cluster_login, NULL},
    {"key", setup_machine_key, setup_machine_key},
    {"schema", setup_machine_schema, setup_machine_schema},
    {"start", setup_machine_start, setup_machine_start},
    {"administrator", setup_admin_first, setup_admin_first},
};

enum { TEXT_MAX = 64 * 1024 };

static const char *
word(enum setup_outcome o)
{
	return o == SETUP_DONE   ? "done"
	    : o == SETUP_ALREADY ? "already so"
				 : "failed";
}

/* Prints the outcome of a step. The detail may hold words of a server or
 * another program, so it is shown escaped. */
static void
tell(const struct ctl *c, struct json_object *all, const char *name,
    enum setup_outcome o, const char *detail)
{
	struct json_object *row;
	struct buf b;

	buf_init(&b, TEXT_MAX);
	show_text(&b, detail, strlen(detail), SHOW_LINE);
	buf_putc(&b, '\0');
	if (c->json) {
		row = json_object_new_object();
		json_object_object_add(
		    row, "step", json_object_new_string(name));
		json_object_object_add(
		    row, "state", json_object_new_string(word(o)));
		json_object_object_add(row, "detail",
		    json_object_new_string(b.failed ? "" : (const char *)b.p));
		json_object_array_add(all, row);
	} else {
		printf("%s: %s%s%s\n", name, word(o),
		    o == SETUP_FAILED ? ": " : " - ",
		    b.failed ? "" : (const char *)b.p);
		(void)fflush(stdout); /* some steps take a while */
	}
	buf_free(&b);
}

/* Prints the password, also after a failure: the administrator may exist
 * nevertheless. */
static void
show_password(const struct setup *s)
{
	if (s->password[0] != '\0')
		printf("\nThe administrator's password, which is shown only "
		       "now: %s\n",
		    s->password);
}

static void
next_steps(const struct setup *s)
{
	const char *dir = s->c->run_dir;

	printf("\nNext:\n"
	       "  Copy the master key to another place than the backups: "
	       "mcpboxctl key export FILE\n"
	       "  Connect a client of this machine: claude mcp add --transport "
	       "http mcpbox http://127.0.0.1:8002/mcp\n"
	       "  Administer: http://127.0.0.1:8000, or mcpboxctl (see "
	       "mcpboxctl(1))\n"
	       "  Clients from elsewhere: mcpboxctl tokens create NAME, and a "
	       "proxy or tunnel (user in the group\n"
	       "  mcpbox-gw-tunnel) to %s/gatewayd-tunnel/mcp.sock\n"
	       "  Look at it all: mcpboxctl doctor\n",
	    dir);
}

static void
print_json(struct json_object *steps_done, bool ok, const struct setup *s)
{
	struct json_object *all = json_object_new_object();
	const char *text;

	json_object_object_add(all, "ok", json_object_new_boolean(ok));
	json_object_object_add(all, "steps", steps_done);
	if (s->password[0] != '\0')
		json_object_object_add(
		    all, "password", json_object_new_string(s->password));
	text = json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN);
	(void)tables_json((const uint8_t *)text, strlen(text));
	json_object_put(all);
}

enum ctl_status
setup_system_run(const struct ctl *c)
{
	struct setup s = {.c = c,
	    .remote = c->database != NULL && strcmp(c->database, "local") != 0};
	struct json_object *all;
	enum setup_outcome o = SETUP_ALREADY;
	bool started = false;
	char backups[SETUP_PATH_MAX];
	struct err err;
	int lock;

	if (geteuid() != 0) {
		fputs("mcpboxctl: setup must be run as root\n", stderr);
		return CTL_REFUSED;
	}
	/* Only one setup at a time. A user who can open a file can lock it, so
	 * the lock is on a directory that is closed to others. If that
	 * directory is missing, the second step says so. */
	snprintf(backups, sizeof(backups), "%s/backups", c->state_dir);
	lock = open(backups, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (lock != -1 && flock(lock, LOCK_EX | LOCK_NB) == -1) {
		fputs("mcpboxctl: another setup is under way\n", stderr);
		close(lock);
		return CTL_REFUSED;
	}
	all = json_object_new_array();
	for (size_t i = 0;
	    i < sizeof(steps) / sizeof(steps[0]) && o != SETUP_FAILED; i++) {
		setup_step *run = s.remote ? steps[i].elsewhere : steps[i].here;

		if (run == NULL)
			continue;
		memset(&err, 0, sizeof(err));
		s.detail[0] = '\0';
		started = run == setup_machine_start;
		o = run(&s, &err);
		tell(c, all, steps[i].name, o,
		    o == SETUP_FAILED ? err.text : s.detail);
	}
	if (c->json)
		print_json(all, o != SETUP_FAILED, &s);
	else
		json_object_put(all);
	if (!c->json)
		show_password(&s);
	if (!c->json && o != SETUP_FAILED)
		next_steps(&s);
	explicit_bzero(s.password, sizeof(s.password));
	if (lock != -1)
		close(lock);
	if (o != SETUP_FAILED)
		return CTL_DONE;
	/* If the step "start" failed, everything was made but does not
	 * answer. */
	return started ? CTL_UNREACHABLE : CTL_REFUSED;
}
