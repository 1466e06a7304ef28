#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "keys.h"

/*
 * Allocates whole pages with mmap, so that mlock and madvise cover nothing
 * else. MADV_DONTDUMP and MADV_DONTFORK cannot fail on our own fresh mapping.
 * mlock can fail (RLIMIT_MEMLOCK). That is reported but not fatal, because the
 * machine's owner decides about swap, and a refused start would cost more than
 * it protects.
 */
void *
keys_memory(size_t n, bool *locked)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = (n + page - 1) / page * page;
	void *p;

	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, len, MADV_DONTDUMP);
	(void)madvise(p, len, MADV_DONTFORK);
	if (mlock(p, len) == -1) {
		if (locked != NULL)
			*locked = false;
	} else if (locked != NULL) {
		*locked = true;
	}
	return p;
}

void
keys_derive(uint8_t master[KEY_LEN], struct keys *k)
{
	master_key_id(master, k->id);
	k->also = NULL;
	hkdf_sha256(master, "secrets", k->secrets);
	hkdf_sha256(master, "approvals", k->approvals);
	hkdf_sha256(master, "audit", k->audit);
	hkdf_sha256(master, "mcp-session", k->mcp_session);
	hkdf_sha256(master, "verifiers", k->verifiers);
	explicit_bzero(master, KEY_LEN);
}

/*
 * Checks the key's file against a process that can write its directory. Such a
 * process could put there a link to a file of known content (against this:
 * O_NOFOLLOW, the owner), a fifo that never ends (O_NONBLOCK, regular files
 * only), or a file that others can read (the mode). All checks use the open
 * descriptor, so only the content can change between check and read, and only
 * the file's owner may write it.
 */
static int
check_file(int fd, const char *path, bool credential, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(
		    err, FAILURE_INTERNAL, "%s: not a regular file", path);
	if (st.st_uid != geteuid() && !(credential && st.st_uid == 0))
		return err_set(err, FAILURE_INTERNAL,
		    "%s: owned by uid %u, must be uid %u", path,
		    (unsigned)st.st_uid, (unsigned)geteuid());
	if ((st.st_mode & 07777) != 0400 &&
	    !(credential && (st.st_mode & 07777) == 0440))
		return err_set(err, FAILURE_INTERNAL,
		    "%s: mode is %04o, must be 0400", path,
		    (unsigned)(st.st_mode & 07777));
	if (st.st_size != KEY_LEN)
		return err_set(err, FAILURE_INTERNAL,
		    "%s: %lld bytes, a master key has %d", path,
		    (long long)st.st_size, KEY_LEN);
	return 0;
}

static int
read_key(int fd, const char *path, uint8_t master[KEY_LEN], struct err *err)
{
	size_t have = 0;
	ssize_t n;

	while (have < KEY_LEN) {
		n = read(fd, master + have, KEY_LEN - have);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return err_sys(err, FAILURE_INTERNAL, "%s", path);
		if (n == 0)
			return err_set(err, FAILURE_INTERNAL,
			    "%s: ended after %zu bytes", path, have);
		have += (size_t)n;
	}
	return 0;
}

/*
 * Locked memory for every key. It is made for the first key and never grows,
 * because later keys come when this process is confined and may not lock more
 * memory. Two keys are valid at most; the other places are for new keys that
 * may yet be refused.
 */
enum { SLOTS = 16 };
static struct {
	struct keys keys[SLOTS];
	bool used[SLOTS];
	uint8_t master[KEY_LEN];
	bool locked;
} *pool;

void
keys_drop(struct keys *k)
{
	if (k == NULL)
		return;
	explicit_bzero(k, sizeof(*k));
	pool->used[k - pool->keys] = false;
}

static struct keys *
take_slot(bool *locked, struct err *err)
{
	bool is_locked = false;

	if (pool == NULL) {
		if ((pool = keys_memory(sizeof(*pool), &is_locked)) == NULL) {
			err_set(err, FAILURE_INTERNAL, "no memory for keys");
			return NULL;
		}
		pool->locked = is_locked;
	}
	if (locked != NULL)
		*locked = pool->locked;
	for (size_t i = 0; i < SLOTS; i++)
		if (!pool->used[i]) {
			pool->used[i] = true;
			return &pool->keys[i];
		}
	err_set(err, FAILURE_BUSY, "too many keys at once");
	return NULL;
}

/* Reads a key from fd, derives its sub-keys, and wipes it. NULL with err. */
static struct keys *
take(int fd, const char *path, bool credential, bool *locked, struct err *err)
{
	struct keys *k;

	if (check_file(fd, path, credential, err) == -1 ||
	    (k = take_slot(locked, err)) == NULL)
		return NULL;
	if (read_key(fd, path, pool->master, err) == -1) {
		explicit_bzero(pool->master, sizeof(pool->master));
		keys_drop(k);
		return NULL;
	}
	keys_derive(pool->master, k);
	return k;
}

enum {
	FLAGS = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
	PATH_LEN = 4096
};

