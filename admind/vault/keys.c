#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keys.h"

/*
 * Whole pages from mmap, so that lock and dump advice cover nothing else.
 * MADV_DONTDUMP and MADV_DONTFORK cannot fail on our own fresh mapping; mlock
 * can (RLIMIT_MEMLOCK), which is reported, not fatal: swap is the machine
 * owner's, and refusing to start would cost more than it protects.
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
	hkdf_sha256(master, "secrets", k->secrets);
	hkdf_sha256(master, "approvals", k->approvals);
	hkdf_sha256(master, "audit", k->audit);
	hkdf_sha256(master, "mcp-session", k->mcp_session);
	hkdf_sha256(master, "verifiers", k->verifiers);
	explicit_bzero(master, KEY_LEN);
}

/*
 * What an attacker who can write in the key's directory could try: a link to a
 * file of known content (O_NOFOLLOW, owner), a fifo that never ends
 * (O_NONBLOCK, regular files only), a file that others can read (mode). All
 * checks are on the open descriptor, so nothing can change between check and
 * read but the content, which its owner alone may write.
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

const struct keys *
keys_load(const char *path, bool *locked, struct err *err)
{
	enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK };
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	struct {
		struct keys keys;
		uint8_t master[KEY_LEN];
	} *mem;
	char credential[4096];
	bool is_credential = false;
	int fd = -1, n, rc = -1;

	if ((mem = keys_memory(sizeof(*mem), locked)) == NULL) {
		err_set(err, FAILURE_INTERNAL, "no memory for keys");
		return NULL;
	}
	if (dir != NULL && dir[0] == '/') {
		n = snprintf(
		    credential, sizeof(credential), "%s/master.key", dir);
		if (n < 0 || (size_t)n >= sizeof(credential)) {
			err_set(err, FAILURE_INTERNAL,
			    "CREDENTIALS_DIRECTORY is too long");
			goto out;
		}
		/* Absent: the setting decides. Anything else wrong with a
		 * credential is an error, never a silent other key. */
		fd = open(credential, FLAGS);
		if (fd == -1 && errno != ENOENT) {
			err_sys(err, FAILURE_INTERNAL, "%s", credential);
			goto out;
		}
		if (fd != -1) {
			is_credential = true;
			path = credential;
		}
	}
	if (fd == -1 && (fd = open(path, FLAGS)) == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", path);
		goto out;
	}
	if (check_file(fd, path, is_credential, err) == -1 ||
	    read_key(fd, path, mem->master, err) == -1)
		goto out;
	keys_derive(mem->master, &mem->keys);
	rc = 0;
out:
	if (fd != -1)
		close(fd);
	if (rc == -1) {
		explicit_bzero(mem, sizeof(*mem));
		return NULL;
	}
	return &mem->keys;
}
