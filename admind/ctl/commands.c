#include <stdlib.h>
#include <string.h>

#include "approvals.h"
#include "call.h"
#include "commands.h"
#include "doctor.h"
#include "limit.h"
#include "objects.h"
#include "options.h"
#include "remote.h"
#include "restore.h"
#include "setup.h"
#include "tables.h"

static enum ctl_status help_command(const struct ctl *);

/* help prints the rows in this order. A row without a word begins a group. */
/* clang-format off */
static const struct command commands[] = {
    {NULL, 0, 0, NULL, NULL, "First steps and health", NULL},
    {"setup", 1, 1, setup_command, "username password-file database key-file",
	"make the first administrator; on an installed system all first steps",
	"setup [--username NAME] [--password-file FILE] [--database URL|local]"},
    {"status", 1, 1, tables_command, "*",
	"what runs, and how much of it",
	"status"},
    {"dashboard", 1, 1, tables_command, "*",
	"figures of the last hours",
	"dashboard [--period 1h|6h|24h|7d]"},
    {"health", 1, 1, tables_command, "*",
	"does everything answer that a call needs?",
	"health"},
    {"doctor", 1, 1, doctor_command, "key-file",
	"what confines the processes, and what is missing",
	"doctor"},
    {"help", 1, 3, help_command, "",
	"this list, or more about one command",
	"help [COMMAND [WORD]]"},
    {NULL, 0, 0, NULL, NULL, "Review", NULL},
    {"approvals", 2, 4, approvals_command, "* all hash reason key",
	"read, approve and reject what waits for a person",
	"approvals review [--kind KIND] [--search TEXT] [--server ID] [--tool NAME]\n"
	"approvals list [--all | --state STATE] [--kind KIND] [--search TEXT] [--server ID] [--tool NAME]\n"
	"approvals show ID\n"
	"approvals diff ID\n"
	"approvals approve ID --hash HEX\n"
	"approvals reject ID --reason TEXT\n"
	"approvals revoke ID --reason TEXT\n"
	"approvals bulk approve|reject [--reason TEXT] (lines of ID HASH on standard input)\n"
	"approvals comments ID\n"
	"approvals comment ID TEXT"},
    {"policies", 1, 6, policies_command, "*",
	"how many persons must say yes",
	"policies\n"
	"policies set strict|balanced|permissive [days=N]\n"
	"policies set tool=MODE module=MODE network=MODE [days=N]"},
    {NULL, 0, 0, NULL, NULL, "Servers and their tools", NULL},
    {"servers", 1, 3 + LIMIT_COUNT, lives_command, "* hash reason key",
	"servers: list, make, stop, limit",
	"servers [SERVER]\n"
	"servers create NAME [TEXT]\n"
	"servers describe SERVER TEXT\n"
	"servers start SERVER\n"
	"servers stop SERVER [REASON]\n"
	"servers delete SERVER\n"
	"servers limits NAME [LIMIT=VALUE ...]\n"
	"servers expose NAME prefixed|bare"},
    {"tools", 1, 5, lives_command, "* hash reason key",
	"tools, prompts and resources: list, compare, disable",
	"tools [TOOL]\n"
	"tools describe TOOL [name=...] [title=...] [description=...]\n"
	"tools enable TOOL\n"
	"tools disable TOOL [REASON]\n"
	"tools delete TOOL\n"
	"tools versions TOOL\n"
	"tools version TOOL N\n"
	"tools diff TOOL N N\n"
	"tools rollback TOOL N\n"
	"tools prune TOOL [KEEP]"},
    {"secret", 3, 5, secret_command, "* key",
	"values that tools get and nobody reads",
	"secret list SERVER\n"
	"secret show SERVER KEY\n"
	"secret create SERVER KEY [DESCRIPTION]\n"
	"secret describe SERVER KEY TEXT\n"
	"secret set SERVER KEY (the value on standard input)\n"
	"secret delete SERVER KEY"},
    {"modules", 1, 7, modules_command, "* key",
	"packages that tools may import",
	"modules\n"
	"modules installs\n"
	"modules add NAME VERSION DIGEST [FILES BYTES]\n"
	"modules withdraw NAME VERSION\n"
	"modules grant TOOL NAME[==VERSION]\n"
	"modules revoke TOOL NAME[==VERSION]"},
    {"sources", 1, 203, lives_command, "* hash reason key",
	"other MCP servers whose tools are taken over",
	"sources [SERVER]\n"
	"sources add SERVER NAME URL [auth_type=... auth_secret_name=... auth_header_name=... transport_type=... oauth_issuer=... oauth_scope=... oauth_client_id=... oauth_hosts=...]\n"
	"sources show ID\n"
	"sources discover ID\n"
	"sources import ID NAME ...\n"
	"sources authorise ID REDIRECT_URI\n"
	"sources delete ID"},
    {"openapi", 3, 54, openapi_command, "* key",
	"tools made of an OpenAPI document",
	"openapi SERVER FILE [base_url=URL] [OPERATION ...]"},
    {NULL, 0, 0, NULL, NULL, "Who may come in, and how much", NULL},
    {"tokens", 1, 8, tokens_command, "* reason key set",
	"API tokens of clients from elsewhere",
	"tokens\n"
	"tokens list [--state active|expired|revoked]\n"
	"tokens show TOKEN\n"
	"tokens create NAME [scopes=...] [listeners=...] [allow=...] [deny=...] [expires=DAYSd|never]\n"
	"tokens create NAME --set SET [listeners=...] [expires=DAYSd|never]\n"
	"tokens revoke TOKEN [REASON]"},
    {"keys", 1, 4, script_keys_command, "* reason key scopes days",
	"keys of scripts for the REST API",
	"keys\n"
	"keys list\n"
	"keys create NAME --scopes read,metrics,operate,export [--days N]\n"
	"keys revoke NAME [REASON]"},
    {"access", 1, 3, access_command, "yes",
	"who may come in with a signed token of which issuer",
	"access show\n"
	"access set FILE [--yes]\n"
	"access refresh [ISSUER]"},
    {"endpoints", 1, 1, tables_command, "*",
	"parts of the catalogue with an address of their own (docs/ACCESS.md)",
	"endpoints"},
    {"notifications", 1, 3, notifications_command, "*",
	"who is told that requests wait (docs/ACCESS.md)",
	"notifications\n"
	"notifications test TARGET"},
    {"identities", 1, 3, identities_command, "* reason key",
	"people who came in with a signed token",
	"identities\n"
	"identities list [--issuer NAME] [--state active|withdrawn]\n"
	"identities withdraw PRINCIPAL [--reason TEXT]\n"
	"identities restore PRINCIPAL"},
    {"remote", 1, 4, remote_command,
	"issuer resource email sub set scopes allow jwks discovery key-hosts "
	"team aud out proxy from token ca yes",
	"ways in from outside: set up, tried, taken away",
	"remote\n"
	"remote list\n"
	"remote show NAME\n"
	"remote add oidc NAME --issuer URL --resource URL --email LIST|--sub LIST --jwks FILE|--discovery [--key-hosts LIST] [--set NAME] [--scopes LIST] [--allow LIST] [--out DIR] [--proxy WORD] [--yes]\n"
	"remote add worker NAME --issuer URL --resource URL --email LIST|--sub LIST [--set NAME] [--out DIR] [--yes]\n"
	"remote add access NAME --team NAME --aud TAG --resource URL --email LIST|--sub LIST [--jwks FILE] [--key-hosts LIST] [--set NAME] [--out DIR] [--yes]\n"
	"remote add token NAME --resource URL [--scopes LIST] [--allow LIST] [--out DIR] [--proxy WORD]\n"
	"remote add tailscale NAME --resource URL [--issuer URL ...] [--scopes LIST] [--allow LIST] [--out DIR]\n"
	"remote check NAME [--from HOST:PORT] [--token FILE] [--ca FILE]\n"
	"remote remove NAME [--yes]"},
    {"administrators", 1, 4, administrators_command, "* role password-file",
	"people who may log in",
	"administrators [NAME]\n"
	"administrators create NAME --role ROLE [--password-file FILE]\n"
	"administrators role NAME ROLE\n"
	"administrators password NAME [--password-file FILE]\n"
	"administrators delete NAME\n"
	"administrators device NAME"},
    {"logins", 1, 3, administrators_command, "* username",
	"who is logged in",
	"logins [--username NAME]\n"
	"logins end ID\n"
	"logins end --username NAME"},
    {"passkeys", 2, 4, passkeys_command, "* role all",
	"a person's second factors",
	"passkeys NAME\n"
	"passkeys remove NAME ID|--all\n"
	"passkeys code NAME@ISSUER --role ROLE"},
    {"rates", 1, 6, rates_command, "* key",
	"limits of calls a minute",
	"rates\n"
	"rates set listener|principal|tool SUBJECT PER_MINUTE [BURST]\n"
	"rates remove listener|principal|tool SUBJECT"},
    {"breakers", 1, 2, breakers_command, "* key",
	"what is refused for a while because it failed",
	"breakers\n"
	"breakers reset"},
    {"settings", 1, 4, settings_command, "* hash key",
	"what holds for all and changes while all runs",
	"settings [KEY]\n"
	"settings set KEY VALUE\n"
	"settings reset KEY"},
    {NULL, 0, 0, NULL, NULL, "What happened", NULL},
    {"executions", 1, 16, executions_command, "*",
	"calls that ran",
	"executions [ID]\n"
	"executions FILTER=VALUE ...\n"
	"executions export [FILTER=VALUE ...]\n"
	"executions stats [FILTER=VALUE ...]"},
    {"activity", 1, 16, activity_command, "*",
	"what was refused, came and went; live with tail",
	"activity [FILTER=VALUE ...]\n"
	"activity tail"},
    {"audit", 1, 16, audit_command, "* journal",
	"who changed what, and the proof of it",
	"audit [FILTER=VALUE ...]\n"
	"audit export [FILTER=VALUE ...]\n"
	"audit verify [--journal FILE]"},
    {NULL, 0, 0, NULL, NULL, "Backups, keys, and moving", NULL},
    {"backup", 2, 2, backup_command, "key-file",
	"the database, as a file",
	"backup FILE"},
    {"restore", 2, 2, restore_command, "key-file leave-unreadable",
	"the database, from such a file",
	"restore FILE [--leave-unreadable] [--key-file FILE]"},
    {"key", 2, 3, keys_command, "leave-unreadable key-file batch",
	"the master key: rotate, verify, copy",
	"key status\n"
	"key rotate [--leave-unreadable] [--key-file FILE] [--batch N]\n"
	"key verify [--batch N] [--key-file FILE]\n"
	"key export FILE [--key-file FILE]\n"
	"key import FILE [--key-file FILE]"},
    {"export", 1, 1001, export_command, "* transfer-key",
	"servers, as a sealed text",
	"export [SERVER ...] [--transfer-key FILE] (to standard output)"},
    {"import", 2, 2, import_command, "transfer-key key",
	"servers, from such a text, as drafts",
	"import FILE [--transfer-key FILE]"},
    {"transfer-key", 2, 2, transfer_key_command, "",
	"a key for exports between two installations",
	"transfer-key FILE"},
    {NULL, 0, 0, NULL, NULL, "Anything else", NULL},
    {"call", 1, 64, call_command, "hash key",
	"any action of the admin API",
	"call [ACTION [ID] [name=value ...] [--hash HEX] [--key KEY]]"},
    {"query", 2, 3, query_command, "*",
	"any question of the admin API",
	"query WHAT [ID]"},
};
/* clang-format on */

