/*
 * mcpboxctl key status | rotate | verify (decision 0039).
 *
 * The files are this program's business, since the vault opens none: where they
 * are comes from our own configuration, never from the vault, which must not
 * choose what root renames. All names are taken in the one directory that was
 * opened first, and none is followed if it is a link.
 *
 * What stands where, and what each step leaves if everything is killed there:
 *
 *	key_file.next made, on the disk     the vault reads both when it starts
 *	KEY_NEXT                            new values are under the new key
 *	KEY_STEP ...                        so is what rested, more and more
 *	KEY_END                             the database takes no other any more
 *	key_file kept as key_file.ID, key_file.next renamed to key_file
 *
 * A second run begins at the top and finds what is done.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crypto.h"
#include "ctl.h"
#include "ids.h"
#include "renew.h"

/* The directory of the key, and the names in it. */
struct place {
	int dir;
	char name[NAME_MAX + 1], next[NAME_MAX + 1], fresh[NAME_MAX + 1];
};

static enum ctl_status
complain(const char *name)
{
	fprintf(stderr, "mcpboxctl: %s: %s\n", name, strerror(errno));
	return CTL_REFUSED;
}

static int
name_in(char *out, const char *base, const char *suffix)
{
	int n = snprintf(out, NAME_MAX + 1, "%s%s", base, suffix);

	return n > 0 && n <= NAME_MAX ? 0 : -1;
}

