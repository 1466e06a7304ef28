/*
 * The paths in a writable folder on which programs outside act: git runs hooks,
 * and commands that its configuration names; an editor runs tasks; direnv and
 * husky run a file. A program that could write them would run outside as soon
 * as the user works in the folder.
 *
 * A path that is there is mounted read-only over itself. A mount point can
 * neither be renamed nor removed. `.git` itself is mounted writable over
 * itself, because the program could otherwise rename it and put a copy, with
 * hooks, in its place.
 *
 * A path that is not there can't be mounted over. kept_settle looks for it at
 * the end and gives it another name. Until then the path is there. So a user
 * must not run git in the folder while a hostile program runs in it.
 *
 * This is done for the top of each writable folder, where programs look first.
 * A folder that is a git directory itself (named by --rw for a worktree) is
 * treated as a `.git`.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char *const tops[] = {
    ".devcontainer", ".envrc", ".husky", ".idea", ".mcp.json", ".vscode"};
/* commondir and config.worktree lead git to a configuration; modules has
 * the git directories of submodules. */
static const char *const of_git[] = {
    "commondir", "config", "config.worktree", "hooks", "modules"};

/* Names that kept_settle tries, in this order, before it gives up. */
enum { ASIDE_TRIES = 1000 };

static int
add(struct plan *p, const char *dir, const char *name, bool there,
    bool writable, struct err *e)
{
	struct plan_kept *k;
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) == -1)
		return err_set(e, FAILURE_BUSY, "no memory");
	for (size_t i = 0; i < p->nfolders; i++)
		if (strcmp(p->folder[i].path, path) == 0) {
			free(path); /* named by --rw or --ro: that counts */
			return 0;
		}
	if (p->nkept == PLAN_KEPT_MAX) {
		free(path);
		return err_set(e, FAILURE_TOO_LARGE, "name fewer folders");
	}
	k = &p->kept[p->nkept++];
	*k = (struct plan_kept){path, there, writable};
	return 0;
}

/* Judges one name of a folder. Sets *mode to 0 if it is absent. */
static int
look(const char *dir, const char *name, mode_t *mode, struct err *e)
{
	char path[PLAN_PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    (int)sizeof(path))
		return err_set(e, FAILURE_TOO_LARGE,
		    "the path is too long: use a shorter one");
	*mode = 0;
	if (lstat(path, &st) == -1) {
		if (errno == ENOENT)
			return 0;
		return err_sys(e, FAILURE_NOT_FOUND, "%.256s", path);
	}
	/* A link can't be mounted over, and the program could replace it. */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(e, FAILURE_FORBIDDEN,
		    "%.256s is a link, so it can't be guarded: make it a file "
		    "or folder, or give --allow-hooks",
		    path);
	*mode = st.st_mode;
	return 0;
}

static int
git(struct plan *p, const char *dir, struct err *e)
{
	mode_t mode = 0;

	for (size_t i = 0; i < LENGTH(of_git); i++)
		if (look(dir, of_git[i], &mode, e) == -1 ||
		    add(p, dir, of_git[i], mode != 0, false, e) == -1)
			return -1;
	return 0;
}

static int
folder(struct plan *p, const char *dir, struct err *e)
{
	mode_t mode = 0, objects = 0;
	char *inner;
	int rc;

	for (size_t i = 0; i < LENGTH(tops); i++)
		if (look(dir, tops[i], &mode, e) == -1 ||
		    add(p, dir, tops[i], mode != 0, false, e) == -1)
			return -1;
	if (look(dir, ".git", &mode, e) == -1)
		return -1;
	/* A .git that is a file leads to the git directory of a worktree. */
	if (add(p, dir, ".git", mode != 0, S_ISDIR(mode), e) == -1)
		return -1;
	if (S_ISDIR(mode)) {
		if (asprintf(&inner, "%s/.git", dir) == -1)
			return err_set(e, FAILURE_BUSY, "no memory");
		rc = git(p, inner, e);
		free(inner);
		if (rc == -1)
			return -1;
	}
	if (look(dir, "HEAD", &mode, e) == -1 ||
	    look(dir, "objects", &objects, e) == -1)
		return -1;
	return mode != 0 && objects != 0 ? git(p, dir, e) : 0;
}

int
kept_find(struct plan *p, struct err *e)
{
	if (p->hooks)
		return 0;
	for (size_t i = 0; i < p->nfolders; i++)
		if (p->folder[i].writable &&
		    folder(p, p->folder[i].path, e) == -1)
			return -1;
	return 0;
}

/* Opens the folder that a path is in, and sets *name to the last part. Follows
 * no link: the program may have put one in the place of a folder between. */
static int
open_parent(const char *path, const char **name)
{
	struct open_how how = {
	    .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_SYMLINKS,
	};
	char parent[PLAN_PATH_MAX];

	*name = strrchr(path, '/') + 1;
	(void)snprintf(
	    parent, sizeof(parent), "%.*s", (int)(*name - path), path);
	return (int)syscall(SYS_openat2, AT_FDCWD, parent, &how, sizeof(how));
}

/* Renames a path to a name that is free. 0, or -1 with errno. */
static int
set_aside(int parent, const char *name, char *aside, size_t size)
{
	for (unsigned t = 0; t < ASIDE_TRIES; t++) {
		(void)snprintf(aside, size,
		    t == 0 ? "%s.from-mcpbox-run" : "%s.from-mcpbox-run.%u",
		    name, t);
		if (renameat2(parent, name, parent, aside, RENAME_NOREPLACE) ==
		    0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/*
 * The program has ended, and all of its processes. It chose the object and its
 * name is on the list, so renaming the object takes nothing else away.
 */
size_t
kept_settle(const struct plan *p, kept_say *say, void *arg)
{
	char aside[NAME_MAX + 1];
	const char *name;
	struct stat st;
	size_t n = 0;
	int parent;

	for (size_t i = 0; i < p->nkept; i++) {
		const struct plan_kept *k = &p->kept[i];

		if (k->there || (parent = open_parent(k->path, &name)) == -1)
			continue;
		if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			say(arg, k->path,
			    set_aside(parent, name, aside, sizeof(aside)) == 0
				? aside
				: NULL);
			n++;
		}
		close(parent);
	}
	return n;
}
