/*
 * See deposit.h.
 *
 * Paths come from the stream of a runner. A wheel's author may have taken over
 * that runner and written the stream. tree.c has judged the form of the paths.
 * The kernel judges them once more: every path is opened below the tree's own
 * directory with RESOLVE_BENEATH and without links (openat2(2)), and no
 * existing file is ever opened (O_EXCL). Links are not made here at all.
 *
 * The stream does not choose modes and owners. Files get 0444. Directories have
 * 0755 while files are put into them, and 0555 afterwards. The filter lets
 * fchmod set 0555 alone, and Landlock lets files be written below .incoming
 * alone. So even an attacker who has taken over this process can't change an
 * entry once it is made.
 */
#include "deposit.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "log.h"
#include "tree.h"

enum {
	/* Unfinished trees at the same time. A node's admind installs one
	 * module after the other. An unfinished tree is dropped when its
	 * installer's run ends. */
	DEPOSITS_MAX = 4,
	NAME_LEN = 2 * 16 + 1
};

struct deposit {
	bool used;
	bool narrow; /* tree's limit < most_bytes: store nearly full */
	struct ipc_id id;
	char name[NAME_LEN]; /* below .incoming */
	int top;             /* .incoming/NAME */
	int file;            /* being written, or -1 */
	struct tree *tree;
};

struct deposits {
	struct deposits_conf conf;
	int incoming;
	uint64_t stored; /* bytes of all entries */
	struct deposit list[DEPOSITS_MAX];
};

/* ---- making the stream's files ---- */

