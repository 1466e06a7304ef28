#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "creds.h"
#include "ids.h"
#include "keyfile.h"

enum {
	FILE_MAX = 4096,  /* most bytes of a file in any form, as in creds.c */
	BASE64_CHARS = 44 /* for 32 bytes, with the = at the end */
};

int
keyfile_open(const char *path, struct keyfile *k, struct err *err)
{
	char copy[PATH_MAX], again[PATH_MAX];
	int n;

	k->dir = -1;
	if (strlen(path) >= sizeof(copy))
		return err_set(
		    err, FAILURE_INVALID_PARAMS, "key_file: too long");
	memcpy(copy, path, strlen(path) + 1);
	memcpy(again, path, strlen(path) + 1);
	n = snprintf(k->name, sizeof(k->name), "%s", basename(copy));
	/* room for endings: .next.cred, .fresh, .ID.cred */
	if (n <= 0 || n > NAME_MAX - 32)
		return err_set(
		    err, FAILURE_INVALID_PARAMS, "key_file: too long");
	k->dir = open(dirname(again), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return k->dir == -1 ? err_sys(err, FAILURE_INTERNAL, "%s", path) : 0;
}

void
keyfile_close(struct keyfile *k)
{
	if (k->dir != -1)
		close(k->dir);
	k->dir = -1;
}

/* Writes to out, and returns, the name of a key's file in one form. */
static const char *
file_of(const struct keyfile *k, enum keyfile_which w, bool sealed,
    char out[NAME_MAX + 1])
{
	snprintf(out, NAME_MAX + 1, "%.200s%s%s", k->name,
	    w == KEYFILE_NEXT ? ".next" : "", sealed ? ".cred" : "");
	return out;
}

int
keyfile_find(const struct keyfile *k, enum keyfile_which w, bool *sealed,
    struct err *err)
{
	char name[NAME_MAX + 1];
	struct stat st;

	/* The vault takes the sealed form first, too. */
	for (int form = 1; form >= 0; form--) {
		if (fstatat(k->dir, file_of(k, w, form, name), &st,
			AT_SYMLINK_NOFOLLOW) == 0) {
			if (sealed != NULL)
				*sealed = form;
			return 1;
		}
		if (errno != ENOENT)
			return err_sys(err, FAILURE_INTERNAL, "%s", name);
	}
	return 0;
}

/* ---- reading ---- */

/* Appends a whole file to *out. A fifo does not block; with O_NOFOLLOW in flags
 * a link is not followed. */
static int
slurp(int dir, const char *name, int flags, struct buf *out, struct err *err)
{
	char chunk[FILE_MAX];
	struct stat st;
	ssize_t n = 0;
	int fd, rc = -1;

	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", name);
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		err_set(err, FAILURE_INTERNAL, "%s: not a regular file", name);
		goto out;
	}
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			err_sys(err, FAILURE_INTERNAL, "%s", name);
			goto out;
		}
		buf_put(out, chunk, (size_t)n);
		if (out->failed) {
			err_set(err, FAILURE_INVALID_PARAMS,
			    "%s: too long for a key", name);
			goto out;
		}
	}
	rc = 0;
out:
	explicit_bzero(chunk, sizeof(chunk));
	close(fd);
	return rc;
}

static int
take(const struct buf *b, const char *name, uint8_t key[KEY_LEN],
    struct err *err)
{
	if (b->len != KEY_LEN)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "%s: %zu bytes, a master key has %d", name, b->len,
		    KEY_LEN);
	memcpy(key, b->p, KEY_LEN);
	return 0;
}

/* Opens a key that is sealed under a name. */
static int
unseal(const struct buf *sealed, const char *name, uint8_t key[KEY_LEN],
    struct err *err)
{
	struct buf plain;
	int rc;

	buf_init(&plain, FILE_MAX);
	rc = creds_open(name, sealed->p, sealed->len, &plain, err);
	if (rc == 0)
		rc = take(&plain, name, key, err);
	buf_free(&plain);
	return rc;
}