static enum ctl_status
place_open(const char *path, struct place *p)
{
	char copy[PATH_MAX], again[PATH_MAX];

	p->dir = -1;
	if (strlen(path) >= sizeof(copy)) {
		errno = ENAMETOOLONG;
		return complain(path);
	}
	memcpy(copy, path, strlen(path) + 1);
	memcpy(again, path, strlen(path) + 1);
	if (name_in(p->name, basename(copy), "") == -1 ||
	    name_in(p->next, p->name, ".next") == -1 ||
	    name_in(p->fresh, p->name, ".fresh") == -1) {
		errno = ENAMETOOLONG;
		return complain(path);
	}
	p->dir = open(dirname(again), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return p->dir == -1 ? complain(path) : CTL_DONE;
}

/* A key file open for reading; -1 with errno. */
static int
key_open(const struct place *p, const char *name)
{
	return openat(
	    p->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* The id of the key in a file. 0; -1 with errno (ENOENT: there is none). */
static int
key_id(const struct place *p, const char *name, uint8_t id[KEY_ID_LEN])
{
	uint8_t key[KEY_LEN + 1];
	int fd = key_open(p, name), saved;
	ssize_t n;

	if (fd == -1)
		return -1;
	n = pread(fd, key, sizeof(key), 0);
	saved = n == -1 ? errno : EINVAL;
	close(fd);
	if (n == KEY_LEN)
		master_key_id(key, id);
	explicit_bzero(key, sizeof(key));
	errno = saved;
	return n == KEY_LEN ? 0 : -1;
}

/* As the first key is: owner, group, 0400. Written whole and on the disk before
 * it has its name, which is on the disk before anybody uses the key. */
static int
write_key(const struct place *p)
{
	uint8_t key[KEY_LEN];
	struct stat st;
	int fd = -1, rc = -1;

	if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	(void)unlinkat(p->dir, p->fresh, 0); /* of a run that was killed */
	fd = openat(p->dir, p->fresh,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd == -1)
		return -1;
	random_bytes(key, sizeof(key));
	if (write(fd, key, sizeof(key)) == (ssize_t)sizeof(key) &&
	    fchown(fd, st.st_uid, st.st_gid) == 0 && fchmod(fd, 0400) == 0 &&
	    fsync(fd) == 0 &&
	    renameat(p->dir, p->fresh, p->dir, p->next) == 0 &&
	    fsync(p->dir) == 0)
		rc = 0;
	explicit_bzero(key, sizeof(key));
	close(fd);
	return rc;
}

/* The older key stays as key_file.ID: a backup from before opens with it. */
static int
change_files(const struct place *p, char kept[NAME_MAX + 1])
{
	char hex[2 * KEY_ID_LEN + 2] = ".";
	uint8_t id[KEY_ID_LEN];

	if (key_id(p, p->name, id) == -1)
		return -1;
	hex_encode(id, sizeof(id), hex + 1);
	if (name_in(kept, p->name, hex) == -1) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (linkat(p->dir, p->name, p->dir, kept, 0) == -1 && errno != EEXIST)
		return -1;
	(void)unlinkat(p->dir, p->fresh, 0); /* of a run that was killed */
	return renameat(p->dir, p->next, p->dir, p->name) == -1 ||
		fsync(p->dir) == -1
	    ? -1
	    : 0;
}

/* ---- the vault ---- */

/* How the keys stand; texts borrow from the frame. */
static enum ctl_status
tell(const struct ctl *c, enum ipc_type type, const void *msg,
    struct ipc_frame *f, struct ipc_key_state *state)
{
	enum ctl_status status;
	struct err err;

	status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, type, msg, IPC_KEY_STATE, f);
	if (status == CTL_DONE && ipc_decode(f, state, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		ipc_frame_free(f);
		status = CTL_REFUSED;
	}
	return status;
}

struct totals {
	uint64_t seen, renewed, unreadable;
};

/* Names of values that no key opens, as the vault and admind wrote them. */
static void
show_names(const struct ipc_key_state *m)
{
	struct buf b;

	if (m->names.n == 0)
		return;
	buf_init(&b, IPC_BLOB_MAX);
	show_text(&b, m->names.p, m->names.n, SHOW_TEXT);
	fwrite(b.p, 1, b.len, stderr);
	buf_free(&b);
}

/* Everything that rests, once. */
static enum ctl_status
pass(const struct ctl *c, bool renew, struct totals *t)
{
	struct ipc_key_step step = {
	    .renew = renew, .limit = c->batch != 0 ? c->batch : RENEW_MAX};
	char *after = NULL;
	enum ctl_status status;
	struct ipc_key_state m;
	struct ipc_frame f;

	memset(t, 0, sizeof(*t));
	do {
		step.after = ipc_str(after);
		status = tell(c, IPC_KEY_STEP, &step, &f, &m);
		if (status != CTL_DONE)
			break;
		t->seen += m.seen;
		t->renewed += m.renewed;
		t->unreadable += m.unreadable;
		show_names(&m);
		free(after);
		after = ipc_strdup(m.after);
		ipc_frame_free(&f);
		if (after == NULL) {
			fputs("mcpboxctl: out of memory\n", stderr);
			status = CTL_REFUSED;
		}
	} while (status == CTL_DONE && after[0] != '\0');
	free(after);
	return status;
}

static void
hex_bytes(struct ipc_bytes b, char out[2 * KEY_ID_LEN + 1])
{
	out[0] = '\0';
	if (b.n == KEY_ID_LEN)
		hex_encode(b.p, b.n, out);
}

static enum ctl_status
show_status(const struct ctl *c)
{
	char key[2 * KEY_ID_LEN + 1], older[2 * KEY_ID_LEN + 1];
	struct ipc_key_status ask = {0};
	enum ctl_status status;
	struct ipc_key_state m;
	struct ipc_frame f;

	if ((status = tell(c, IPC_KEY_STATUS, &ask, &f, &m)) != CTL_DONE)
		return status;
	hex_bytes(m.key, key);
	hex_bytes(m.older, older);
	if (c->json)
		printf("{\"key\":\"%s\",\"older\":%s%s%s,\"credential\":%s}\n",
		    key, older[0] != '\0' ? "\"" : "",
		    older[0] != '\0' ? older : "null",
		    older[0] != '\0' ? "\"" : "",
		    m.credential ? "true" : "false");
	else if (older[0] == '\0')
		printf("master key %s\n", key);
	else
		printf("master key %s; %s still opens what is older\n", key,
		    older);
	ipc_frame_free(&f);
	return CTL_DONE;
}

static void
report(const struct ctl *c, const char *what, const struct totals *t)
{
	if (c->json)
		printf("{\"seen\":%llu,\"renewed\":%llu,\"unreadable\":%llu}\n",
		    (unsigned long long)t->seen, (unsigned long long)t->renewed,
		    (unsigned long long)t->unreadable);
	else
		printf("%s: %llu values, %llu renewed, %llu unreadable\n", what,
		    (unsigned long long)t->seen, (unsigned long long)t->renewed,
		    (unsigned long long)t->unreadable);
}

static enum ctl_status
verify(const struct ctl *c)
{
	enum ctl_status status;
	struct totals t;

	if ((status = pass(c, false, &t)) != CTL_DONE)
		return status;
	report(c, "opened", &t);
	return t.unreadable == 0 ? CTL_DONE : CTL_REFUSED;
}

/* Is the vault's newest key the one in this file (*same); is a rotation to it
 * under way (*two)? */
static enum ctl_status
is_vaults(const struct ctl *c, const struct place *p, const char *name,
    bool *same, bool *two)
{
	struct ipc_key_status ask = {0};
	uint8_t id[KEY_ID_LEN];
	enum ctl_status status;
	struct ipc_key_state m;
	struct ipc_frame f;

	if (key_id(p, name, id) == -1)
		return complain(name);
	if ((status = tell(c, IPC_KEY_STATUS, &ask, &f, &m)) != CTL_DONE)
		return status;
	*same = m.key.n == sizeof(id) && memcmp(m.key.p, id, m.key.n) == 0;
	*two = m.older.n != 0 && m.over == 0;
	ipc_frame_free(&f);
	return CTL_DONE;
}

/* A new key for the vault, or the one of a run that was stopped. */
static enum ctl_status
begin(const struct ctl *c, const struct place *p, bool *in_place)
{
	struct ipc_key_next next = {0};
	enum ctl_status status;
	struct ipc_key_state m;
	bool same, two;
	struct ipc_frame f;
	int fd;

	*in_place = false;
	fd = key_open(p, p->next);
	if (fd == -1 && errno != ENOENT)
		return complain(p->next);
	if (fd == -1) {
		status = is_vaults(c, p, p->name, &same, &two);
		if (status != CTL_DONE)
			return status;
		if (!same) {
			fprintf(stderr,
			    "mcpboxctl: the vault's key is not the one in %s: "
			    "name its file (--key-file)\n",
			    p->name);
			return CTL_REFUSED;
		}
		/* Its file has its place already: only the end is missing. */
		if ((*in_place = two))
			return CTL_DONE;
		if (write_key(p) == -1)
			return complain(p->next);
		if ((fd = key_open(p, p->next)) == -1)
			return complain(p->next);
	}
	next.file = fd;
	status = tell(c, IPC_KEY_NEXT, &next, &f, &m);
	close(fd);
	if (status == CTL_DONE)
		ipc_frame_free(&f);
	return status;
}

static enum ctl_status
rotate(const struct ctl *c)
{
	struct ipc_key_end end = {0};
	char kept[NAME_MAX + 1];
	enum ctl_status status;
	struct ipc_key_state m;
	struct totals t;
	struct ipc_frame f;
	struct place p;
	bool in_place;

	if ((status = place_open(c->key_file, &p)) != CTL_DONE ||
	    (status = begin(c, &p, &in_place)) != CTL_DONE)
		goto out;
	if ((status = pass(c, true, &t)) != CTL_DONE)
		goto out;
	if (t.unreadable != 0 && !c->leave_unreadable) {
		report(c, "renewed", &t);
		fputs("mcpboxctl: what no key opens was left as it is; both "
		      "keys stay valid. Set or delete those secrets, or give "
		      "--leave-unreadable, and run this again.\n",
		    stderr);
		status = CTL_REFUSED;
		goto out;
	}
	end.leave = (uint32_t)t.unreadable;
	if ((status = tell(c, IPC_KEY_END, &end, &f, &m)) != CTL_DONE)
		goto out;
	ipc_frame_free(&f);
	kept[0] = '\0';
	if (!in_place && change_files(&p, kept) == -1) {
		status = complain(p.name);
		goto out;
	}
	report(c, "renewed", &t);
	if (!c->json && !in_place)
		printf("the older key is kept as %s: backups from before need "
		       "it\n",
		    kept);
out:
	if (p.dir != -1)
		close(p.dir);
	return status;
}

enum ctl_status
keys_command(const struct ctl *c)
{
	if (strcmp(c->words[1], "status") == 0)
		return show_status(c);
	if (strcmp(c->words[1], "verify") == 0)
		return verify(c);
	if (strcmp(c->words[1], "rotate") == 0)
		return rotate(c);
	return CTL_USAGE;
}