enum { NCOMMANDS = sizeof(commands) / sizeof(commands[0]), WORD_MAX = 32 };

const struct command *
commands_find(const char *word)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (commands[i].word != NULL &&
		    strcmp(word, commands[i].word) == 0)
			return &commands[i];
	return NULL;
}

/* Returns the first form (line) of a usage text, or NULL if the text is empty.
 * *n: the length of the form. */
static const char *
form(const char *usage, size_t *n)
{
	if (*usage == '\0')
		return NULL;
	*n = strcspn(usage, "\n");
	return usage;
}

static const char *
rest(const char *usage, size_t n)
{
	return usage + n + (usage[n] == '\n');
}

/* Returns the second word of a form. *n: the length of that word, or 0 if the
 * word is a placeholder. */
static const char *
verb_of(const struct command *cmd, const char *usage, size_t *n)
{
	const char *v = usage + strlen(cmd->word);

	v += *v == ' ';
	*n = strspn(v, "abcdefghijklmnopqrstuvwxyz-");
	if (v[*n] != ' ' && v[*n] != '\n' && v[*n] != '\0')
		*n = 0;
	return v;
}

static bool
is_verb(const char *v, size_t n, const char *verb)
{
	return n > 0 && verb != NULL && strlen(verb) == n &&
	    memcmp(v, verb, n) == 0;
}

