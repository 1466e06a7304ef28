/*
 * Profiles: options in a file, one a line: the option's name without dashes, a
 * blank, the value. A line that begins with # is a comment. The file is the
 * user's or the package's, and is as trusted as the command line; it is read
 * strictly, since an option that was misspelt must not be missing in silence.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan.h"

/* A page of text for a person; a larger file is something else. */
enum { PROFILE_MAX = 16384 };

static int
take_line(struct plan *p, char *line, const char *path, unsigned number,
    struct err *e)
{
	char *value;

	if (*line == '\0' || *line == '#')
		return 0;
	value = strchr(line, ' ');
	if (value != NULL)
		*value++ = '\0';
	/* These belong to one run. A profile in a profile would need a bound.
	 */
	if (strcmp(line, "profile") == 0 || strcmp(line, "explain") == 0 ||
	    strcmp(line, "json") == 0)
		(void)err_set(e, FAILURE_INVALID_PARAMS,
		    "%s is for the command line: remove this line", line);
	else if (options_set(p, line, value, e) == 0)
		return 0;
	return err_wrap(e, "%.256s, line %u", path, number);
}

int
profile_read(struct plan *p, const char *name, struct err *e)
{
	char path[PLAN_PATH_MAX], text[PROFILE_MAX + 1];
	char *line, *end;
	struct stat st;
	ssize_t n;
	size_t len = 0;
	unsigned number = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "%s%s",
	    strchr(name, '/') == NULL ? RUN_PROFILES "/" : "", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return err_sys(e, FAILURE_NOT_FOUND,
		    "profile %.256s (write ./NAME for a file in this folder)",
		    path);
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "profile %.256s is no file: name a file", path);
	}
	while (len < sizeof(text) &&
	    (n = read(fd, text + len, sizeof(text) - len)) > 0)
		len += (size_t)n;
	close(fd);
	if (len > PROFILE_MAX || memchr(text, '\0', len) != NULL)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "profile %.256s: give at most %d bytes of text", path,
		    PROFILE_MAX);
	text[len] = '\0';
	for (line = text; line != NULL; line = end) {
		if ((end = strchr(line, '\n')) != NULL)
			*end++ = '\0';
		if (take_line(p, line, path, ++number, e) == -1)
			return -1;
	}
	return 0;
}
