/*
 * conf-default PROCESS TITLE [FILE]: prints the configuration file that a
 * package installs as /etc/mcpbox/TITLE.conf: every setting of the process with
 * its text, range and unit, as a comment that holds its default. FILE has the
 * lines that the package sets. The daemons' own parser checks them, so a wrong
 * line stops the build. The settings come from the parser's own table
 * (conf_keys.def).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "conf.h"
#include "conf_amount.h"

struct key {
	const char *process, *name;
	enum conf_type type;
	const char *fallback;
	int64_t min, max;
	const char *unit, *text;
};

static const struct key keys[] = {
#define K(process, name, type, fallback, min, max, unit, text) \
	{process, #name, CONF_##type, fallback, min, max, unit, text},
#include "conf_keys.def"
#undef K
};

enum {
	NKEYS = sizeof(keys) / sizeof(keys[0]),
	WIDTH = 78,           /* columns of a comment */
	LINES_MAX = 64 * 1024 /* far above a package's settings */
};

static char lines[LINES_MAX + 1]; /* the text of FILE */

static _Noreturn void
die(const char *what, const char *text)
{
	fprintf(stderr, "conf-default: %s: %s\n", what, text);
	exit(1);
}

static size_t
read_lines(const char *path)
{
	FILE *f;
	size_t n;

	if ((f = fopen(path, "r")) == NULL)
		die(path, "cannot be opened");
	n = fread(lines, 1, LINES_MAX, f);
	if (ferror(f) || n == LINES_MAX)
		die(path, "cannot be read");
	(void)fclose(f);
	return n;
}

/* Returns the value that FILE gives this setting, of length *n, or NULL. */
static const char *
value_of(const char *name, size_t *n)
{
	size_t len = strlen(name);
	const char *s, *end;

	for (s = lines; *s != '\0'; s = *end == '\0' ? end : end + 1) {
		end = strchrnul(s, '\n');
		if (strncmp(s, name, len) == 0 && s[len] == ' ') {
			s += len + 1;
			*n = (size_t)(end - s);
			return s;
		}
	}
	return NULL;
}

/* Prints words as a comment, in lines of at most WIDTH where they can be
 * broken. */
static void
comment(const char *s)
{
	int column = 1;
	size_t n;

	putchar('#');
	while (*s != '\0') {
		n = strcspn(s, " ");
		if (column > 1 && column + 1 + (int)n > WIDTH) {
			printf("\n#");
			column = 1;
		}
		printf(" %.*s", (int)n, s);
		column += 1 + (int)n;
		s += n + strspn(s + n, " ");
	}
	putchar('\n');
}

/* Prints the allowed values, in addition to the setting's text. */
static void
range(const struct key *k)
{
	static const char *const forms[] = {"Text.", "An absolute path.",
	    "yes or no.", "A number", "A size: a number, or one with K, M or G",
	    "A time: a number with ms, s, m or h", "A user's name or number.",
	    "ADDRESS:PORT.", "Text. What a .local file says is added to it."};
	char s[256], amounts[128];

	if (k->type == CONF_STRING && k->unit[0] != '\0')
		snprintf(s, sizeof(s), "One of %s.", k->unit);
	else if (k->type == CONF_INT || k->type == CONF_SIZE ||
	    k->type == CONF_DURATION) {
		conf_amount_range(
		    k->type, k->min, k->max, k->unit, amounts, sizeof(amounts));
		snprintf(s, sizeof(s), "%s; %s.", forms[k->type], amounts);
	} else
		snprintf(s, sizeof(s), "%s", forms[k->type]);
	comment(s);
}

static void
setting(const struct key *k)
{
	const char *value;
	size_t n = 0;

	putchar('\n');
	comment(k->text);
	range(k);
	value = value_of(k->name, &n);
	if (k->fallback[0] == '\0')
		printf("# Not set by default:\n#%s\n", k->name);
	else
		printf("#%s %s\n", k->name, k->fallback);
	if (value != NULL)
		printf("%s %.*s\n", k->name, (int)n, value);
}

int
main(int argc, char **argv)
{
	struct conf *c;
	struct err err;
	char text[256];

	if (argc != 3 && argc != 4)
		die("usage", "conf-default PROCESS TITLE [FILE]");
	if ((c = conf_new(argv[1])) == NULL)
		die(argv[1], "out of memory");
	if (argc == 4 &&
	    conf_parse(c, argv[3], (const uint8_t *)lines, read_lines(argv[3]),
		&err) == -1)
		die(argv[2], err.text);
	conf_free(c);
	printf("# %s.conf: see mcpbox.conf(5).\n#\n", argv[2]);
	comment("Lines that begin with # are comments; those below show each "
		"setting's default. A line is a keyword and its value; there "
		"is no comment behind a value.");
	snprintf(text, sizeof(text),
	    "Put your own lines into %s.conf.local beside this file: it is "
	    "read after this one, and no upgrade touches it.",
	    argv[2]);
	comment(text);
	for (size_t i = 0; i < NKEYS; i++)
		if (strcmp(keys[i].process, "*") == 0 ||
		    strcmp(keys[i].process, argv[1]) == 0)
			setting(&keys[i]);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
