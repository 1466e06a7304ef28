/*
 * The root of commands, and the programs in it.
 *
 * The zygote copies each program of the configured list, its dynamic loader and
 * the shared objects it needs into one tmpfs, and keeps the SHA-256 of the
 * copy. Copies, not binds, for three reasons: the hashed bytes are those that
 * run, even if a package upgrade changes the host; no bit of the host's inode
 * comes along (set-id, capabilities, owner); and the toolbox is one mount, so a
 * runner of Python, which does not use it, pays for one mount at its fork.
 *
 * The author of the configuration chooses the programs. A file that its group
 * or everybody may write, or that belongs to one of the pool's ids, is left
 * out. Inside the pool all other users of the host look alike, so their files
 * can't be distinguished from root's. So the list must name files that root
 * owns (conf_keys.def). The loader itself lists the shared objects, in a
 * throw-away process that runs none of the program's code (ld.so(8), --list).
 * It does not find objects that a program opens by dlopen(), so these are
 * missing.
 *
 * A runner of kind COMMAND adds the devices, /etc and the time zones of the
 * Python root (mounts.c does proc and /tmp) and makes this tree its root.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/mount.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "root.h"
#include "runner.h"
#include "steps_path.h"

enum {
	TOOLS_MAX = 256,         /* programs and loaders */
	TRACE_MAX = 64 * 1024,   /* the loader's list for one program */
	HEADERS_MAX = 64,        /* of an ELF file; usual files have a dozen */
	COPY_CHUNK = 128 * 1024, /* bytes at once */
	/* Owner of all files that belong to none of the pool's ids (the default
	 * of fs.overflowuid), so of root's files, too. */
	UNMAPPED_UID = 65534,
};

/* TOOLBOX_OPTIONS: 128M is room for a long list of commands. The size is
 * bounded because a toolbox is memory: for a while two zygotes may each have a
 * toolbox, within one limit (pool/cgroup.c). */
#define SEPARATORS      ", \t"
#define TOOLBOX_OPTIONS "mode=0755,size=128M,nr_inodes=8192"

struct toolbox {
	size_t n;
	struct toolbox_file file[TOOLS_MAX];
};

