/*
 * The root that every runner shares, built once in the zygote's own mount
 * namespace: clone3(CLONE_NEWNS) hands each runner a copy of these mounts, so
 * that a call pays for three small mounts instead of fifty.
 *
 * It is a tmpfs with empty directories, read-only binds of just the files that
 * the interpreter needs, five device nodes, and copies of the host's
 * certificate authorities (certs.c). It has no executable file, and no
 * directory of the host but the standard library and the time zones. Shared
 * libraries are bound one by one: the library directory of a host holds
 * hundreds that no tool has a use for.
 *
 * All runners see the same inodes, read-only, so two of them could signal each
 * other by futexes or timing. The sandbox does not try to stop a covert channel
 * between two willing tools (docs/THREATS.md).
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "root.h"
#include "runner.h"
#include "steps_path.h"

struct paths {
	size_t n;
	char path[RUNNER_LIBS_MAX][RUNNER_PATH_MAX];
};

static int
join(char *out, const char *dir, const char *name)
{
	int n = snprintf(out, RUNNER_PATH_MAX, "%s/%s", dir, name);

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

	if (join(whole, RUNNER_BASE, path + 1) == -1)
		return -1;
	for (slash = whole + sizeof(RUNNER_BASE);
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

/* Binds a directory or file of the host at the same path under the base. */
static int
bind_path(const char *path, uint64_t attrs)
{
	char target[RUNNER_PATH_MAX];
	struct stat st;
	int fd;

	steps_path(path);
	if (stat(path, &st) == -1 || join(target, RUNNER_BASE, path + 1) == -1)
		return -1;
	if (make_dirs(path, S_ISDIR(st.st_mode)) == -1)
		return -1;
	if (!S_ISDIR(st.st_mode)) {
		fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
		if (fd == -1)
			return errno == EEXIST ? 0 : -1; /* bound already */
		(void)close(fd);
	}
	if (mount(path, target, NULL, MS_BIND, NULL) == -1)
		return -1;
	return mounts_restrict(target, attrs, false);
}

static int
report_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const int fd = *(const int *)arg;
	const size_t n = strlen(info->dlpi_name) + 1;

	(void)size;
	/* this program and the kernel's vdso have no path */
	if (info->dlpi_name[0] == '/' && n <= RUNNER_PATH_MAX &&
	    write(fd, info->dlpi_name, n) != (ssize_t)n)
		_exit(1);
	return 0;
}

/*
 * Opens every extension module of the standard library, so that the dynamic
 * linker finds their libraries, and writes the paths of all loaded objects.
 * Runs in a process of its own: the zygote must not keep Tcl and SQLite loaded.
 * A module that cannot be opened is skipped: no tool on this host could import
 * it either.
 */
static _Noreturn void
libs_child(const char *stdlib, int fd)
{
	char dir[RUNNER_PATH_MAX], path[RUNNER_PATH_MAX];
	const struct dirent *e;
	const char *dot;
	DIR *d;

	if (join(dir, stdlib, "lib-dynload") == -1)
		_exit(1);
	d = opendir(dir);
	if (d == NULL)
		_exit(1);
	while ((e = readdir(d)) != NULL) {
		dot = strrchr(e->d_name, '.');
		if (dot == NULL || strcmp(dot, ".so") != 0 ||
		    strncmp(e->d_name, "_tkinter", 8) == 0 ||
		    strncmp(e->d_name, "_test", 5) == 0)
			continue;
		if (join(path, dir, e->d_name) == 0)
			(void)dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	}
	(void)dl_iterate_phdr(report_object, &fd);
	_exit(0);
}

