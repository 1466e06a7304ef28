#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf.h"

enum { CONF_FILE_MAX = 256 * 1024 }; /* far above any file a person writes */

/*
 * Loads one file. A user who can write this file decides what the process does.
 * So the file must belong to root or to the process's own user, and no other
 * user may write it. The checks are made on the open descriptor, so the path
 * can't be swapped between check and read.
 */
static int
load_file(struct conf *c, const char *path, bool local, struct err *e)
{
	struct stat st;
	uint8_t *text = NULL;
	size_t n = 0;
	ssize_t got;
	int fd, rc = -1;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0)
		return err_sys(e, FAILURE_INTERNAL, "%s", path);
	if (fstat(fd, &st) < 0) {
		err_sys(e, FAILURE_INTERNAL, "%s", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, FAILURE_INTERNAL, "%s: not a regular file", path);
		goto out;
	}
	if ((st.st_uid != 0 && st.st_uid != geteuid()) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		err_set(e, FAILURE_INTERNAL,
		    "%s: others may write it; it must belong to root or to the "
		    "process's user, mode 0644 or less",
		    path);
		goto out;
	}
	if (st.st_size > CONF_FILE_MAX) {
		err_set(e, FAILURE_INTERNAL, "%s: larger than %d bytes", path,
		    CONF_FILE_MAX);
		goto out;
	}
	if ((text = malloc((size_t)st.st_size + 1)) == NULL) {
		err_set(e, FAILURE_INTERNAL, "%s: out of memory", path);
		goto out;
	}
	while (n < (size_t)st.st_size) {
		got = read(fd, text + n, (size_t)st.st_size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err_sys(e, FAILURE_INTERNAL, "%s", path);
			goto out;
		}
		if (got == 0)
			break;
		n += (size_t)got;
	}
	rc = local ? conf_parse_local(c, path, text, n, e)
		   : conf_parse(c, path, text, n, e);
out:
	free(text);
	close(fd);
	return rc;
}

/*
 * FILE.local is in FILE's directory. A user who may make FILE.local there may
 * also replace FILE, so FILE.local gives no user a new right. In a directory
 * with the sticky bit this does not hold, and there the check of the owner
 * protects us. If FILE.local is a link that leads nowhere, that is an error,
 * because the settings would be lost.
 */
int
conf_load(struct conf *c, const char *path, struct err *e)
{
	const char *keyword, *user;
	char local[PATH_MAX];
	struct stat st;

	if (snprintf(local, sizeof(local), "%s.local", path) >=
	    (int)sizeof(local))
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "%s: too long a path", path);
	if (load_file(c, path, false, e) < 0)
		return -1;
	if (lstat(local, &st) == 0) {
		if (load_file(c, local, true, e) < 0)
			return -1;
	} else if (errno != ENOENT)
		return err_sys(e, FAILURE_INTERNAL, "%s", local);
	if ((keyword = conf_no_user(c, &user)) != NULL)
		return err_set(e, FAILURE_INTERNAL,
		    "%s: %s: no such user: %s (the default); make it, or name "
		    "another in %s",
		    path, keyword, user, local);
	return 0;
}
