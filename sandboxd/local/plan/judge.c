/*
 * Refuses the folders that no program may get.
 *
 * Three reasons. The folder has secrets, or is in a folder that has: the table
 * of protected paths. It has the rights of the machine: sockets in /run, the
 * devices, /proc and /sys. Or others may exchange it while the program runs:
 * then another local user decides about the content that is mounted.
 *
 * An ancestor of a protected path is refused like the path itself, because a
 * mount shows all below it. So the home folder and "/" need no row of their
 * own, and have one for a better sentence. A protected path that is a symbolic
 * link protects the place to which it leads as well.
 *
 * This is judged for clear errors, and it bounds a mistake of the user. It does
 * not bound the program, which sees mounts and nothing else. Read-only folders
 * are judged alike: a secret that is read is lost.
 */
#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"

/* Below each home folder. A file is protected with all below it. */
static const char *const of_home[] = {
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".config/gh",
    ".config/gcloud",
    ".config/mcpbox",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
};

/* The machine's, and mcpbox's own. */
static const char *const of_machine[] = {
    "/etc/gshadow",
    "/etc/mcpbox",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/root",
    "/run/secrets",
    "/var/lib/mcpbox",
    "/var/run",
};

/* Trees in which each file is a way to something else. */
static const char *const trees[] = {"/dev", "/proc", "/run", "/sys", "/boot"};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

bool
judge_within(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(path, dir, n) == 0 &&
	    (path[n] == '\0' || path[n] == '/');
}

static int
refuse(const char *path, const char *secret, struct err *e)
{
	if (judge_within(path, secret))
		return err_set(e, FAILURE_FORBIDDEN,
		    "%.256s is protected: copy what the program needs to "
		    "another folder",
		    path);
	return err_set(e, FAILURE_FORBIDDEN,
	    "%.256s has the protected %.256s in it: name a folder further down",
	    path, secret);
}

/* Refuses a path that is, has or is in the protected one, as it is named or as
 * it resolves. */
static int
one(const char *path, const char *secret, struct err *e)
{
	char *real;
	int rc = 0;

	if (judge_within(path, secret) || judge_within(secret, path))
		return refuse(path, secret, e);
	if ((real = realpath(secret, NULL)) == NULL)
		return 0;
	if (judge_within(path, real) || judge_within(real, path))
		rc = refuse(path, real, e);
	free(real);
	return rc;
}

static int
protected_paths(const struct plan *p, const char *path, struct err *e)
{
	char secret[PLAN_PATH_MAX];

	for (size_t h = 0; h < LENGTH(p->homes); h++)
		for (size_t i = 0; p->homes[h] != NULL && i < LENGTH(of_home);
		    i++) {
			if (snprintf(secret, sizeof(secret), "%s/%s",
				p->homes[h], of_home[i]) >= (int)sizeof(secret))
				return err_set(e, FAILURE_TOO_LARGE,
				    "the path of HOME is too long: set HOME");
			if (one(path, secret, e) == -1)
				return -1;
		}
	for (size_t i = 0; i < LENGTH(of_machine); i++)
		if (one(path, of_machine[i], e) == -1)
			return -1;
	return 0;
}

/*
 * Refuses a folder that others can exchange: one that all may write to, or with
 * such an ancestor. The sticky bit keeps others from renaming, so a folder in
 * /tmp is allowed; /tmp itself is not, because files of others are in it.
 */
static int
others(const char *path, struct err *e)
{
	char part[PLAN_PATH_MAX];
	struct stat st;
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return err_set(e, FAILURE_TOO_LARGE,
		    "the path is too long: use a shorter one");
	memcpy(part, path, n + 1);
	for (;;) {
		if (lstat(part, &st) == -1)
			return err_sys(e, FAILURE_NOT_FOUND, "%.256s", part);
		if ((st.st_mode & S_IWOTH) != 0 &&
		    ((st.st_mode & S_ISVTX) == 0 || n == strlen(path)))
			return err_set(e, FAILURE_FORBIDDEN,
			    "all users may write to %.256s: use a folder of "
			    "your own, or chmod o-w",
			    part);
		while (n > 1 && part[n - 1] != '/')
			n--;
		if (n <= 1)
			return 0;
		part[--n] = '\0';
	}
}

int
judge_folder(const struct plan *p, const char *path, struct err *e)
{
	if (strcmp(path, "/") == 0)
		return err_set(e, FAILURE_FORBIDDEN,
		    "/ is the whole machine: use the folder of your project");
	for (size_t h = 0; h < LENGTH(p->homes); h++)
		if (p->homes[h] != NULL && judge_within(p->homes[h], path))
			return err_set(e, FAILURE_FORBIDDEN,
			    "%.256s is your home folder or has it in it: use a "
			    "folder in it",
			    path);
	if (strcmp(path, "/home") == 0)
		return err_set(e, FAILURE_FORBIDDEN,
		    "/home has the home folders of all users: use a folder in "
		    "yours");
	for (size_t i = 0; i < LENGTH(trees); i++)
		if (judge_within(path, trees[i]))
			return err_set(e, FAILURE_FORBIDDEN,
			    "%.256s is in %s, which belongs to the system: use "
			    "a folder of your own",
			    path, trees[i]);
	if (protected_paths(p, path, e) == -1)
		return -1;
	return others(path, e);
}

int
judge_file(const struct plan *p, const char *path, struct err *e)
{
	return protected_paths(p, path, e);
}
