/*
 * mcpboxctl: the administrator's command line. See mcpboxctl(1).
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "ctl.h"
#include "limit.h"

static const struct {
	const char *word;
	int min, max; /* words, the command's own included */
	enum ctl_status (*run)(const struct ctl *);
	const char *usage;
} commands[] = {
    {"setup", 1, 1, setup_command,
	"setup [--username NAME] [--password-file FILE] [--database "
	"URL|local]"},
    {"approvals", 2, 4, approvals_command,
	"approvals list [--all | --state STATE] [--kind KIND] [--search TEXT] "
	"[--server ID] [--tool NAME] | show ID | diff ID | approve ID --hash "
	"HEX | reject ID --reason TEXT | revoke ID --reason TEXT | bulk "
	"approve|reject [--reason TEXT] (lines of ID HASH on standard input) | "
	"comments ID | comment ID TEXT"},
    {"policies", 1, 6, policies_command,
	"policies [set strict|balanced|permissive [days=N] | set tool=MODE "
	"module=MODE network=MODE [days=N]]"},
    {"servers", 1, 3 + LIMIT_COUNT, lives_command,
	"servers [SERVER | create NAME [TEXT] | describe SERVER TEXT | start "
	"SERVER | stop SERVER [REASON] | delete SERVER] | servers limits NAME "
	"[LIMIT=VALUE ...] | servers expose NAME prefixed|bare"},
    {"modules", 1, 7, modules_command,
	"modules [installs | add NAME VERSION DIGEST [FILES BYTES] | withdraw "
	"NAME "
	"VERSION "
	"| grant TOOL NAME[==VERSION] | revoke TOOL NAME[==VERSION]]"},
    {"tokens", 1, 8, tokens_command,
	"tokens [list [--state active|expired|revoked] | show TOKEN | create "
	"NAME [scopes=...] [listeners=...] [allow=...] [deny=...] "
	"[expires=DAYSd|never] | revoke TOKEN [REASON]]"},
    {"settings", 1, 4, settings_command,
	"settings [KEY | set KEY VALUE | reset KEY]"},
    {"rates", 1, 6, rates_command,
	"rates [set listener|principal|tool SUBJECT PER_MINUTE [BURST] | "
	"remove "
	"listener|principal|tool SUBJECT]"},
    {"breakers", 1, 2, breakers_command, "breakers [reset]"},
    {"call", 1, 64, call_command,
	"call [ACTION [ID] [name=value ...] [--hash HEX] [--key KEY]]"},
    {"query", 2, 3, query_command, "query WHAT [ID]"},
    {"tools", 1, 5, lives_command,
	"tools [TOOL | describe TOOL [name=...] [title=...] "
	"[description=...] | enable TOOL | disable TOOL [REASON] | delete TOOL "
	"| "
	"versions "
	"TOOL | version TOOL N | diff TOOL N N | rollback TOOL N | prune TOOL "
	"[KEEP]]"},
    {"sources", 1, 203, lives_command,
	"sources [SERVER | add SERVER NAME URL [auth_type=... "
	"auth_secret_name=... auth_header_name=... transport_type=... "
	"oauth_issuer=... oauth_scope=... oauth_client_id=... "
	"oauth_hosts=...] | show ID | discover ID | import ID NAME ... | "
	"authorise ID REDIRECT_URI | delete ID]"},
    {"openapi", 3, 54, openapi_command,
	"openapi SERVER FILE [base_url=URL] [OPERATION ...]"},
    {"export", 1, 1001, export_command,
	"export [SERVER ...] [--transfer-key FILE] (to standard output)"},
    {"import", 2, 2, import_command, "import FILE [--transfer-key FILE]"},
    {"backup", 2, 2, backup_command, "backup FILE"},
    {"restore", 2, 2, restore_command, "restore FILE"},
    {"transfer-key", 2, 2, transfer_key_command, "transfer-key FILE"},
    {"executions", 1, 16, executions_command,
	"executions [ID | FILTER=VALUE ...] | executions export "
	"[FILTER=VALUE ...] | executions stats [FILTER=VALUE ...]"},
    {"activity", 1, 16, activity_command,
	"activity [FILTER=VALUE ...] | activity tail"},
    {"audit", 1, 16, audit_command,
	"audit [FILTER=VALUE ...] | audit export [FILTER=VALUE ...] | audit "
	"verify [--journal FILE]"},
    {"administrators", 1, 4, administrators_command,
	"administrators [NAME | create NAME --role ROLE [--password-file FILE] "
	"| role NAME ROLE | password NAME [--password-file FILE] | delete NAME "
	"| device NAME]"},
    {"logins", 1, 3, administrators_command,
	"logins [--username NAME] | logins end ID | logins end --username "
	"NAME"},
    {"status", 1, 1, tables_command, "status"},
    {"dashboard", 1, 1, tables_command, "dashboard [--period 1h|6h|24h|7d]"},
    {"health", 1, 1, tables_command, "health"},
    {"doctor", 1, 1, doctor_command, "doctor"},
    {"secret", 3, 5, secret_command,
	"secret list SERVER | secret show SERVER KEY | secret create SERVER "
	"KEY [DESCRIPTION] | secret describe SERVER KEY TEXT | secret set "
	"SERVER KEY (the value on standard input) | secret delete SERVER KEY"},
    {"key", 2, 3, keys_command,
	"key status | key rotate [--leave-unreadable] [--key-file FILE] "
	"[--batch N] | key verify [--batch N] | key export FILE | key import "
	"FILE"},
};

