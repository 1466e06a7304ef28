/*
 * The folders and files that the program sees. Each is opened once, judged by
 * its path without symbolic links, and remembered by device and inode: root.c
 * opens the path again, in the new mount namespace, without following a link,
 * and refuses another object. So a folder that is exchanged in between ends the
 * run and is not mounted.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"

/* Replaces "~/" at the beginning, which no shell does in a profile. NULL
 * without memory. */
static char *
expand(const struct plan *p, const char *path)
{
	char *out;

	if (strncmp(path, "~/", 2) != 0)
		return strdup(path);
	return asprintf(&out, "%s/%s", p->home, path + 2) == -1 ? NULL : out;
}

static int
add(struct plan *p, char *path, const struct stat *st, bool writable,
    struct err *e)
{
	struct plan_folder *f;

	for (size_t i = 1; i < p->nfolders; i++)
		if (strcmp(p->folder[i].path, path) == 0) {
			p->folder[i].writable |= writable; /* named twice */
			free(path);
			return 0;
		}
	if (p->nfolders == PLAN_FOLDERS_MAX + 1) {
		free(path);
		return err_set(e, FAILURE_TOO_LARGE, "name at most %d folders",
		    PLAN_FOLDERS_MAX);
	}
	f = &p->folder[p->nfolders++];
	*f = (struct plan_folder){path, st->st_dev, st->st_ino, writable};
	return 0;
}

int
folders_cwd(struct plan *p, struct err *e)
{
	char *path = getcwd(NULL, 0);
	struct stat st;

	if (path == NULL || *path != '/' || stat(".", &st) == -1) {
		free(path);
		return err_set(e, FAILURE_NOT_FOUND,
		    "the current folder is gone: go to the folder of your "
		    "project");
	}
	if (judge_folder(p, path, e) == -1) {
		free(path);
		return err_wrap(e, "the current folder");
	}
	p->folder[0] = (struct plan_folder){path, st.st_dev, st.st_ino, true};
	/* It is there already, however it was named. */
	for (size_t i = 1; i < p->nfolders; i++)
		if (strcmp(p->folder[i].path, path) == 0) {
			free(p->folder[i].path);
			p->folder[i] = p->folder[--p->nfolders];
			break;
		}
	return 0;
}

int
folders_add(struct plan *p, const char *name, bool writable, bool optional,
    struct err *e)
{
	char *path = expand(p, name), *real = NULL;
	struct stat st;
	int rc = -1;

	if (path == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	real = realpath(path, NULL);
	if (real == NULL && errno == ENOENT && optional) {
		rc = 0;
		goto out;
	}
	if (real == NULL || stat(real, &st) == -1) {
		err_sys(e, FAILURE_NOT_FOUND, "%s %.256s",
		    writable ? "--rw" : "--ro", name);
		goto out;
	}
	if (!S_ISDIR(st.st_mode)) {
		err_set(e, FAILURE_INVALID_PARAMS,
		    "%s %.256s is no folder: name the folder that has it",
		    writable ? "--rw" : "--ro", name);
		goto out;
	}
	if (judge_folder(p, real, e) == -1) {
		err_wrap(e, "%s %.256s", writable ? "--rw" : "--ro", name);
		goto out;
	}
	rc = add(p, real, &st, writable, e);
	real = NULL;
out:
	free(real);
	free(path);
	return rc;
}

int
folders_file(struct plan *p, const char *name, struct err *e)
{
	char *path = NULL, *real = NULL;
	struct stat st;
	int rc = -1;

	if (p->nfiles == PLAN_FILES_MAX)
		return err_set(e, FAILURE_TOO_LARGE, "name at most %d files",
		    PLAN_FILES_MAX);
	if (*name == '/' || strncmp(name, "~/", 2) == 0)
		path = expand(p, name);
	else if (asprintf(&path, "%s/%s", p->home, name) == -1)
		path = NULL;
	if (path == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	if ((real = realpath(path, NULL)) == NULL || stat(real, &st) == -1) {
		err_sys(e, FAILURE_NOT_FOUND, "--home-file %.256s", name);
		goto out;
	}
	if (!judge_within(real, p->home) || !S_ISREG(st.st_mode)) {
		err_set(e, FAILURE_INVALID_PARAMS,
		    "--home-file %.256s: name a file that is in %.256s, "
		    "without a link to elsewhere",
		    name, p->home);
		goto out;
	}
	if (judge_file(p, real, e) == -1) {
		err_wrap(e, "--home-file %.256s", name);
		goto out;
	}
	p->file[p->nfiles++] = (struct plan_file){
	    .path = real, .device = st.st_dev, .inode = st.st_ino};
	real = NULL;
	rc = 0;
out:
	free(real);
	free(path);
	return rc;
}

bool
folders_show(const struct plan *p, const char *path)
{
	static const char *const system[] = {
	    "/usr", "/bin", "/sbin", "/lib", "/lib64"};

	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		if (judge_within(path, system[i]))
			return true;
	for (size_t i = 0; i < p->nfolders; i++)
		if (judge_within(path, p->folder[i].path))
			return true;
	return false;
}