void
commands_usage(FILE *to, const struct command *cmd, const char *verb)
{
	const char *u, *v, *head = "usage: ";
	bool one = false;
	size_t n, nv;

	for (u = cmd->usage; (u = form(u, &n)) != NULL; u = rest(u, n)) {
		v = verb_of(cmd, u, &nv);
		one = one || is_verb(v, nv, verb);
	}
	for (u = cmd->usage; (u = form(u, &n)) != NULL; u = rest(u, n)) {
		v = verb_of(cmd, u, &nv);
		if (one && !is_verb(v, nv, verb))
			continue;
		fprintf(to, "%smcpboxctl %.*s\n", head, (int)n, u);
		head = "       ";
	}
}

void
commands_all(FILE *to)
{
	fputs("usage: mcpboxctl [--run-dir DIR | -f FILE] [--json] COMMAND\n",
	    to);
	for (size_t i = 0; i < NCOMMANDS; i++) {
		const char *u;
		size_t n;

		if (commands[i].word == NULL)
			continue;
		for (u = commands[i].usage; (u = form(u, &n)) != NULL;
		    u = rest(u, n))
			fprintf(to, "       mcpboxctl %.*s\n", (int)n, u);
	}
	fputs("\nOptions:\n", to);
	options_help(to, NULL);
	fputs(
	    "\nmcpboxctl help lists the commands by what they are for.\n", to);
}

