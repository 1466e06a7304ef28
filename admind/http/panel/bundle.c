/*
 * Loads the panel's files once, before the process confines itself. A request's
 * name is later looked up among the loaded names and never becomes a path, so
 * no request reads a file.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle.h"
#include "crypto.h"

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    "0123456789";
static const char name_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

const char *
bundle_type(const char *name)
{
	static const struct {
		const char *end, *type;
	} types[] = {{".js", "text/javascript; charset=utf-8"},
	    {".css", "text/css; charset=utf-8"},
	    {".svg", "image/svg+xml; charset=utf-8"}};
	const char *end = strrchr(name, '.');
	size_t stem, hash = 0;

	if (strlen(name) > BUNDLE_NAME_MAX || end == NULL)
		return NULL;
	if (strcmp(name, "index.html") == 0)
		return "text/html; charset=utf-8";
	/* A browser keeps the file for a year, so its name must tell its
	 * content. */
	stem = (size_t)(end - name);
	while (hash < stem && strchr(letters, name[stem - hash - 1]) != NULL)
		hash++;
	if (hash < BUNDLE_HASH_MIN || stem - hash < 2 ||
	    name[stem - hash - 1] != '-' || strchr(letters, *name) == NULL ||
	    strspn(name, name_letters) < stem)
		return NULL;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(end, types[i].end) == 0)
			return types[i].type;
	return NULL;
}

/*
 * Checks an opened file or directory. Its writers decide which code an
 * administrator's browser runs. So not every user of this machine may write it.
 * Nor may this process: if it is taken over, a change of the panel would last
 * after its restart. User 0 may write everywhere; only tests run as user 0.
 */
static int
check_owner(int at, const char *name, const struct stat *st, struct err *e)
{
	if ((st->st_mode & S_IWOTH) != 0)
		return err_set(e, FAILURE_INTERNAL, "every user may write it");
	if (geteuid() != 0 &&
	    (st->st_uid == geteuid() || faccessat(at, name, W_OK, 0) == 0))
		return err_set(e, FAILURE_INTERNAL,
		    "this process's own user may write it");
	return 0;
}

/* Reads a whole file of `at` into a form. */
static int
read_form(int at, const char *name, size_t room, struct bundle_form *form,
    struct err *e)
{
	struct ipc_hash hash;
	uint8_t *p = NULL;
	struct stat st;
	size_t n = 0, max;
	ssize_t got;
	int fd, rc = -1;

	/* Without O_NONBLOCK a FIFO would stop the start. */
	fd = openat(at, name,
	    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd == -1 && errno == ELOOP)
		return err_set(e, FAILURE_INTERNAL, "a symbolic link");
	if (fd == -1)
		return err_sys(e, FAILURE_INTERNAL, "it can't be opened");
	if (fstat(fd, &st) == -1) {
		err_sys(e, FAILURE_INTERNAL, "fstat");
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, FAILURE_INTERNAL, "not a regular file");
		goto out;
	}
	if (check_owner(at, name, &st, e) == -1)
		goto out;
	if (st.st_size > BUNDLE_FILE_MAX || (size_t)st.st_size > room) {
		err_set(e, FAILURE_INTERNAL,
		    "too large: a file has at most %d bytes, all together "
		    "have %d",
		    BUNDLE_FILE_MAX, BUNDLE_BYTES_MAX);
		goto out;
	}
	/* One byte more than the file has, to notice that it grows. */
	max = (size_t)st.st_size + 1;
	if ((p = malloc(max)) == NULL) {
		err_set(e, FAILURE_INTERNAL, "out of memory");
		goto out;
	}
	while (n < max && (got = read(fd, p + n, max - n)) != 0) {
		if (got == -1) {
			err_sys(e, FAILURE_INTERNAL, "read");
			goto out;
		}
		n += (size_t)got;
	}
	if (n != max - 1) {
		err_set(e, FAILURE_INTERNAL, "it changed while it was read");
		goto out;
	}
	sha256(p, n, &hash);
	form->tag[0] = '"';
	hex_encode(hash.b, sizeof(hash.b), form->tag + 1);
	form->tag[HEX32_LEN + 1] = '"';
	form->tag[HEX32_LEN + 2] = '\0';
	form->p = p;
	form->n = n;
	p = NULL;
	rc = 0;