static int
libs_find(const char *stdlib, struct paths *out, struct err *err)
{
	struct buf all;
	uint8_t chunk[4096];
	const char *p, *end;
	size_t n;
	ssize_t got;
	pid_t pid;
	int fds[2], status, rc = -1;

	buf_init(&all, (size_t)RUNNER_LIBS_MAX * RUNNER_PATH_MAX);
	if (pipe2(fds, O_CLOEXEC) == -1)
		return err_sys(err, FAILURE_INTERNAL, "pipe");
	pid = fork();
	if (pid == -1) {
		(void)close(fds[0]);
		(void)close(fds[1]);
		return err_sys(err, FAILURE_INTERNAL, "fork");
	}
	if (pid == 0) {
		(void)close(fds[0]);
		libs_child(stdlib, fds[1]);
	}
	(void)close(fds[1]);
	while ((got = read(fds[0], chunk, sizeof(chunk))) > 0)
		buf_put(&all, chunk, (size_t)got);
	(void)close(fds[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0 || got == -1 ||
	    all.failed || all.len == 0 || all.p[all.len - 1] != '\0') {
		(void)err_set(err, FAILURE_INTERNAL,
		    "cannot list the interpreter's shared libraries");
		goto out;
	}
	for (p = (const char *)all.p, end = p + all.len; p < end; p += n) {
		n = strlen(p) + 1;
		if (out->n == RUNNER_LIBS_MAX) {
			(void)err_set(err, FAILURE_INTERNAL,
			    "more than %d shared libraries", RUNNER_LIBS_MAX);
			goto out;
		}
		memcpy(out->path[out->n++], p, n);
	}
	rc = 0;
out:
	buf_free(&all);
	return rc;
}

/* Makes /lib and /lib64 links if they are links on this host, as on Debian: a
 * tool's dlopen() looks there. On other hosts they are directories, which
 * bind_path() makes. */
static int
links(void)
{
	static const char *const names[] = {"lib", "lib64", NULL};
	char from[RUNNER_PATH_MAX], to[RUNNER_PATH_MAX], at[RUNNER_PATH_MAX];
	ssize_t n;
	int i;

	for (i = 0; names[i] != NULL; i++) {
		if (join(from, "", names[i]) == -1 ||
		    join(at, RUNNER_BASE, names[i]) == -1)
			return -1;
		n = readlink(from, to, sizeof(to) - 1);
		if (n == -1)
			continue;
		to[n] = '\0';
		steps_path(from);
		if (symlink(to, at) == -1)
			return -1;
	}
	return 0;
}

/* Binds the libraries. Objects below stdlib need no bind of their own, because
 * the whole directory is bound. The linker reports the paths by which it found
 * the objects (/lib/x86_64-linux-gnu/...); the real directories are used. */
static int
bind_libs(const struct paths *libs, const char *stdlib)
{
	const size_t prefix = strlen(stdlib);
	char real[RUNNER_PATH_MAX], name[RUNNER_PATH_MAX], *p, *slash;
	size_t i;
	int rc = 0;

	for (i = 0; i < libs->n && rc == 0; i++) {
		if (strncmp(libs->path[i], stdlib, prefix) == 0)
			continue;
		/*
		 * Only the directory is resolved. The file's name must stay as
		 * other objects ask for it (libssl.so.3). A bind mount follows
		 * a link to the file itself.
		 */
		(void)snprintf(name, sizeof(name), "%s", libs->path[i]);
		slash = strrchr(name, '/');
		*slash = '\0';
		p = realpath(name[0] == '\0' ? "/" : name, NULL);
		if (p == NULL)
			return -1;
		rc = join(real, p, slash + 1);
		free(p);
		if (rc == 0)
			rc = bind_path(real,
			    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
				MOUNT_ATTR_NODEV);
	}
	return rc;
}

const char *const template_devices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", NULL};

/*
 * Links /dev/shm, where POSIX shared memory and semaphores (multiprocessing)
 * live by name, to the call's own /tmp, so that they count against the limit of
 * that /tmp.
 */
static int
shm(void)
{
	steps_path("/dev/shm");
	return symlink("/tmp", RUNNER_BASE "/dev/shm");
}

static int
assemble(struct zygote *z, const char *modules, const struct paths *libs)
{
	const char *stdlib = z->stdlib;
	static const char *const empty[] = {"/proc", "/tmp", "/etc", NULL};
	static const char zoneinfo[] = "/usr/share/zoneinfo";
	const uint64_t files =
	    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	int i;

	/* Mounts made here do not appear in the pool or on the host, and mounts
	 * made there do not appear here. */
	steps_path("/");
	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return -1;
	modules_store(z, modules);
	steps_path(RUNNER_BASE);
	if (mount("root", RUNNER_BASE, "tmpfs", MS_NOSUID | MS_NODEV,
		"mode=0755,size=16M,nr_inodes=4096") == -1)
		return -1;
	if (links() == -1 || bind_path(stdlib, files) == -1 ||
	    bind_libs(libs, stdlib) == -1)
		return -1;
	if (access(zoneinfo, R_OK) == 0 &&
	    bind_path(zoneinfo, files | MOUNT_ATTR_NOEXEC) == -1)
		return -1;
	for (i = 0; empty[i] != NULL; i++) {
		steps_path(empty[i]);
		if (make_dirs(empty[i], true) == -1)
			return -1;
	}
	steps_path(RUNNER_MODULES);
	if (modules_places() == -1)
		return -1;
	if (etc_build() == -1 || certs_build() == -1)
		return -1;
	/* The mount of a device node must not be nodev. A device can be written
	 * to even if its mount is read-only. There is no tty and no console. */
	for (i = 0; template_devices[i] != NULL; i++) {
		if (bind_path(template_devices[i],
			MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NOEXEC) == -1)
			return -1;
	}
	if (shm() == -1)
		return -1;
	return mounts_restrict(RUNNER_BASE, files | MOUNT_ATTR_NOEXEC, false);
}

int
template_build(struct zygote *z, const char *modules, const char *commands,
    struct err *err)
{
	struct paths *libs;
	int rc = -1;

	libs = calloc(1, sizeof(*libs));
	if (libs == NULL)
		return err_sys(err, FAILURE_INTERNAL, "shared libraries");
	if (libs_find(z->stdlib, libs, err) == -1)
		goto out;
	if (assemble(z, modules, libs) == -1) {
		(void)err_sys(
		    err, FAILURE_INTERNAL, "template: %s", steps_failed_path());
		goto out;
	}
	rc = toolbox_build(z, commands, err);
out:
	free(libs);
	return rc;
}