enum { NCOMMANDS = sizeof(commands) / sizeof(commands[0]) };

static _Noreturn void
usage(FILE *to, int status)
{
	fputs("usage: mcpboxctl [--run-dir DIR | -f FILE] [--json] COMMAND\n",
	    to);
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(to, "       mcpboxctl %s\n", commands[i].usage);
	fputs("       lists take --limit N and --cursor CURSOR, and filters:",
	    to);
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		fprintf(to, " --%s", admin_filter_name((enum admin_filter)i));
	fputc('\n', to);
	exit(status);
}

/* A file's settings. Its object lives as long as we do, since *c points into
 * it. What an option gave stays as it is. */
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

static uint32_t
read_limit(const char *s)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (*s < '0' || *s > '9' || *end != '\0' || v < 1 ||
	    v > CTL_LIMIT_MAX) {
		fprintf(stderr, "mcpboxctl: --limit is from 1 to %d\n",
		    CTL_LIMIT_MAX);
		exit(CTL_USAGE);
	}
	return (uint32_t)v;
}

/* Options may stand anywhere; what is left are the command's words. */
static void
parse(struct ctl *c, int argc, char **argv)
{
	enum {
		RUN_DIR = 256,
		JSON,
		ALL,
		HASH,
		REASON,
		USERNAME,
		PASSWORD_FILE,
		ROLE,
		JOURNAL,
		STATE,
		KIND,
		LIMIT,
		CURSOR,
		KEY_FILE,
		LEAVE_UNREADABLE,
		BATCH,
		KEY,
		TRANSFER_KEY,
		DATABASE,
		FILTER /* the first of ADMIN_FILTER_COUNT */
	};
	static const struct option fixed[] = {
	    {"run-dir", required_argument, NULL, RUN_DIR},
	    {"json", no_argument, NULL, JSON},
	    {"all", no_argument, NULL, ALL},
	    {"hash", required_argument, NULL, HASH},
	    {"reason", required_argument, NULL, REASON},
	    {"username", required_argument, NULL, USERNAME},
	    {"password-file", required_argument, NULL, PASSWORD_FILE},
	    {"role", required_argument, NULL, ROLE},
	    {"journal", required_argument, NULL, JOURNAL},
	    {"state", required_argument, NULL, STATE},
	    {"kind", required_argument, NULL, KIND},
	    {"limit", required_argument, NULL, LIMIT},
	    {"cursor", required_argument, NULL, CURSOR},
	    {"key-file", required_argument, NULL, KEY_FILE},
	    {"leave-unreadable", no_argument, NULL, LEAVE_UNREADABLE},
	    {"batch", required_argument, NULL, BATCH},
	    {"key", required_argument, NULL, KEY},
	    {"transfer-key", required_argument, NULL, TRANSFER_KEY},
	    {"database", required_argument, NULL, DATABASE},
	    {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'V'},
	};
	struct option options[sizeof(fixed) / sizeof(fixed[0]) +
	    ADMIN_FILTER_COUNT + 1] = {0};
	struct option *next = options;
	const char *file = NULL;
	int o;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		*next++ = fixed[i];
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		if (i != ADMIN_FILTER_KIND && i != ADMIN_FILTER_STATE)
			*next++ = (struct option){
			    admin_filter_name((enum admin_filter)i),
			    required_argument, NULL, FILTER + i};

	while ((o = getopt_long(argc, argv, "f:hV", options, NULL)) != -1)
		switch (o) {
		case 'f':
			file = optarg;
			break;
		case 'h':
			usage(stdout, CTL_DONE);
		case 'V':
			printf("mcpboxctl %s\n", MCPBOX_VERSION);
			exit(CTL_DONE);
		case RUN_DIR:
			c->run_dir = optarg;
			break;
		case JSON:
			c->json = true;
			break;
		case ALL:
			c->all = true;
			break;
		case HASH:
			c->hash = optarg;
			break;
		case REASON:
			c->reason = optarg;
			break;
		case USERNAME:
			c->username = optarg;
			break;
		case PASSWORD_FILE:
			c->password_file = optarg;
			break;
		case ROLE:
			c->role = optarg;
			break;
		case JOURNAL:
			c->journal = optarg;
			break;
		case STATE:
			c->state = optarg;
			break;
		case KIND:
			c->kind = optarg;
			break;
		case LIMIT:
			c->limit = read_limit(optarg);
			break;
		case KEY_FILE:
			c->key_file = optarg;
			break;
		case LEAVE_UNREADABLE:
			c->leave_unreadable = true;
			break;
		case BATCH:
			c->batch = read_limit(optarg);
			break;
		case CURSOR:
			c->cursor = optarg;
			break;
		case TRANSFER_KEY:
			c->transfer_key = optarg;
			break;
		case KEY:
			c->key = optarg;
			break;
		case DATABASE:
			c->database = optarg;
			break;
		default:
			if (o < FILTER || o >= FILTER + ADMIN_FILTER_COUNT)
				usage(stderr, CTL_USAGE);
			c->filter[o - FILTER] = optarg;
		}
	/* An installed package has a file, which is root's; without one the
	 * defaults are those of an installed package. */
	if (file == NULL && access(CTL_CONF_FILE, F_OK) == 0)
		file = CTL_CONF_FILE;
	read_conf(c, file);
	c->words = argv + optind;
	c->nwords = argc - optind;
}

/* What a server elsewhere needs, for the commands that connect to it. doctor
 * goes on without, and finds that it can't. */
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

int
main(int argc, char **argv)
{
	struct ctl c = {.limit = 50};
	enum ctl_status status;

	(void)signal(SIGPIPE, SIG_IGN);
	parse(&c, argc, argv);
	if (c.nwords == 0)
		usage(stderr, CTL_USAGE);
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (strcmp(c.words[0], commands[i].word) != 0)
			continue;
		if (c.nwords < commands[i].min || c.nwords > commands[i].max)
			usage(stderr, CTL_USAGE);
		status = connects(&c);
		if (status == CTL_DONE)
			status = commands[i].run(&c);
		if (status == CTL_USAGE)
			fprintf(
			    stderr, "usage: mcpboxctl %s\n", commands[i].usage);
		if (fflush(stdout) != 0 && status == CTL_DONE) {
			perror("mcpboxctl: standard output");
			status = CTL_REFUSED;
		}
		return status;
	}
	usage(stderr, CTL_USAGE);
}