out:
	free(p);
	close(fd);
	return rc;
}

/* Returns the entry of this name, and makes it if necessary. NULL: there are
 * too many. */
static struct bundle_file *
entry(struct bundle *b, const char *name, const char *type)
{
	struct bundle_file *f;

	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->file[i].name, name) == 0)
			return &b->file[i];
	if (b->n == BUNDLE_FILES_MAX)
		return NULL;
	f = &b->file[b->n++];
	memcpy(f->name, name, strlen(name) + 1);
	f->type = type;
	return f;
}

/* Takes one file of the directory. */
static int
take(struct bundle *b, int at, const char *name, size_t *room, struct err *e)
{
	size_t n = strlen(name);
	bool gzip = n > 3 && strcmp(name + n - 3, ".gz") == 0;
	char plain[BUNDLE_NAME_MAX + 1] = "";
	struct bundle_form *form;
	struct bundle_file *f;
	const char *type;

	n -= gzip ? 3 : 0;
	if (n <= BUNDLE_NAME_MAX)
		snprintf(plain, sizeof(plain), "%.*s", (int)n, name);
	if ((type = bundle_type(plain)) == NULL)
		return err_set(e, FAILURE_INTERNAL,
		    "a file of the panel is not called so");
	if ((f = entry(b, plain, type)) == NULL)
		return err_set(e, FAILURE_INTERNAL, "more than %d files",
		    BUNDLE_FILES_MAX);
	form = gzip ? &f->gzip : &f->plain;
	if (read_form(at, name, *room, form, e) == -1)
		return -1;
	*room -= form->n;
	if (gzip && (form->n < 2 || memcmp(form->p, "\x1f\x8b", 2) != 0))
		return err_set(e, FAILURE_INTERNAL, "not gzip (RFC 1952)");
	return 0;
}

/* Checks that each file is whole, when all were taken. */
static int
check_whole(const struct bundle *b, struct err *e)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->file[i].plain.p == NULL)
			return err_set(e, FAILURE_INTERNAL,
			    "%s.gz is there, and %s is not", b->file[i].name,
			    b->file[i].name);
	if (bundle_find(b, "index.html") == NULL)
		return err_set(e, FAILURE_INTERNAL, "no index.html");
	return 0;
}

int
bundle_load(const char *directory, struct bundle **out, struct err *e)
{
	size_t room = BUNDLE_BYTES_MAX;
	struct bundle *b = NULL;
	const struct dirent *d;
	DIR *dir = NULL;
	struct stat st;
	int fd, rc = -1;

	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 && errno == ENOENT)
		return 1;
	if (fd == -1)
		return err_sys(e, FAILURE_INTERNAL, "%s", directory);
	if (fstat(fd, &st) == -1) {
		err_sys(e, FAILURE_INTERNAL, "%s", directory);
		goto out;
	}
	if (check_owner(fd, ".", &st, e) == -1) {
		err_wrap(e, "%s", directory);
		goto out;
	}
	if ((b = calloc(1, sizeof(*b))) == NULL ||
	    (dir = fdopendir(fd)) == NULL) {
		err_sys(e, FAILURE_INTERNAL, "%s", directory);
		goto out;
	}
	while ((errno = 0, d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (take(b, fd, d->d_name, &room, e) == -1) {
			err_wrap(e, "%s/%s", directory, d->d_name);
			goto out;
		}
	}
	if (errno != 0) {
		err_sys(e, FAILURE_INTERNAL, "%s", directory);
		goto out;
	}
	if (check_whole(b, e) == -1) {
		err_wrap(e, "%s", directory);
		goto out;
	}
	*out = b;
	b = NULL;
	rc = 0;
out:
	bundle_free(b);
	if (dir != NULL)
		closedir(dir);
	else
		close(fd);
	return rc;
}

const struct bundle_file *
bundle_find(const struct bundle *b, const char *name)
{
	for (size_t i = 0; b != NULL && i < b->n; i++)
		if (strcmp(b->file[i].name, name) == 0)
			return &b->file[i];
	return NULL;
}

void
bundle_free(struct bundle *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->n; i++) {
		free(b->file[i].plain.p);
		free(b->file[i].gzip.p);
	}
	free(b);
}
