/*
 * mcpboxctl: the administrator's command line. See mcpboxctl(1).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "conf.h"
#include "options.h"

/* Reads a file's settings. The object that holds them lives as long as the
 * process, since *c points into it. Values that options gave stay as they
 * are. */
static void
read_conf(struct ctl *c, const char *path)
{
	static struct conf *conf;
	struct err err;

	if ((conf = conf_new("mcpboxctl")) == NULL) {
		fputs("mcpboxctl: out of memory\n", stderr);
		exit(CTL_USAGE);
	}
	if (path != NULL && conf_load(conf, path, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		exit(CTL_USAGE);
	}
	if (c->run_dir == NULL)
		c->run_dir = conf_str(conf, "run_dir");
	if (c->key_file == NULL)
		c->key_file = conf_str(conf, "key_file");
	c->owner_database = conf_str(conf, "owner_database");
	c->superuser_database = conf_str(conf, "superuser_database");
	c->owner_password_file = conf_str(conf, "owner_database_password_file");
	c->superuser_password_file =
	    conf_str(conf, "superuser_database_password_file");
	c->postgres_bin = conf_str(conf, "postgres_bin");
	c->roles_file = conf_str(conf, "roles_file");
	c->libexec_dir = conf_str(conf, "libexec_dir");
	c->conf_dir = conf_str(conf, "conf_dir");
	c->state_dir = conf_str(conf, "state_dir");
}

/* Completes the connection strings for the commands that connect to PostgreSQL.
 * doctor goes on without them, and reports that it can't connect. */
static enum ctl_status
connects(struct ctl *c)
{
	bool doctor = strcmp(c->words[0], "doctor") == 0;
	struct err err;

	if ((!doctor && strcmp(c->words[0], "backup") != 0 &&
		strcmp(c->words[0], "restore") != 0) ||
	    databases_read(c, &err) == 0 || doctor)
		return CTL_DONE;
	fprintf(stderr, "mcpboxctl: %s\n", err.text);
	return CTL_REFUSED;
}

/* Reads the file that -f names, or else CTL_CONF_FILE, which belongs to root.
 * If there is no file, the defaults are those of an installed package. */
static void
configure(struct ctl *c, const char *file)
{
	if (file == NULL && access(CTL_CONF_FILE, F_OK) == 0)
		file = CTL_CONF_FILE;
	read_conf(c, file);
}

static enum ctl_status
run(struct ctl *c, const struct options *given)
{
	const struct command *cmd = commands_find(c->words[0]);
	const char *verb = c->nwords > 1 ? c->words[1] : NULL;
	enum ctl_status status = CTL_USAGE;

	if (cmd == NULL) {
		commands_unknown(c->words[0]);
		return CTL_USAGE;
	}
	if (given->help) {
		commands_help(cmd);
		return CTL_DONE;
	}
	if (!given->wrong && !options_refused(given, cmd) &&
	    c->nwords >= cmd->min && c->nwords <= cmd->max) {
		configure(c, given->file);
		status = connects(c);
		if (status == CTL_DONE)
			status = cmd->run(c);
	}
	if (status == CTL_USAGE) {
		if (verb != NULL)
			commands_unknown_verb(cmd, verb);
		commands_usage(stderr, cmd, verb);
	}
	return status;
}

int
main(int argc, char **argv)
{
	struct ctl c = {.limit = 50};
	struct options given;
	enum ctl_status status;

	(void)signal(SIGPIPE, SIG_IGN);
	options_read(&c, &given, argc, argv);
	if (given.version && !given.wrong) {
		printf("mcpboxctl %s\n", MCPBOX_VERSION);
		status = CTL_DONE;
	} else if (c.nwords > 0) {
		status = run(&c, &given);
	} else if (given.help && !given.wrong) {
		commands_all(stdout);
		status = CTL_DONE;
	} else {
		fputs("usage: mcpboxctl [--run-dir DIR | -f FILE] [--json] "
		      "COMMAND\nmcpboxctl help lists the commands\n",
		    stderr);
		status = CTL_USAGE;
	}
	if (fflush(stdout) != 0 && status == CTL_DONE) {
		perror("mcpboxctl: standard output");
		status = CTL_REFUSED;
	}
	return status;
}