int
keyfile_read(const struct keyfile *k, enum keyfile_which w,
    uint8_t key[KEY_LEN], struct err *err)
{
	char name[NAME_MAX + 1];
	bool sealed = false;
	struct buf b;
	int rc;

	if ((rc = keyfile_find(k, w, &sealed, err)) <= 0)
		return rc;
	file_of(k, w, sealed, name);
	buf_init(&b, FILE_MAX);
	rc = slurp(k->dir, name, O_NOFOLLOW, &b, err);
	if (rc == 0)
		rc = sealed ? unseal(&b, name, key, err)
			    : take(&b, name, key, err);
	buf_free(&b);
	return rc == 0 ? 1 : -1;
}

int
keyfile_which_id(const struct keyfile *k, enum keyfile_which w,
    uint8_t id[KEY_ID_LEN], struct err *err)
{
	uint8_t key[KEY_LEN];
	int rc;

	if ((rc = keyfile_read(k, w, key, err)) == 1)
		master_key_id(key, id);
	explicit_bzero(key, sizeof(key));
	return rc;
}

/* ---- writing ---- */

/* Writes a file whole or not at all: syncs it under a name that no process
 * reads, then renames it. The new name is on the disk when this returns. Mode
 * 0400, with the owner of `like` (NULL: root, since systemd reads it). */
