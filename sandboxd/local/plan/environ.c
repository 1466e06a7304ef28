/*
 * The environment of the program: the variables below, and those that --env
 * names. A token in the caller's environment is not passed unless it is named.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"

/* Colours, sizes and the language. None is a secret, and none makes a program
 * load code. */
static const char *const passed[] = {"CLICOLOR", "COLORFGBG", "COLORTERM",
    "COLUMNS", "EDITOR", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES",
    "LS_COLORS", "NO_COLOR", "PAGER", "TERM", "TERM_PROGRAM", "TZ", "VISUAL"};

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

const char *
environ_get(const struct plan *p, const char *name)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < p->nenv; i++)
		if (strncmp(p->env[i], name, n) == 0 && p->env[i][n] == '=')
			return p->env[i] + n + 1;
	return NULL;
}

/* Sets a variable that is not set yet; takes word over. */
static int
add(struct plan *p, char *word, struct err *e)
{
	if (word == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	if (p->nenv == PLAN_ENV_MAX) {
		free(word);
		return err_set(e, FAILURE_TOO_LARGE,
		    "pass at most %d variables", PLAN_ENV_MAX);
	}
	p->env[p->nenv++] = word;
	return 0;
}

static int
put(struct plan *p, const char *name, const char *value, struct err *e)
{
	char *word;

	if (value == NULL || environ_get(p, name) != NULL)
		return 0;
	return add(
	    p, asprintf(&word, "%s=%s", name, value) == -1 ? NULL : word, e);
}

/* Drops the value that a profile set, so that the command line can set it. */
static void
drop(struct plan *p, const char *name)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < p->nenv; i++)
		if (strncmp(p->env[i], name, n) == 0 && p->env[i][n] == '=') {
			free(p->env[i]);
			p->env[i] = p->env[--p->nenv];
			p->env[p->nenv] = NULL;
			return;
		}
}

int
environ_add(struct plan *p, const char *word, struct err *e)
{
	const size_t n = strcspn(word, "=");
	const char *value = word[n] == '=' ? word + n + 1 : NULL;
	char name[128], *full;

	if (n == 0 || n >= sizeof(name) || isdigit((unsigned char)*word))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "--env %.64s: give NAME or NAME=VALUE", word);
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)word[i]) && word[i] != '_')
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "--env %.64s: a name has letters, digits and _",
			    word);
	memcpy(name, word, n);
	name[n] = '\0';
	if (strcmp(name, "HOME") == 0 || strcmp(name, "PWD") == 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "--env %s: mcpbox-run sets this variable itself", name);
	if (value == NULL && (value = getenv(name)) == NULL)
		return 0; /* as with sudo --preserve-env */
	drop(p, name);
	if (strncmp(value, "~/", 2) == 0)
		return add(p,
		    asprintf(&full, "%s=%s/%s", name, p->home, value + 2) == -1
			? NULL
			: full,
		    e);
	return put(p, name, value, e);
}

/* Keeps those folders of PATH that are there inside: a program can't be found
 * elsewhere, and the names of other folders are not the program's business. */
static char *
visible_path(const struct plan *p, const char *path)
{
	char *out = calloc(1, strlen(path) + sizeof(default_path) + 1);
	char part[PLAN_PATH_MAX];
	size_t n, used = 0;

	for (; out != NULL && *path != '\0'; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		if (*path != '/' || n >= sizeof(part))
			continue;
		memcpy(part, path, n);
		part[n] = '\0';
		if (!folders_show(p, part) || strstr(part, "/../") != NULL)
			continue;
		if (used > 0)
			out[used++] = ':';
		memcpy(out + used, part, n);
		used += n;
	}
	if (out != NULL && used == 0)
		memcpy(out, default_path, sizeof(default_path));
	return out;
}

int
environ_close(struct plan *p, struct err *e)
{
	const char *given = environ_get(p, "PATH");
	char *path = visible_path(p,
	    given != NULL        ? given
		: getenv("PATH") ? getenv("PATH")
				 : "");
	char name[64];
	size_t n;
	int rc = -1;

	if (path == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	drop(p, "PATH");
	if (put(p, "PATH", path, e) == -1)
		goto out;
	for (size_t i = 0; i < LENGTH(passed); i++)
		if (put(p, passed[i], getenv(passed[i]), e) == -1)
			goto out;
	for (char **v = environ; *v != NULL; v++) {
		n = strcspn(*v, "=");
		if (strncmp(*v, "LC_", 3) != 0 || n >= sizeof(name))
			continue;
		memcpy(name, *v, n);
		name[n] = '\0';
		if (put(p, name, *v + n + 1, e) == -1)
			goto out;
	}
	if (put(p, "HOME", p->home, e) == -1 ||
	    put(p, "USER", p->user, e) == -1 ||
	    put(p, "LOGNAME", p->user, e) == -1 ||
	    put(p, "SHELL", "/bin/sh", e) == -1 ||
	    put(p, "PWD", p->folder[0].path, e) == -1 ||
	    put(p, "MCPBOX_RUN", "1", e) == -1)
		goto out;
	rc = 0;
out:
	free(path);
	return rc;
}
