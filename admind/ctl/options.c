#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "options.h"
#include "script_key.h"

enum kind { TEXT, FLAG, NUMBER, DAYS, OWN };

#define AT(member) offsetof(struct ctl, member)

/* value: the name of the option's value, for help. global: every command takes
 * the option. */
static const struct {
	const char *name, *value, *doc;
	size_t at;
	enum kind kind;
	bool global;
} table[] = {
    {"json", NULL, "JSON instead of tables", AT(json), FLAG, true},
    {"run-dir", "DIR", "where the daemons' sockets are", AT(run_dir), TEXT,
	true},
    {"help", NULL, "says what a command takes", 0, OWN, true},
    {"version", NULL, "says the version", 0, OWN, true},
    {"all", NULL, "decided requests, too; all passkeys", AT(all), FLAG, false},
    {"state", "STATE", "of a list: only rows in this state", AT(state), TEXT,
	false},
    {"kind", "KIND", "of a list: only rows of this kind", AT(kind), TEXT,
	false},
    {"limit", "N", "of a list: rows of a page, 1 to 200", AT(limit), NUMBER,
	false},
    {"cursor", "CURSOR", "of a list: the next page, as the last one ends",
	AT(cursor), TEXT, false},
    {"hash", "HEX", "what was read: refused if it is another by now", AT(hash),
	TEXT, false},
    {"reason", "TEXT", "why", AT(reason), TEXT, false},
    {"key", "KEY", "the same key again repeats nothing (Idempotency-Key)",
	AT(key), TEXT, false},
    {"username", "NAME", "an administrator's name", AT(username), TEXT, false},
    {"password-file", "FILE", "the password, instead of asking for it",
	AT(password_file), TEXT, false},
    {"set", "NAME", "a permission set of the access document", AT(set), TEXT,
	false},
    {"role", "ROLE", "administrator, reviewer or viewer", AT(role), TEXT,
	false},
    {"database", "URL", "a PostgreSQL elsewhere, or local", AT(database), TEXT,
	false},
    {"journal", "FILE",
	"lines of the journal to compare with, - for standard "
	"input",
	AT(journal), TEXT, false},
    {"key-file", "FILE", "the master key's file", AT(key_file), TEXT, false},
    {"leave-unreadable", NULL, "although values are there that no key opens",
	AT(leave_unreadable), FLAG, false},
    {"batch", "N", "values of one step, 1 to 200", AT(batch), NUMBER, false},
    {"yes", NULL, "without asking", AT(yes), FLAG, false},
    {"transfer-key", "FILE", "a key that two installations share",
	AT(transfer_key), TEXT, false},
    {"resource", "URL", "the address of /mcp as clients know it",
	AT(remote.resource), TEXT, false},
    {"email", "LIST", "addresses of those who may come in", AT(remote.email),
	TEXT, false},
    {"sub", "LIST", "their subjects (claim sub)", AT(remote.sub), TEXT, false},
    {"scopes", "LIST", "of the new set, token or key", AT(remote.scopes), TEXT,
	false},
    {"days", "N", "of the new key's life, 1 to 365", AT(days), DAYS, false},
    {"allow", "LIST", "patterns of tools of the new set or token",
	AT(remote.allow), TEXT, false},
    {"jwks", "FILE", "the issuer's public keys", AT(remote.jwks), TEXT, false},
    {"discovery", NULL, "keys from where the issuer's metadata says",
	AT(remote.discovery), FLAG, false},
    {"key-hosts", "LIST", "further hosts where the issuer's keys may be",
	AT(remote.key_hosts), TEXT, false},
    {"team", "NAME", "of Cloudflare Access", AT(remote.team), TEXT, false},
    {"aud", "TAG", "the Access application's AUD tag", AT(remote.aud), TEXT,
	false},
    {"out", "DIR", "where the proxy's files are written", AT(remote.out), TEXT,
	false},
    {"proxy", "WORD", "nginx, caddy or cloudflared", AT(remote.proxy), TEXT,
	false},
    {"from", "HOST:PORT", "connect there instead, under the same name",
	AT(remote.from), TEXT, false},
    {"token", "FILE", "a token for a real call", AT(remote.token), TEXT, false},
    {"ca", "FILE", "certificates that are trusted, instead of the system's",
	AT(remote.ca), TEXT, false},
};

enum {
	NTABLE = sizeof(table) / sizeof(table[0]),
	NOPTIONS = NTABLE + ADMIN_FILTER_COUNT,
	FIRST = 256 /* getopt's number of the table's first row */
};
_Static_assert(NOPTIONS <= 64, "a bit each");

/* Tells whether a filter adds an option: kind and state do not, since they are
 * in the table already. */
static bool
is_filter(int i)
{
	return i != ADMIN_FILTER_KIND && i != ADMIN_FILTER_STATE;
}

static const char *
name_of(int o)
{
	return o < NTABLE ? table[o].name
			  : admin_filter_name((enum admin_filter)(o - NTABLE));
}