static void
help_one(const struct command *cmd, const char *verb)
{
	printf("%s: %s\n\n", cmd->word, cmd->line);
	commands_usage(stdout, cmd, verb);
	fputs("\nOptions:\n", stdout);
	options_help(stdout, cmd);
	puts("\nmcpboxctl(1) says all of it.");
}

void
commands_help(const struct command *cmd)
{
	if (cmd != NULL) {
		help_one(cmd, NULL);
		return;
	}
	puts("usage: mcpboxctl [--run-dir DIR | -f FILE] [--json] COMMAND");
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (commands[i].word == NULL)
			printf("\n%s\n", commands[i].line);
		else
			printf(
			    "  %-15s %s\n", commands[i].word, commands[i].line);
	puts("\nmcpboxctl help COMMAND says more, mcpboxctl(1) all.");
}

static enum ctl_status
help_command(const struct ctl *c)
{
	const struct command *cmd;

	if (c->nwords == 1) {
		commands_help(NULL);
		return CTL_DONE;
	}
	if ((cmd = commands_find(c->words[1])) == NULL) {
		commands_unknown(c->words[1]);
		return CTL_USAGE;
	}
	help_one(cmd, c->nwords == 3 ? c->words[2] : NULL);
	return CTL_DONE;
}

/* Returns how many letters must be added, removed, changed or swapped with the
 * next letter to turn a into b. WORD_MAX if a or b is too long. */
static size_t
distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];

	if (na >= WORD_MAX || nb >= WORD_MAX)
		return WORD_MAX;
	for (size_t i = 0; i <= na; i++)
		for (size_t j = 0; j <= nb; j++) {
			size_t best;

			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	return d[na][nb];
}

/* Tells whether a word at distance d from a name of n letters is probably a
 * misspelling of that name. */
static bool
near(size_t d, size_t n)
{
	return d > 0 && d <= 1 + n / 4;
}

static void
complain(const char *what, const char *word)
{
	struct buf b;

	buf_init(&b, 64 * 1024);
	show_text(&b, word, strlen(word), SHOW_LINE);
	fprintf(stderr, "mcpboxctl: there is no %s %.*s", what, (int)b.len,
	    b.p != NULL ? (const char *)b.p : "");
	buf_free(&b);
}

void
commands_unknown(const char *word)
{
	const struct command *nearest = NULL;
	size_t best = WORD_MAX, d;

	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (commands[i].word == NULL)
			continue;
		d = distance(word, strlen(word), commands[i].word,
		    strlen(commands[i].word));
		if (d < best) {
			best = d;
			nearest = &commands[i];
		}
	}
	complain("command", word);
	if (nearest != NULL && near(best, strlen(nearest->word)))
		fprintf(stderr, "; did you mean %s?\n", nearest->word);
	else
		fputs("; mcpboxctl help lists them\n", stderr);
}

void
commands_unknown_verb(const struct command *cmd, const char *verb)
{
	const char *u, *v, *nearest = NULL;
	size_t n, nv, len = 0, best = WORD_MAX, d;

	for (u = cmd->usage; (u = form(u, &n)) != NULL; u = rest(u, n)) {
		v = verb_of(cmd, u, &nv);
		if (nv == 0)
			continue;
		d = distance(verb, strlen(verb), v, nv);
		if (d < best) {
			best = d;
			nearest = v;
			len = nv;
		}
	}
	if (nearest == NULL || !near(best, len))
		return;
	complain(cmd->word, verb);
	fprintf(stderr, "; did you mean %.*s?\n", (int)len, nearest);
}