/*
 * Returns whether the file is the stand-in for a missing credential. A unit
 * must name every possible credential. If a credential's source is missing,
 * systemd fails the start unless the unit has a stand-in (decision 0058). The
 * stand-in has four bytes, a length that no key has.
 */
static bool
stand_in(int fd)
{
	static const char none[] = "none";
	char bytes[sizeof(none)];

	return pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)strlen(none) &&
	    memcmp(bytes, none, strlen(none)) == 0;
}

/*
 * Opens the credential that holds the key of that name: the credential that was
 * kept sealed, else the plain credential. 1 with *fd open and its path in name;
 * 0: there is none; -1 with err. Any other error than a missing file is
 * returned, so that it never leads silently to another key.
 */
static int
open_credential(const char *key, char name[PATH_LEN], int *fd, struct err *err)
{
	static const char *const forms[] = {".cred", ""};
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	int n;

	if (dir == NULL || dir[0] != '/')
		return 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		n = snprintf(name, PATH_LEN, "%s/%s%s", dir, key, forms[i]);
		if (n < 0 || n >= PATH_LEN)
			return err_set(err, FAILURE_INTERNAL,
			    "CREDENTIALS_DIRECTORY is too long");
		if ((*fd = open(name, FLAGS)) == -1) {
			if (errno == ENOENT)
				continue;
			return err_sys(err, FAILURE_INTERNAL, "%s", name);
		}
		if (!stand_in(*fd))
			return 1;
		close(*fd);
		*fd = -1;
	}
	return 0;
}

/* Loads the second valid key, from the same place as the first. There is one if
 * a rotation was under way when this process last ended. */
static int
load_next(
    const char *path, bool credential, struct keys **head, struct err *err)
{
	struct keys *k;
	char name[PATH_LEN];
	int fd = -1, n;

	if (credential) {
		n = open_credential("master.key.next", name, &fd, err);
		if (n <= 0)
			return n;
	} else {
		n = snprintf(name, sizeof(name), "%s.next", path);
		if (n < 0 || (size_t)n >= sizeof(name))
			return err_set(
			    err, FAILURE_INTERNAL, "key_file is too long");
		if ((fd = open(name, FLAGS)) == -1)
			return errno == ENOENT
			    ? 0
			    : err_sys(err, FAILURE_INTERNAL, "%s", name);
	}
	k = take(fd, name, credential, NULL, err);
	close(fd);
	return k != NULL ? keys_push(head, k, err) : -1;
}

struct keys *
keys_load(const char *path, bool *locked, bool *is_credential, struct err *err)
{
	struct keys *k = NULL;
	char name[PATH_LEN];
	int fd = -1, found = open_credential("master.key", name, &fd, err);

	*is_credential = found == 1;
	if (found == -1)
		return NULL;
	if (found == 0 && (fd = open(path, FLAGS)) == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", path);
		return NULL;
	}
	k = take(fd, found == 1 ? name : path, found == 1, locked, err);
	close(fd);
	if (k != NULL && load_next(path, found == 1, &k, err) == -1) {
		keys_drop(k);
		return NULL;
	}
	return k;
}

/* Returns whether fd is memory that no process can change. A key that
 * systemd-creds keeps sealed comes in such memory, because it has no plain file
 * (decision 0058). */
static bool
is_sealed_memory(int fd)
{
	const int all =
	    F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals != -1 && (seals & all) == all;
}

/*
 * The descriptor comes from uid 0's socket, whose peer could read every key
 * anyway. The rules for the file still apply. Otherwise a key that others can
 * read, or that is on no disk, would be refused only at the next start, when
 * values are already sealed with it. If the service manager reads the key files
 * for us (`credential`), root owns them, or they are sealed and only in memory
 * here. Otherwise this user owns them.
 */
struct keys *
keys_read(int fd, bool credential, struct err *err)
{
	static const char name[] = "the next master key";
	struct keys *k = NULL;
	struct stat st;

	if (fstat(fd, &st) == -1 || lseek(fd, 0, SEEK_SET) == -1)
		err_sys(err, FAILURE_INVALID_PARAMS, "%s", name);
	else if (st.st_nlink == 0 && !(credential && is_sealed_memory(fd)))
		err_set(err, FAILURE_INVALID_PARAMS, "%s was removed", name);
	else if ((k = take(fd, name, credential, NULL, err)) == NULL &&
	    err->failure == FAILURE_INTERNAL)
		err->failure = FAILURE_INVALID_PARAMS;
	return k;
}

int
keys_push(struct keys **head, struct keys *k, struct err *err)
{
	if (keys_find(*head, k->id) == *head) {
		keys_drop(k);
		return 0;
	}
	if ((*head)->also != NULL) {
		keys_drop(k);
		return err_set(err, FAILURE_CONFLICT,
		    "a rotation to another key is under way");
	}
	k->also = *head;
	*head = k;
	return 0;
}

void
keys_forget(struct keys *head)
{
	keys_drop(head->also);
	head->also = NULL;
}

const struct keys *
keys_find(const struct keys *k, const uint8_t id[KEY_ID_LEN])
{
	while (k != NULL && !ct_equal(k->id, id, KEY_ID_LEN))
		k = k->also;
	return k;
}