/* True for the options of lists, which "*" in a command's options means. */
static bool
of_lists(int o)
{
	static const char *const names[] = {"state", "kind", "limit", "cursor"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name_of(o), names[i]) == 0)
			return true;
	return o >= NTABLE;
}

static bool
takes(const struct command *cmd, int o)
{
	const char *name = name_of(o), *p = cmd->options;
	size_t n;

	if (o < NTABLE && table[o].global)
		return true;
	for (; *p != '\0'; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (n == 1 && *p == '*' && of_lists(o))
			return true;
		if (n == strlen(name) && memcmp(p, name, n) == 0)
			return true;
	}
	return false;
}

static void
complain(struct options *given, const char *before, const char *word,
    const char *after)
{
	struct buf b;

	buf_init(&b, 64 * 1024);
	show_text(&b, word, strlen(word), SHOW_LINE);
	fprintf(stderr, "mcpboxctl: %s%.*s%s\n", before, (int)b.len,
	    b.p != NULL ? (const char *)b.p : "", after);
	buf_free(&b);
	given->wrong = true;
}

static void
number(struct options *given, const char *name, const char *s,
    unsigned long most, uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (*s < '0' || *s > '9' || *end != '\0' || v < 1 || v > most)
		complain(given, "--", name,
		    most == CTL_LIMIT_MAX ? " is from 1 to 200"
					  : " is from 1 to 365");
	else
		*out = (uint32_t)v;
}
_Static_assert(CTL_LIMIT_MAX == 200 && SCRIPT_KEY_DAYS_MAX == 365,
    "as help and errors say");

static void
take(struct ctl *c, struct options *given, int o, const char *value)
{
	void *at;

	given->given |= UINT64_C(1) << o;
	if (o >= NTABLE) {
		c->filter[o - NTABLE] = value;
		return;
	}
	at = (char *)c + table[o].at;
	switch (table[o].kind) {
	case TEXT:
		*(const char **)at = value;
		break;
	case FLAG:
		*(bool *)at = true;
		break;
	case NUMBER:
		number(given, table[o].name, value, CTL_LIMIT_MAX, at);
		break;
	case DAYS:
		number(given, table[o].name, value, SCRIPT_KEY_DAYS_MAX, at);
		break;
	case OWN:
		if (table[o].name[0] == 'h')
			given->help = true;
		else
			given->version = true;
	}
}

void
options_read(struct ctl *c, struct options *given, int argc, char **argv)
{
	struct option options[NOPTIONS + 1] = {0};
	struct option *next = options;
	int o;

	memset(given, 0, sizeof(*given));
	for (int i = 0; i < NOPTIONS; i++)
		if (i < NTABLE || is_filter(i - NTABLE))
			*next++ = (struct option){name_of(i),
			    i < NTABLE && table[i].value == NULL
				? no_argument
				: required_argument,
			    NULL, FIRST + i};
	opterr = 0;
	while ((o = getopt_long(argc, argv, ":f:hV", options, NULL)) != -1)
		switch (o) {
		case 'f':
			given->file = optarg;
			break;
		case 'h':
			given->help = true;
			break;
		case 'V':
			given->version = true;
			break;
		case ':':
			complain(given, "", argv[optind - 1], " needs a value");
			break;
		default:
			if (o >= FIRST)
				take(c, given, o - FIRST, optarg);
			else if (optopt >= FIRST)
				complain(given, "", argv[optind - 1],
				    ": that option takes no value");
			else if (optopt != 0)
				complain(given, "there is no option -",
				    (char[2]){(char)optopt, '\0'}, "");
			else
				complain(given, "there is no option ",
				    argv[optind - 1], "");
		}
	c->words = argv + optind;
	c->nwords = argc - optind;
}

bool
options_refused(const struct options *given, const struct command *cmd)
{
	bool refused = false;

	for (int o = 0; o < NOPTIONS; o++)
		if ((given->given & UINT64_C(1) << o) != 0 && !takes(cmd, o)) {
			fprintf(stderr, "mcpboxctl: %s takes no --%s\n",
			    cmd->word, name_of(o));
			refused = true;
		}
	return refused;
}

static void
help_row(FILE *to, const char *name, const char *value, const char *doc)
{
	char left[64];

	snprintf(
	    left, sizeof(left), "--%s %s", name, value != NULL ? value : "");
	fprintf(to, "  %-22s %s\n", left, doc);
}

void
options_help(FILE *to, const struct command *cmd)
{
	for (int o = 0; o < NTABLE; o++)
		if (cmd == NULL || takes(cmd, o))
			help_row(
			    to, table[o].name, table[o].value, table[o].doc);
	fprintf(to, "  %-22s %s\n", "-f FILE",
	    "settings, instead of those of the installed system");
	if (cmd != NULL && !takes(cmd, NTABLE + ADMIN_FILTER_SERVER))
		return;
	fputs("  filters of lists:", to);
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		if (is_filter(i))
			fprintf(to, " --%s",
			    admin_filter_name((enum admin_filter)i));
	fputc('\n', to);
}
