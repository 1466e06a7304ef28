#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "setup_conf.h"

/* Begins a comment that keeps an owner's former line, so that undoing can
 * restore the line. */
static const char kept[] = "#before-setup ";

/* ---- lines ---- */

/* True if the line [p, end) begins with `prefix` and then sets the keyword.
 * *value is the value, of *n bytes, without blanks around it. */
static bool
sets(const char *p, const char *end, const char *prefix, const char *keyword,
    const char **value, size_t *n)
{
	size_t pre = strlen(prefix), len = strlen(keyword);

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if ((size_t)(end - p) <= pre + len || memcmp(p, prefix, pre) != 0 ||
	    memcmp(p + pre, keyword, len) != 0)
		return false;
	p += pre + len;
	if (*p != ' ' && *p != '\t')
		return false;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*value = p;
	*n = (size_t)(end - p);
	return true;
}

/* Finds the line at *p; false at the end of the text. *end is the end of that
 * line, *next the beginning of the next line. */
static bool
line(const char **p, const char *stop, const char **end, const char **next)
{
	if (*p >= stop)
		return false;
	*end = memchr(*p, '\n', (size_t)(stop - *p));
	*next = *end != NULL ? *end + 1 : stop;
	if (*end == NULL)
		*end = stop;
	return true;
}

int
setup_conf_get(
    const struct buf *text, const char *keyword, char *out, size_t len)
{
	const char *p = (const char *)text->p, *end, *next, *value;
	const char *stop = text->p != NULL ? p + text->len : p;
	size_t n;

	out[0] = '\0';
	for (; line(&p, stop, &end, &next); p = next)
		if (sets(p, end, "", keyword, &value, &n)) {
			if (n >= len)
				return -1;
			memcpy(out, value, n);
			out[n] = '\0';
			return 0;
		}
	return 0;
}

static void
put_line(struct buf *out, const char *prefix, const char *keyword,
    const char *value, size_t n)
{
	buf_puts(out, prefix);
	buf_puts(out, keyword);
	buf_putc(out, ' ');
	buf_put(out, value, n);
	buf_putc(out, '\n');
}

void
setup_conf_set(const struct buf *text, const char *keyword, const char *value,
    bool keep, struct buf *out)
{
	const char *p = (const char *)text->p, *end, *next, *old;
	const char *stop = text->p != NULL ? p + text->len : p;
	bool have_kept = false, put = false;
	size_t n;

	for (const char *q = p; line(&q, stop, &end, &next); q = next)
		have_kept = have_kept || sets(q, end, kept, keyword, &old, &n);
	for (; line(&p, stop, &end, &next); p = next) {
		if (sets(p, end, kept, keyword, &old, &n)) {
			if (value == NULL)
				put_line(out, "", keyword, old, n);
			else
				put_line(out, kept, keyword, old, n);
			continue;
		}
		if (!sets(p, end, "", keyword, &old, &n)) {
			buf_put(out, p, (size_t)(end - p));
			buf_putc(out, '\n');
			continue;
		}
		if (value == NULL)
			continue;
		if (keep && !have_kept && !put)
			put_line(out, kept, keyword, old, n);
		if (!put)
			put_line(out, "", keyword, value, strlen(value));
		put = true;
	}
	if (value != NULL && !put)
		put_line(out, "", keyword, value, strlen(value));
}

/* ---- files ---- */

int
setup_conf_read(const char *path, struct buf *out, struct err *err)
{
	char chunk[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd == -1)
		return errno == ENOENT
		    ? 0
		    : err_sys(err, FAILURE_INTERNAL, "%s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			break;
		buf_put(out, chunk, (size_t)n);
	}
	explicit_bzero(chunk, sizeof(chunk));
	if (n == -1)
		err_sys(err, FAILURE_INTERNAL, "%s", path);
	else if (out->failed)
		n = err_set(err, FAILURE_TOO_LARGE, "%s: too long", path);
	close(fd);
	return n == 0 ? 1 : -1;
}

static bool
is_so(const char *path, const void *bytes, size_t n, mode_t mode)
{
	struct stat st;
	struct buf b;
	bool same;

	/* An owner may have taken rights away from a file of ours, but must not
	 * have added any. */
	if (lstat(path, &st) == -1 || !S_ISREG(st.st_mode) ||
	    (st.st_mode & 07777 & ~mode) != 0)
		return false;
	buf_init(&b, n);
	same = setup_conf_read(path, &b, NULL) == 1 && b.len == n &&
	    (n == 0 || memcmp(b.p, bytes, n) == 0);
	buf_free(&b);
	return same;
}

/* Makes the directory of path if it is missing. dir gets the path of that
 * directory. */
static int
make_directory(const char *path, char dir[PATH_MAX], struct err *err)
{
	char *slash = NULL;
	size_t len = strlen(path);

	if (len >= PATH_MAX || path[0] != '/')
		return err_set(err, FAILURE_INVALID_PARAMS, "%s", path);
	memcpy(dir, path, len + 1);
	if ((slash = strrchr(dir, '/')) != dir)
		*slash = '\0';
	if (mkdir(dir, 0755) == -1 && errno != EEXIST)
		return err_sys(err, FAILURE_INTERNAL, "%s", dir);
	return 0;
}

static int
sync_directory(const char *dir, struct err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -1;

	if (fd != -1) {
		rc = fsync(fd);
		close(fd);
	}
	return rc == 0 ? 0 : err_sys(err, FAILURE_INTERNAL, "%s", dir);
}

int
setup_conf_write(
    const char *path, const void *bytes, size_t n, mode_t mode, struct err *err)
{
	char dir[PATH_MAX], fresh[PATH_MAX];
	const uint8_t *p = bytes;
	struct stat st;
	size_t done = 0;
	ssize_t w = 0;
	int fd;

	if (is_so(path, bytes, n, mode))
		return 0;
	if (make_directory(path, dir, err) == -1)
		return -1;
	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >=
	    (int)sizeof(fresh))
		return err_set(err, FAILURE_INVALID_PARAMS, "%s", path);
	(void)unlink(fresh); /* left by a killed run */
	fd = open(
	    fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", fresh);
	while (done < n && (w = write(fd, p + done, n - done)) > 0)
		done += (size_t)w;
	if ((mode & 0077) != 0 && lstat(path, &st) == 0 &&
	    S_ISREG(st.st_mode)) {
		if (fchown(fd, st.st_uid, st.st_gid) == -1)
			w = -1;
		mode &= st.st_mode;
	}
	if (done < n || w == -1 || fchmod(fd, mode) == -1 || fsync(fd) == -1 ||
	    rename(fresh, path) == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", path);
		(void)unlink(fresh);
		close(fd);
		return -1;
	}
	close(fd);
	return sync_directory(dir, err) == 0 ? 1 : -1;
}

int
setup_conf_remove(const char *path, struct err *err)
{
	if (unlink(path) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_sys(err, FAILURE_INTERNAL, "%s", path);
}