static int
beneath(int dir, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = {.flags = flags | O_CLOEXEC | O_NOFOLLOW,
	    .mode = mode,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
		RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static int
failed(struct err *e, const char *what)
{
	/* The cause is the disk, or a directory above that was not made. The
	 * text has no path of the stream, so that no such path gets into a
	 * log. */
	return err_sys(e, FAILURE_INTERNAL, "module store: %s", what);
}

static int
make_directory(void *arg, const char *path, struct err *e)
{
	char above[TREE_PATH_MAX + 1];
	struct deposit *d = arg;
	const char *slash = strrchr(path, '/');
	int dir = d->top, rc;

	if (slash != NULL) {
		memcpy(above, path, (size_t)(slash - path));
		above[slash - path] = '\0';
		dir = beneath(d->top, above, O_PATH | O_DIRECTORY, 0);
		if (dir == -1)
			return failed(e, "a directory");
	}
	rc = mkdirat(dir, slash != NULL ? slash + 1 : path, 0755);
	if (rc == -1)
		(void)failed(e, "a directory");
	if (dir != d->top)
		close(dir);
	return rc;
}

static int
make_file(void *arg, const char *path, struct err *e)
{
	struct deposit *d = arg;

	d->file = beneath(d->top, path, O_WRONLY | O_CREAT | O_EXCL, 0444);
	return d->file == -1 ? failed(e, "a file") : 0;
}

static int
put_data(void *arg, const void *data, size_t n, struct err *e)
{
	const uint8_t *p = data;
	struct deposit *d = arg;
	ssize_t done;

	while (n > 0) {
		done = write(d->file, p, n);
		if (done == -1 && errno == EINTR)
			continue;
		if (done == -1)
			return failed(e, "write");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int
end_file(void *arg, struct err *e)
{
	struct deposit *d = arg;
	int fd = d->file;

	d->file = -1;
	return close(fd) == -1 ? failed(e, "close") : 0;
}

static const struct tree_sink sink = {
    make_directory, make_file, put_data, end_file};

/* ---- whole trees ---- */

enum act { REMOVE, SEAL };

/*
 * Walks a deposit's tree, at most TREE_DEPTH_MAX deep, as deep as a stream may
 * go. REMOVE removes all in the tree, then the top. SEAL takes away the write
 * bits of the directories below the top. Goes on after an error, and then
 * returns -1: the next start of the daemon removes the remaining files.
 */
static int
walk(int parent, const char *name, enum act act)
{
	DIR *open[TREE_DEPTH_MAX + 1];
	char path[TREE_DEPTH_MAX + 1][TREE_NAME_MAX + 1];
	size_t depth = 0;
	struct dirent *x;
	struct stat st;
	int rc = 0, fd;

	fd = beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1 || (open[0] = fdopendir(fd)) == NULL) {
		if (fd != -1)
			close(fd);
		return -1;
	}
	for (;;) {
		fd = dirfd(open[depth]);
		errno = 0;
		x = readdir(open[depth]);
		if (x == NULL) {
			if (errno != 0 ||
			    (act == SEAL && depth > 0 && fchmod(fd, 0555) != 0))
				rc = -1;
			(void)closedir(open[depth]);
			if (depth == 0)
				break;
			if (act == REMOVE &&
			    unlinkat(dirfd(open[depth - 1]), path[depth],
				AT_REMOVEDIR) != 0)
				rc = -1;
			depth--;
			continue;
		}
		if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0)
			continue;
		if (fstatat(fd, x->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
			rc = -1;
		} else if (!S_ISDIR(st.st_mode)) {
			if (act == REMOVE && unlinkat(fd, x->d_name, 0) != 0)
				rc = -1;
		} else if (depth == TREE_DEPTH_MAX) {
			rc = -1;
		} else {
			(void)snprintf(
			    path[depth + 1], sizeof(path[0]), "%s", x->d_name);
			fd = beneath(
			    fd, path[depth + 1], O_RDONLY | O_DIRECTORY, 0);
			if (fd == -1 ||
			    (open[depth + 1] = fdopendir(fd)) == NULL) {
				if (fd != -1)
					close(fd);
				rc = -1;
			} else {
				depth++;
			}
		}
	}
	if (act == REMOVE && unlinkat(parent, name, AT_REMOVEDIR) != 0)
		rc = -1;
	return rc;
}

static void
drop(struct deposits *s, struct deposit *d)
{
	if (!d->used)
		return;
	tree_free(d->tree);
	if (d->file != -1)
		close(d->file);
	if (d->top != -1)
		close(d->top);
	if (d->name[0] != '\0' && walk(s->incoming, d->name, REMOVE) != 0 &&
	    errno != ENOENT)
		log_event(LOG_LV_WARN, "module_store",
		    "%s/%s could not be removed", DEPOSIT_INCOMING, d->name);
	memset(d, 0, sizeof(*d));
	d->top = d->file = -1;
}

static struct deposit *
find(struct deposits *s, const struct ipc_id *id)
{
	for (size_t i = 0; i < DEPOSITS_MAX; i++)
		if (s->list[i].used &&
		    memcmp(&s->list[i].id, id, sizeof(*id)) == 0)
			return &s->list[i];
	return NULL;
}

static struct deposit *
begin(struct deposits *s, const struct ipc_id *id, struct err *e)
{
	uint64_t left =
	    s->conf.most_store > s->stored ? s->conf.most_store - s->stored : 0;
	struct deposit *d = NULL;

	for (size_t i = 0; i < DEPOSITS_MAX && d == NULL; i++)
		if (!s->list[i].used)
			d = &s->list[i];
	if (d == NULL) {
		(void)err_set(
		    e, FAILURE_BUSY, "too many modules are being stored");
		return NULL;
	}
	d->used = true;
	d->narrow = left < s->conf.most_bytes;
	d->id = *id;
	d->tree = tree_new(s->conf.most_files,
	    left < s->conf.most_bytes ? left : s->conf.most_bytes, &sink, d);
	if (d->tree == NULL) {
		(void)err_set(e, FAILURE_BUSY, "no memory");
	} else {
		hex_encode(id->b, sizeof(id->b), d->name);
		if (mkdirat(s->incoming, d->name, 0755) == 0 &&
		    (d->top = beneath(s->incoming, d->name,
			 O_RDONLY | O_DIRECTORY, 0)) != -1)
			return d;
		(void)failed(e, "a new tree");
	}
	drop(s, d);
	return NULL;
}

/* ---- into the store ---- */

bool
deposit_has(const struct deposits *s, const uint8_t digest[32])
{
	char name[HEX32_LEN + 1];
	struct stat st;

	hex_encode(digest, 32, name);
	return fstatat(s->conf.store, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode);
}

/*
 * Makes the tree an entry. The bytes are on the disk before the entry gets its
 * name, so an entry is whole, also after a power cut. An existing entry of this
 * name has the same content, whatever process made it.
 */
static int
finish(struct deposits *s, struct deposit *d, struct ipc_stored *out,
    struct err *e)
{
	char name[HEX32_LEN + 1];

	if (tree_end(d->tree, &out->digest, &out->files, &out->size, e) == -1)
		return -1;
	if (deposit_has(s, out->digest.b))
		return 1;
	hex_encode(out->digest.b, sizeof(out->digest.b), name);
	if (syncfs(d->top) != 0 || walk(s->incoming, d->name, SEAL) != 0 ||
	    renameat2(s->incoming, d->name, s->conf.store, name,
		RENAME_NOREPLACE) != 0)
		return failed(e, "the new entry");
	d->name[0] = '\0'; /* nothing is left to remove */
	/* A directory can be moved only while it is writable, so the top is
	 * sealed after the move. */
	if (fchmod(d->top, 0555) != 0 || syncfs(d->top) != 0)
		log_event(LOG_LV_WARN, "module_store", "%s: %s", name,
		    strerror(errno));
	s->stored += out->size;
	out->fresh = 1;
	log_event(LOG_LV_INFO, "module_stored", "%s: %llu files, %llu bytes",
	    name, (unsigned long long)out->files,
	    (unsigned long long)out->size);
	return 1;
}

int
deposit_put(struct deposits *s, const struct ipc_id *id, struct ipc_bytes data,
    bool last, struct ipc_stored *out, struct err *e)
{
	struct deposit *d = find(s, id);
	int rc;

	memset(out, 0, sizeof(*out));
	if (d == NULL && (d = begin(s, id, e)) == NULL)
		return -1;
	rc = tree_feed(d->tree, data.p, data.n, e);
	if (rc == 0 && last)
		rc = finish(s, d, out, e);
	if (rc == -1 && d->narrow && e != NULL && e->failure == FAILURE_LIMIT)
		(void)err_wrap(e, "the module store is nearly full");
	if (rc != 0)
		drop(s, d);
	return rc;
}

void
deposit_drop(struct deposits *s, const struct ipc_id *id)
{
	struct deposit *d = find(s, id);

	if (d != NULL)
		drop(s, d);
}

void
deposit_drop_all(struct deposits *s)
{
	for (size_t i = 0; i < DEPOSITS_MAX; i++)
		drop(s, &s->list[i]);
}

struct deposits *
deposit_new(const struct deposits_conf *conf, struct err *e)
{
	struct deposits *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		(void)err_set(e, FAILURE_BUSY, "no memory");
		return NULL;
	}
	s->conf = *conf;
	s->stored = conf->used;
	for (size_t i = 0; i < DEPOSITS_MAX; i++)
		s->list[i].top = s->list[i].file = -1;
	s->incoming = openat(conf->store, DEPOSIT_INCOMING,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->incoming == -1) {
		(void)err_sys(e, FAILURE_INTERNAL, "%s", DEPOSIT_INCOMING);
		free(s);
		return NULL;
	}
	return s;
}

void
deposit_free(struct deposits *s)
{
	if (s == NULL)
		return;
	deposit_drop_all(s);
	close(s->incoming);
	free(s);
}