static int
put(const struct keyfile *k, const char *name, const void *bytes, size_t n,
    const struct stat *like, bool replace, struct err *err)
{
	char fresh[NAME_MAX + 1];
	int fd, rc = -1;

	snprintf(fresh, sizeof(fresh), "%.200s.fresh", k->name);
	(void)unlinkat(k->dir, fresh, 0); /* left by a killed run */
	fd = openat(k->dir, fresh,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", fresh);
	if (write(fd, bytes, n) != (ssize_t)n ||
	    (like != NULL && fchown(fd, like->st_uid, like->st_gid) == -1) ||
	    fchmod(fd, 0400) == -1 || fsync(fd) == -1 ||
	    renameat2(k->dir, fresh, k->dir, name,
		replace ? 0 : RENAME_NOREPLACE) == -1 ||
	    fsync(k->dir) == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", name);
		(void)unlinkat(k->dir, fresh, 0); /* it holds bytes of a key */
	} else
		rc = 0;
	close(fd);
	return rc;
}

/* Writes a key in one form. A plain file gets the owner of `like`. */
static int
put_key(const struct keyfile *k, const char *name, bool sealed,
    const uint8_t key[KEY_LEN], const struct stat *like, bool replace,
    struct err *err)
{
	struct buf b;
	int rc;

	if (!sealed)
		return put(k, name, key, KEY_LEN, like, replace, err);
	buf_init(&b, FILE_MAX);
	rc = creds_seal(name, key, KEY_LEN, &b, err);
	if (rc == 0)
		rc = put(k, name, b.p, b.len, NULL, replace, err);
	buf_free(&b);
	return rc;
}

/*
 * Writes this machine's first key, sealed if that works. A machine with systemd
 * may still have nothing to seal with: no TPM, and no key of the host, because
 * /var is on a ram disk or read-only. Such a machine gets a plain file of
 * root's.
 */
static int
put_first(const struct keyfile *k, const uint8_t key[KEY_LEN], struct err *err)
{
	char name[NAME_MAX + 1];
	struct err why;

	if (creds_usable() &&
	    put_key(k, file_of(k, KEYFILE_KEY, true, name), true, key, NULL,
		false, &why) == 0)
		return 0;
	return put_key(k, file_of(k, KEYFILE_KEY, false, name), false, key,
	    NULL, false, err);
}

/* Returns the plain key file's owner, or NULL (root) if there is no file. */
static const struct stat *
owner(const struct keyfile *k, struct stat *st)
{
	return fstatat(k->dir, k->name, st, AT_SYMLINK_NOFOLLOW) == 0 ? st
								      : NULL;
}

static void
forget(const struct keyfile *k, enum keyfile_which w, bool sealed)
{
	char name[NAME_MAX + 1];

	(void)unlinkat(k->dir, file_of(k, w, sealed, name), 0);
}

int
keyfile_next(const struct keyfile *k, struct err *err)
{
	char name[NAME_MAX + 1];
	uint8_t key[KEY_LEN];
	struct stat st;
	bool sealed = false;
	int rc;

	if ((rc = keyfile_find(k, KEYFILE_KEY, &sealed, err)) <= 0)
		return rc == 0 ? err_set(err, FAILURE_NOT_FOUND,
				     "%s: there is no key", k->name)
			       : -1;
	random_bytes(key, sizeof(key));
	rc = put_key(k, file_of(k, KEYFILE_NEXT, sealed, name), sealed, key,
	    owner(k, &st), false, err);
	explicit_bzero(key, sizeof(key));
	return rc;
}

static int
gone(const struct keyfile *k, enum keyfile_which which, struct err *err)
{
	return err_set(err, FAILURE_NOT_FOUND, "%s%s: not there", k->name,
	    which == KEYFILE_NEXT ? ".next" : "");
}

/* Makes an immutable memfd with the next key, as the vault demands: mode 0400,
 * with F_SEAL_* seals. Like the key's own memory, the memfd can be swapped. So
 * a machine that seals its keys should encrypt its swap (OPERATIONS, Keys). */
static int
memory_fd(const struct keyfile *k, struct err *err)
{
	uint8_t key[KEY_LEN];
	int fd = -1, rc = keyfile_read(k, KEYFILE_NEXT, key, err);

	if (rc == 1 &&
	    ((fd = memfd_create("key", MFD_CLOEXEC | MFD_ALLOW_SEALING)) ==
		    -1 ||
		write(fd, key, sizeof(key)) != (ssize_t)sizeof(key) ||
		fchmod(fd, 0400) == -1 ||
		fcntl(fd, F_ADD_SEALS,
		    F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ==
		    -1)) {
		err_sys(err, FAILURE_INTERNAL, "memfd");
		if (fd != -1)
			close(fd);
		fd = -1;
	}
	explicit_bzero(key, sizeof(key));
	return rc == 0 ? gone(k, KEYFILE_NEXT, err) : fd;
}

int
keyfile_next_fd(const struct keyfile *k, struct err *err)
{
	char name[NAME_MAX + 1];
	bool sealed = false;
	int fd, rc;

	if ((rc = keyfile_find(k, KEYFILE_NEXT, &sealed, err)) <= 0)
		return rc == 0 ? gone(k, KEYFILE_NEXT, err) : -1;
	if (sealed)
		return memory_fd(k, err);
	fd = openat(k->dir, file_of(k, KEYFILE_NEXT, false, name),
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	return fd == -1 ? err_sys(err, FAILURE_INTERNAL, "%s", name) : fd;
}

/* ---- the end of a rotation ---- */

/* Keeps the older key as NAME.ID, since older backups need that key. A sealed
 * key is sealed again, since the sealed bytes contain the file's name. */
static int
keep(const struct keyfile *k, const uint8_t key[KEY_LEN], bool sealed,
    char kept[NAME_MAX + 1], struct err *err)
{
	char hex[2 * KEY_ID_LEN + 1];
	uint8_t id[KEY_ID_LEN];
	struct stat st;

	master_key_id(key, id);
	hex_encode(id, sizeof(id), hex);
	snprintf(kept, NAME_MAX + 1, "%.200s.%s%s", k->name, hex,
	    sealed ? ".cred" : "");
	if (fstatat(k->dir, kept, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return put_key(k, kept, sealed, key, owner(k, &st), false, err);
}

/*
 * Removes the next key's file last. While that file exists, a vault that starts
 * has both keys. Besides, until the next key has replaced the older key, that
 * file may be its only copy. The form that is read first (.cred) is removed
 * only when the other form exists.
 */
int
keyfile_change(
    const struct keyfile *k, char kept[NAME_MAX + 1], struct err *err)
{
	uint8_t old[KEY_LEN], next[KEY_LEN];
	char name[NAME_MAX + 1], fresh[NAME_MAX + 1];
	bool sealed = false, was = false, other;
	struct stat st;
	int rc = -1, had, have;

	kept[0] = '\0';
	if (keyfile_find(k, KEYFILE_KEY, &was, err) == -1 ||
	    keyfile_find(k, KEYFILE_NEXT, &sealed, err) == -1)
		goto out;
	if ((had = keyfile_read(k, KEYFILE_KEY, old, err)) == -1 ||
	    (have = keyfile_read(k, KEYFILE_NEXT, next, err)) == -1)
		goto out;
	if (have == 0) {
		(void)gone(k, KEYFILE_NEXT, err);
		goto out;
	}
	/* If the older key's file was removed before, that key can't be kept.
	 * The next key takes its place all the same, because everything opens
	 * with the next key by now. */
	other = had == 0 || memcmp(old, next, sizeof(old)) != 0;
	if ((other && had == 1 && keep(k, old, was, kept, err) == -1) ||
	    ((other || was != sealed) &&
		put_key(k, file_of(k, KEYFILE_KEY, sealed, name), sealed, next,
		    owner(k, &st), true, err) == -1))
		goto out;
	forget(k, KEYFILE_KEY, !sealed);
	forget(k, KEYFILE_NEXT, true);
	forget(k, KEYFILE_NEXT, false);
	snprintf(fresh, sizeof(fresh), "%.200s.fresh", k->name);
	(void)unlinkat(k->dir, fresh, 0); /* left by a killed run */
	rc = fsync(k->dir) == -1 ? err_sys(err, FAILURE_INTERNAL, "%s", k->name)
				 : 0;
out:
	explicit_bzero(old, sizeof(old));
	explicit_bzero(next, sizeof(next));
	return rc;
}

/* ---- first steps ---- */

int
keyfile_id(const char *path, uint8_t id[KEY_ID_LEN], char where[SETUP_PATH_MAX],
    struct err *err)
{
	struct keyfile k = {.dir = -1};
	bool sealed = false;
	int rc = -1;

	if (keyfile_open(path, &k, err) == 0 &&
	    (rc = keyfile_find(&k, KEYFILE_KEY, &sealed, err)) == 1) {
		rc = keyfile_which_id(&k, KEYFILE_KEY, id, err);
		if (snprintf(where, SETUP_PATH_MAX, "%s%s", path,
			sealed ? ".cred" : "") >= SETUP_PATH_MAX)
			rc = err_set(
			    err, FAILURE_INVALID_PARAMS, "key_file: too long");
	}
	keyfile_close(&k);
	return rc;
}

enum setup_outcome
keyfile_make(const char *path, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *err)
{
	struct keyfile k = {.dir = -1};
	uint8_t key[KEY_LEN];
	int rc;

	if ((rc = keyfile_id(path, id, where, err)) != 0)
		return rc == 1 ? SETUP_ALREADY : SETUP_FAILED;
	if (keyfile_open(path, &k, err) == -1)
		return SETUP_FAILED;
	random_bytes(key, sizeof(key));
	rc = put_first(&k, key, err);
	explicit_bzero(key, sizeof(key));
	keyfile_close(&k);
	if (rc == 0)
		rc = keyfile_id(path, id, where, err) == 1 ? 0 : -1;
	return rc == 0 ? SETUP_DONE : SETUP_FAILED;
}

/* ---- copies ---- */

/* Prints the key as base64(1) does: with + and /, and with padding. */
static int
print_base64(const uint8_t key[KEY_LEN], struct err *err)
{
	char text[BASE64_CHARS + 1];
	int rc = 0;

	(void)b64url_encode(key, KEY_LEN, text);
	for (char *c = text; *c != '\0'; c++)
		*c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
	if (printf("%s=\n", text) < 0 || fflush(stdout) != 0)
		rc = err_sys(err, FAILURE_INTERNAL, "standard output");
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* Reads a line that print_base64() prints. Returns false for any other line. */
static bool
read_base64(const uint8_t *line, size_t n, uint8_t key[KEY_LEN])
{
	char text[BASE64_CHARS - 1];
	bool ok = n == BASE64_CHARS && line[n - 1] == '=';

	for (size_t i = 0; ok && i < sizeof(text); i++) {
		ok = line[i] != '-' && line[i] != '_';
		text[i] = line[i] == '+' ? '-'
		    : line[i] == '/'     ? '_'
					 : (char)line[i];
	}
	ok = ok && b64url_decode(text, sizeof(text), key) == KEY_LEN;
	explicit_bzero(text, sizeof(text));
	return ok;
}

int
keyfile_export(const struct keyfile *k, enum keyfile_which w, const char *path,
    struct err *err)
{
	uint8_t key[KEY_LEN];
	int fd = -1, rc;

	if ((rc = keyfile_read(k, w, key, err)) != 1)
		return rc;
	if (strcmp(path, "-") == 0) {
		rc = print_base64(key, err) == 0 ? 1 : -1;
		goto out;
	}
	rc = -1;
	fd = open(
	    path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", path);
		goto out;
	}
	if (write(fd, key, sizeof(key)) != (ssize_t)sizeof(key) ||
	    fsync(fd) == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", path);
		(void)unlink(path);
		goto out;
	}
	rc = 1;
out:
	if (fd != -1)
		close(fd);
	explicit_bzero(key, sizeof(key));
	return rc;
}

/* Reads the key in a file that a person names: 32 bytes as for the vault, a
 * line of base64, or a key that was sealed on this machine. */
static int
read_any(const char *path, uint8_t key[KEY_LEN], struct err *err)
{
	char copy[PATH_MAX];
	struct buf b;
	size_t n;
	int rc;

	if (strlen(path) >= sizeof(copy))
		return err_set(err, FAILURE_INVALID_PARAMS, "name too long");
	memcpy(copy, path, strlen(path) + 1);
	buf_init(&b, FILE_MAX);
	if ((rc = slurp(AT_FDCWD, path, 0, &b, err)) == -1)
		goto out;
	for (n = b.len; n > 0 && (b.p[n - 1] == '\n' || b.p[n - 1] == '\r');)
		n--;
	if (b.len == KEY_LEN)
		memcpy(key, b.p, KEY_LEN);
	else if (!read_base64(b.p, n, key))
		rc = unseal(&b, basename(copy), key, err);
out:
	buf_free(&b);
	return rc;
}

/* Makes the present key the next key before the imported key replaces it, so
 * that neither key is missing at any moment. */
int
keyfile_import(const struct keyfile *k, const char *path, struct err *err)
{
	uint8_t key[KEY_LEN], here[KEY_LEN], next[KEY_LEN];
	char name[NAME_MAX + 1];
	bool sealed = false;
	struct stat st;
	int found, rc = -1;

	if (read_any(path, key, err) == -1)
		goto out;
	if ((found = keyfile_read(k, KEYFILE_KEY, here, err)) == -1) {
		(void)err_wrap(err,
		    "the key that is here can't be read; sealed by another "
		    "machine it never will: move %s.cred away",
		    k->name);
		goto out;
	}
	if (found == 0) {
		rc = put_first(k, key, err) == 0 ? 1 : -1;
		goto out;
	}
	if (memcmp(here, key, sizeof(key)) == 0) {
		rc = 0;
		goto out;
	}
	if (keyfile_find(k, KEYFILE_KEY, &sealed, err) == -1 ||
	    (found = keyfile_read(k, KEYFILE_NEXT, next, err)) == -1)
		goto out;
	if (found == 1 && memcmp(next, here, sizeof(here)) != 0) {
		err_set(err, FAILURE_CONFLICT,
		    "a rotation is under way: end it first "
		    "(mcpboxctl key rotate)");
		goto out;
	}
	if (found == 0 &&
	    put_key(k, file_of(k, KEYFILE_NEXT, sealed, name), sealed, here,
		owner(k, &st), false, err) == -1)
		goto out;
	if (put_key(k, file_of(k, KEYFILE_KEY, sealed, name), sealed, key,
		owner(k, &st), true, err) == 0)
		rc = 1;
out:
	explicit_bzero(key, sizeof(key));
	explicit_bzero(here, sizeof(here));
	explicit_bzero(next, sizeof(next));
	return rc;
}
