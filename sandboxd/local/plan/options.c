/*
 * Options, of the command line and of profiles. Each option is one row of the
 * table; --help prints the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

typedef int setter(struct plan *, const char *value, struct err *);

struct option {
	const char *name, *value; /* value NULL: an option without a value */
	setter *set;
	const char *help;
};

/* Reads a size: digits, then K, M, G or nothing. */
static int
read_size(const char *name, const char *text, uint64_t *out, struct err *e)
{
	static const char units[] = "KMG";
	unsigned long long n;
	const char *unit;
	unsigned shift = 0;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && errno == 0 && *end != '\0' &&
	    (unit = strchr(units, *end)) != NULL && end[1] == '\0') {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 ||
	    n == 0 || n > UINT64_MAX >> 1 >> shift)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "--%s %.64s: give a size such as 512M or 4G", name, text);
	*out = (uint64_t)n << shift;
	return 0;
}

static int
set_ro(struct plan *p, const char *v, struct err *e)
{
	return folders_add(p, v, false, false, e);
}

static int
set_ro_try(struct plan *p, const char *v, struct err *e)
{
	return folders_add(p, v, false, true, e);
}

static int
set_rw(struct plan *p, const char *v, struct err *e)
{
	return folders_add(p, v, true, false, e);
}

static int
set_home_file(struct plan *p, const char *v, struct err *e)
{
	return folders_file(p, v, e);
}

static int
set_env(struct plan *p, const char *v, struct err *e)
{
	return environ_add(p, v, e);
}

static int
set_net(struct plan *p, const char *v, struct err *e)
{
	return hosts_add(p, v, e);
}

static int
set_publish(struct plan *p, const char *v, struct err *e)
{
	return hosts_publish(p, v, e);
}

static int
set_memory(struct plan *p, const char *v, struct err *e)
{
	return read_size("memory", v, &p->memory, e);
}

static int
set_tmp(struct plan *p, const char *v, struct err *e)
{
	return read_size("tmp", v, &p->tmp, e);
}

static int
set_file_size(struct plan *p, const char *v, struct err *e)
{
	return read_size("file-size", v, &p->file_size, e);
}

static int
set_processes(struct plan *p, const char *v, struct err *e)
{
	return read_size("processes", v, &p->processes, e);
}

static int
set_hooks(struct plan *p, const char *v, struct err *e)
{
	(void)v;
	(void)e;
	p->hooks = true;
	return 0;
}

static int
set_explain(struct plan *p, const char *v, struct err *e)
{
	(void)v;
	(void)e;
	p->explain = true;
	return 0;
}

static int
set_json(struct plan *p, const char *v, struct err *e)
{
	(void)v;
	(void)e;
	p->json = true;
	return 0;
}

static const struct option options[] = {
    {"ro", "DIR", set_ro, "show this folder, read-only"},
    {"ro-try", "DIR", set_ro_try, "the same; no error if there is none"},
    {"rw", "DIR", set_rw, "show this folder, writable"},
    {"home-file", "FILE", set_home_file,
	"show this file of the home folder, read-only"},
    {"env", "NAME[=VALUE]", set_env, "pass this variable"},
    {"net", "HOST[:PORT]", set_net,
	"let it connect there by TCP; without PORT 80 and 443"},
    {"publish", "PORT", set_publish,
	"pass 127.0.0.1:PORT of this machine on to it"},
    {"memory", "SIZE", set_memory, "memory (512M, 4G); default: no limit"},
    {"processes", "N", set_processes,
	"processes and threads at once; default: 4096"},
    {"tmp", "SIZE", set_tmp, "size of /tmp and of HOME; default: 1G each"},
    {"file-size", "SIZE", set_file_size, "size of a file; default: no limit"},
    {"allow-hooks", NULL, set_hooks,
	"let it write .git/hooks, .vscode and their like"},
    {"profile", "FILE", profile_read,
	"options from a file, or from an installed profile"},
    {"explain", NULL, set_explain, "print what would hold; run nothing"},
    {"json", NULL, set_json, "the same, or the report at the end, as JSON"},
};

static void
help(void)
{
	char left[40];

	(void)printf("usage: mcpbox-run [options] PROGRAM [ARGUMENT]...\n\n"
		     "Runs a program confined to the current folder.\n\n");
	for (size_t i = 0; i < LENGTH(options); i++) {
		(void)snprintf(left, sizeof(left), "--%s%s%s", options[i].name,
		    options[i].value != NULL ? " " : "",
		    options[i].value != NULL ? options[i].value : "");
		(void)printf("  %-22s %s\n", left, options[i].help);
	}
	(void)printf("  %-22s %s\n  %-22s %s\n", "--help", "print this",
	    "--version", "print the version");
}

static const struct option *
find(const char *name, size_t n)
{
	for (size_t i = 0; i < LENGTH(options); i++)
		if (strlen(options[i].name) == n &&
		    memcmp(options[i].name, name, n) == 0)
			return &options[i];
	return NULL;
}

int
options_set(struct plan *p, const char *name, const char *value, struct err *e)
{
	const struct option *o = find(name, strlen(name));

	if (o == NULL)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "there is no option %.64s: mcpbox-run --help lists all",
		    name);
	if (o->value == NULL && value != NULL)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s takes no value: leave %.64s out", name, value);
	if (o->value != NULL && (value == NULL || *value == '\0'))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s needs a value: %s %s", name, name, o->value);
	return o->set(p, value, e);
}

int
options_read(struct plan *p, int argc, char **argv, struct err *e)
{
	const struct option *o;
	const char *name, *value;
	char word[32];
	size_t n;
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--help") == 0) {
			help();
			return 1;
		}
		if (strcmp(argv[i], "--version") == 0) {
			(void)printf("mcpbox-run %s\n", MCPBOX_VERSION);
			return 1;
		}
		name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
		n = strcspn(name, "=");
		if ((o = find(name, n)) == NULL)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "there is no option %.64s: mcpbox-run --help lists "
			    "all",
			    argv[i]);
		value = name[n] == '=' ? name + n + 1 : NULL;
		if (o->value != NULL && value == NULL && i + 1 < argc)
			value = argv[++i];
		(void)snprintf(word, sizeof(word), "%s", o->name);
		if (options_set(p, word, value, e) == -1)
			return -1;
	}
	if (i >= argc)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "name the program to run: mcpbox-run PROGRAM ARGUMENTS");
	p->argv = argv + i;
	return 0;
}