static int
at_base(char *out, const char *path)
{
	int n = snprintf(out, RUNNER_PATH_MAX, "%s%s", TOOLBOX_BASE, path);

	if (n >= 0 && n < RUNNER_PATH_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* Makes the parent directories of path under the base, and path itself if
 * `leaf`. */
static int
make_dirs(const char *path, bool leaf)
{
	char whole[RUNNER_PATH_MAX], *slash;

	if (at_base(whole, path) == -1)
		return -1;
	for (slash = whole + sizeof(TOOLBOX_BASE);
	    (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		if (mkdir(whole, 0755) == -1 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	if (leaf && mkdir(whole, 0755) == -1 && errno != EEXIST)
		return -1;
	return 0;
}

/* Copies an open file to another one and hashes the written bytes. */
static int
copy(int from, int to, uint8_t digest[32])
{
	static uint8_t chunk[COPY_CHUNK];
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	int rc = -1;
	ssize_t n;

	errno = ENOMEM;
	if (md == NULL || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1)
		goto out;
	while ((n = read(from, chunk, sizeof(chunk))) > 0)
		if (write(to, chunk, (size_t)n) != n ||
		    EVP_DigestUpdate(md, chunk, (size_t)n) != 1)
			goto out;
	if (n == 0 && EVP_DigestFinal_ex(md, digest, NULL) == 1)
		rc = 0;
out:
	EVP_MD_CTX_free(md);
	return rc;
}

/*
 * Copies a file of the host to the same place in the toolbox. The copy can be
 * read and executed, nothing else. Returns 0, 1 if the toolbox has the file
 * already, or -1 with errno.
 */
static int
take_file(const char *path, uint8_t digest[32])
{
	char target[RUNNER_PATH_MAX];
	struct stat st;
	int from, to = -1, rc = -1;

	if (at_base(target, path) == -1)
		return -1;
	from = open(path, O_RDONLY | O_CLOEXEC);
	if (from == -1)
		return -1;
	if (fstat(from, &st) == -1)
		goto out;
	if (!S_ISREG(st.st_mode) || st.st_uid != UNMAPPED_UID ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		errno = EPERM;
		goto out;
	}
	if (make_dirs(path, false) == -1)
		goto out;
	to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (to == -1) {
		rc = errno == EEXIST ? 1 : -1;
		goto out;
	}
	if (copy(from, to, digest) == 0 && fchmod(to, 0555) == 0)
		rc = 0;
	else
		(void)unlink(target);
out:
	(void)close(from);
	if (to != -1)
		(void)close(to);
	return rc;
}

/* Takes the file at path. Sets `real` to its place: the directory is resolved,
 * the last part is not, because programs look the file up by that name. Returns
 * the same as take_file(). */
static int
take(const char *path, uint8_t digest[32], char real[RUNNER_PATH_MAX])
{
	char name[RUNNER_PATH_MAX], *slash, *dir;
	int n;

	(void)snprintf(name, sizeof(name), "%s", path);
	slash = strrchr(name, '/');
	if (slash == NULL) {
		errno = EINVAL;
		return -1;
	}
	*slash = '\0';
	dir = realpath(name[0] == '\0' ? "/" : name, NULL);
	if (dir == NULL)
		return -1;
	n = snprintf(real, RUNNER_PATH_MAX, "%s/%s", dir, slash + 1);
	free(dir);
	if (n < 0 || n >= RUNNER_PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return take_file(real, digest);
}

/* Reads the loader that an ELF program names (PT_INTERP), "" if the program
 * needs none. A program of another word size, or a file that is no ELF program,
 * fails with ENOEXEC. */
static int
interpreter(const char *path, char *out, size_t size)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) p;
	int fd, i, rc = -1;

	out[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	errno = ENOEXEC;
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] !=
		(sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    head.e_phentsize != sizeof(p) || head.e_phnum > HEADERS_MAX)
		goto out;
	for (i = 0; i < head.e_phnum; i++) {
		if (pread(fd, &p, sizeof(p),
			(off_t)(head.e_phoff + (size_t)i * sizeof(p))) !=
		    (ssize_t)sizeof(p))
			goto out;
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz == 0 || p.p_filesz >= size ||
		    pread(fd, out, p.p_filesz, (off_t)p.p_offset) !=
			(ssize_t)p.p_filesz)
			goto out;
		out[p.p_filesz] = '\0';
		break;
	}
	rc = 0;
out:
	(void)close(fd);
	return rc;
}

static _Noreturn void
trace_child(const char *loader, const char *path, int fd)
{
	char *argv[] = {(char *)(uintptr_t)loader, (char *)(uintptr_t)"--list",
	    (char *)(uintptr_t)path, NULL};
	char *envp[] = {NULL};

	if (dup2(fd, STDOUT_FILENO) != -1)
		(void)execve(loader, argv, envp);
	_exit(127);
}

/* Reads the loader's list of objects as text. */
static int
trace(const char *loader, const char *path, struct buf *text)
{
	uint8_t chunk[4096];
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	pid = fork();
	if (pid == 0)
		trace_child(loader, path, fds[1]);
	(void)close(fds[1]);
	while (pid != -1 && (n = read(fds[0], chunk, sizeof(chunk))) > 0)
		buf_put(text, chunk, (size_t)n);
	(void)close(fds[0]);
	buf_putc(text, '\0');
	if (pid == -1 || waitpid(pid, &status, 0) != pid)
		return -1;
	errno = ELIBBAD;
	return status == 0 && !text->failed ? 0 : -1;
}

/*
 * Takes the objects that the loader lists. A line is "\tNAME => PATH
 * (ADDRESS)", "\tPATH (ADDRESS)" for an object with a path in the program
 * itself, or "\tNAME (ADDRESS)" for the kernel's vdso.
 */
static int
take_libs(const char *loader, const char *path)
{
	uint8_t ignored[32];
	char real[RUNNER_PATH_MAX];
	struct buf text;
	char *line, *end, *slash, *space, *next;
	int rc = -1;

	buf_init(&text, TRACE_MAX);
	if (trace(loader, path, &text) == -1)
		goto out;
	for (line = (char *)text.p; *line != '\0'; line = next) {
		end = strchr(line, '\n');
		next = end == NULL ? line + strlen(line) : end + 1;
		if (end != NULL)
			*end = '\0';
		slash = strchr(line, '/');
		if (slash == NULL) {
			if (strstr(line, "not found") == NULL)
				continue;
			errno = ELIBACC;
			goto out;
		}
		space = strstr(slash, " (");
		if (space != NULL)
			*space = '\0';
		if (take(slash, ignored, real) == -1)
			goto out;
	}
	rc = 0;
out:
	buf_free(&text);
	return rc;
}

/* Appends to the list of executable files. */
static int
remember(
    struct toolbox *t, const char *path, const uint8_t digest[32], bool loader)
{
	struct toolbox_file *f = &t->file[t->n];

	if (t->n == TOOLS_MAX) {
		errno = E2BIG;
		return -1;
	}
	f->path = strdup(path);
	if (f->path == NULL)
		return -1;
	memcpy(f->digest, digest, sizeof(f->digest));
	f->loader = loader;
	t->n++;
	return 0;
}

static int
add(struct toolbox *t, const char *path)
{
	char loader[RUNNER_PATH_MAX];
	char real[RUNNER_PATH_MAX], program[RUNNER_PATH_MAX];
	uint8_t digest[32], own[32];
	int rc;

	if (path[0] != '/') {
		errno = EINVAL;
		return -1;
	}
	/* The program is taken first, so its owner and mode are judged before
	 * the loader looks into it. */
	rc = take(path, own, program);
	if (rc != 0) /* 1: named twice */
		return rc == 1 ? 0 : -1;
	if (interpreter(path, loader, sizeof(loader)) == -1)
		return -1;
	if (loader[0] != '\0') {
		rc = take(loader, digest, real);
		if (rc == -1 ||
		    (rc == 0 && remember(t, real, digest, true) == -1) ||
		    take_libs(loader, path) == -1)
			return -1;
	}
	return remember(t, program, own, false);
}

/* Adds each program of the list. A program that cannot be added is named in the
 * log and left out, because a host need not have all of them. */
static int
add_all(struct toolbox *t, const char *commands, struct err *err)
{
	char *list, *name, *next;
	size_t n;

	list = strdup(commands);
	if (list == NULL)
		return err_sys(err, FAILURE_INTERNAL, "commands");
	for (name = list; *name != '\0'; name = next) {
		n = strcspn(name, SEPARATORS);
		next = name + n + (name[n] != '\0');
		name[n] = '\0';
		if (n > 0 && add(t, name) == -1)
			/* A missing program is no reason for a warning. */
			log_event(errno == ENOENT ? LOG_LV_INFO : LOG_LV_WARN,
			    "command_left_out", "%s: %s", name,
			    strerror(errno));
	}
	free(list);
	return 0;
}

/* Makes /bin, /lib and the like links if they are links on this host. */
static int
links(void)
{
	static const char *const names[] = {
	    "/bin", "/sbin", "/lib", "/lib64", NULL};
	char to[RUNNER_PATH_MAX], at[RUNNER_PATH_MAX];
	ssize_t n;
	int i;

	for (i = 0; names[i] != NULL; i++) {
		n = readlink(names[i], to, sizeof(to) - 1);
		if (n == -1)
			continue;
		to[n] = '\0';
		if (at_base(at, names[i]) == -1 || symlink(to, at) == -1)
			return -1;
	}
	return 0;
}

/* Makes the places for a runner's mounts: empty directories and files. */
static int
places(void)
{
	static const char *const dirs[] = {
	    "/proc", "/tmp", "/etc", "/dev", "/usr/share/zoneinfo", NULL};
	char at[RUNNER_PATH_MAX];
	int i, fd;

	for (i = 0; dirs[i] != NULL; i++)
		if (make_dirs(dirs[i], true) == -1)
			return -1;
	for (i = 0; template_devices[i] != NULL; i++) {
		if (at_base(at, template_devices[i]) == -1)
			return -1;
		fd = open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
		if (fd == -1)
			return -1;
		(void)close(fd);
	}
	return 0;
}

int
toolbox_build(struct zygote *z, const char *commands, struct err *err)
{
	struct toolbox *t;

	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return err_sys(err, FAILURE_INTERNAL, "toolbox");
	z->toolbox = t;
	if (mount("toolbox", TOOLBOX_BASE, "tmpfs", MS_NOSUID | MS_NODEV,
		TOOLBOX_OPTIONS) == -1 ||
	    links() == -1 || places() == -1)
		return err_sys(
		    err, FAILURE_INTERNAL, "toolbox at " TOOLBOX_BASE);
	if (add_all(t, commands, err) == -1)
		return -1;
	if (mounts_restrict(TOOLBOX_BASE,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		false) == -1)
		return err_sys(err, FAILURE_INTERNAL, "toolbox");
	return 0;
}

/*
 * Finds a program by its configured path, by that path without /usr (/bin is a
 * link to /usr/bin), or by its name without the directory. The short forms are
 * a convenience and decide nothing: only a program with the approved digest is
 * run.
 */
const struct toolbox_file *
toolbox_find(const struct zygote *z, struct ipc_bytes name)
{
	const struct toolbox *t = z->toolbox;
	size_t i, n, skip;
	const char *p;

	for (i = 0; i < t->n; i++) {
		if (t->file[i].loader)
			continue;
		p = t->file[i].path;
		n = strlen(p);
		if (name.n == 0 || name.n > n)
			continue;
		skip = n - name.n;
		if (memcmp(p + skip, name.p, name.n) != 0)
			continue;
		if (skip == 0 ||
		    (skip == 4 && name.p[0] == '/' &&
			memcmp(p, "/usr", 4) == 0) ||
		    (name.p[0] != '/' && p[skip - 1] == '/' &&
			memchr(name.p, '/', name.n) == NULL))
			return &t->file[i];
	}
	return NULL;
}

const struct toolbox_file *
toolbox_file(const struct zygote *z, size_t i)
{
	return i < z->toolbox->n ? &z->toolbox->file[i] : NULL;
}

/* Mounts the parts of the Python root that the toolbox lacks. A step, for
 * commands only. The binds carry the flags of their sources, so all of them are
 * read-only. */
int
toolbox_mounts(struct runner *r)
{
	static const char *const dirs[] = {"/etc", "/usr/share/zoneinfo", NULL};
	const char *const *lists[] = {dirs, template_devices};
	char from[RUNNER_PATH_MAX], to[RUNNER_PATH_MAX];
	const char *const *p;
	int i;

	if (r->fork->kind != RUNNER_COMMAND)
		return 0;
	for (i = 0; i < 2; i++)
		for (p = lists[i]; *p != NULL; p++) {
			steps_path(*p);
			(void)snprintf(
			    from, sizeof(from), "%s%s", RUNNER_BASE, *p);
			if (at_base(to, *p) == -1)
				return -1;
			if (access(from, F_OK) == -1)
				continue; /* a host without time zones */
			if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) == -1)
				return -1;
		}
	return 0;
}
