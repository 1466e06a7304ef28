/*
 * The root of the program: a new tmpfs, on which all that it may see is
 * mounted. Nothing is taken from a copy of the host's tree, so a path that no
 * line here names is absent.
 *
 * The order is forced. All trees are cloned before the new root covers /tmp.
 * proc is mounted while the host's proc is visible, because the kernel wants
 * that. pivot_root and the detached old root come last: then no mount of the
 * host is left in this namespace.
 *
 * The mounts are cloned with those below them, because the kernel refuses to
 * show a user namespace a mount point that another mount covered.
 *
 * Another process may rename and link in the writable folders while this runs:
 * the program of another run, say. So each path is opened without
 * following a link, the object is compared with the one that was judged, and
 * mounts are attached to descriptors.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

/* The place where the new root is put together: a folder that each host has. */
#define PLACE "/tmp"

#define TMPFS_FLAGS (MS_NOSUID | MS_NODEV)

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Files of proc that name keys of the user: the kernel shows a key's name to
 * each process of its uid. Empty devices are mounted over them. */
static const char *const hidden[] = {"/proc/key-users", "/proc/keys"};

/* Room for the root's own files and folders: some hundred links and mount
 * points. */
#define ROOT_OPTIONS "mode=0755,size=16m,nr_inodes=16k"

static const char *const devices[] = {"/dev/full", "/dev/null", "/dev/random",
    "/dev/tty", "/dev/urandom", "/dev/zero"};

/* On a merged system all but /usr are links into it. */
static const char *const system_folders[] = {
    "/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"};

static const struct {
	const char *target, *path;
} links[] = {
    {"/proc/self/fd", "dev/fd"},
    {"/proc/self/fd/0", "dev/stdin"},
    {"/proc/self/fd/1", "dev/stdout"},
    {"/proc/self/fd/2", "dev/stderr"},
    {"pts/ptmx", "dev/ptmx"},
    {"/run", "var/run"},
};

/* Trees that are cloned before the new root is there. */
struct trees {
	int system[LENGTH(system_folders)];
	int device[LENGTH(devices)];
	int hidden[LENGTH(hidden)]; /* each a /dev/null */
	int folder[PLAN_FOLDERS_MAX + 1];
	int file[PLAN_FILES_MAX];
	struct etc_tree etc[ETC_TREES];
};

static int
open_path(int at, const char *path, uint64_t resolve)
{
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
	    .resolve = resolve | RESOLVE_NO_SYMLINKS,
	};

	return (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
}

/* Clones the mounts at a descriptor, with nosuid and nodev; closes fd. */
static int
clone_tree(int fd, bool readonly, bool device)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID};
	int tree;

	if (readonly)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (!device)
		attr.attr_set |= MOUNT_ATTR_NODEV;
	tree = (int)syscall(SYS_open_tree, fd, "",
	    AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	close(fd);
	if (tree != -1 &&
	    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
		&attr, sizeof(attr)) == -1) {
		close(tree);
		return -1;
	}
	return tree;
}

int
root_tree(const char *path, bool readonly)
{
	int fd = open_path(AT_FDCWD, path, 0);

	return fd == -1 ? -1 : clone_tree(fd, readonly, false);
}

/* Clones the tree of an object that was judged: the path must still lead to
 * it. */
static int
judged_tree(
    const char *path, dev_t device, ino_t inode, bool readonly, struct err *e)
{
	int fd = open_path(AT_FDCWD, path, 0), tree;
	struct stat st;

	if (fd == -1 || fstat(fd, &st) == -1 || st.st_dev != device ||
	    st.st_ino != inode) {
		if (fd != -1)
			close(fd);
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "%.256s was exchanged at this moment: start again", path);
	}
	if ((tree = clone_tree(fd, readonly, false)) == -1)
		return err_sys(e, FAILURE_INTERNAL, "mount %.256s", path);
	return tree;
}

/* Makes the last part of a path whose other parts are there. 0 or -1. */
static int
make_last(int root, const char *path)
{
	char part[PLAN_PATH_MAX];
	char *slash;
	int parent, rc;

	(void)snprintf(part, sizeof(part), "%s", path);
	slash = strrchr(part, '/');
	if (slash != NULL)
		*slash = '\0';
	parent = open_path(root, slash != NULL ? part : ".", RESOLVE_BENEATH);
	if (parent == -1)
		return -1;
	rc = mkdirat(parent, slash != NULL ? slash + 1 : part, 0755);
	close(parent);
	return rc == 0 || errno == EEXIST ? 0 : -1;
}

/* Opens or makes the folder at a path below the new root. */
static int
make_folder(int root, const char *path)
{
	char part[PLAN_PATH_MAX];
	int fd;

	while (*path == '/')
		path++;
	fd = open_path(root, *path != '\0' ? path : ".", RESOLVE_BENEATH);
	if (fd != -1 || errno != ENOENT)
		return fd;
	if (strlen(path) >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (size_t i = 1;; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (make_last(root, part) == -1)
			return -1;
		if (path[i] == '\0')
			break;
	}
	return open_path(root, path, RESOLVE_BENEATH);
}

/* Opens or makes the empty file at a path below the new root. */
static int
make_file(int root, const char *path)
{
	char part[PLAN_PATH_MAX];
	int fd, parent;
	char *slash;

	while (*path == '/')
		path++;
	fd = open_path(root, path, RESOLVE_BENEATH);
	if (fd != -1 || errno != ENOENT)
		return fd;
	if (strlen(path) >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(part, sizeof(part), "%s", path);
	if ((slash = strrchr(part, '/')) == NULL) {
		errno = EINVAL;
		return -1;
	}
	*slash = '\0';
	if ((parent = make_folder(root, part)) == -1)
		return -1;
	fd = openat(parent, slash + 1,
	    O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
	close(parent);
	if (fd == -1)
		return -1;
	close(fd);
	return open_path(root, path, RESOLVE_BENEATH);
}

int
root_attach(int root, int tree, const char *path, bool file)
{
	int at = file ? make_file(root, path) : make_folder(root, path);
	int rc = -1;

	if (at != -1) {
		rc = (int)syscall(SYS_move_mount, tree, "", at, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		close(at);
	}
	close(tree);
	return rc;
}

/* Clones all trees. */
static int
open_all(const struct plan *p, struct trees *t, struct err *e)
{
	struct stat st;
	int fd;

	for (size_t i = 0; i < LENGTH(system_folders); i++) {
		t->system[i] = -1;
		if (lstat(system_folders[i], &st) == -1 || !S_ISDIR(st.st_mode))
			continue;
		if ((t->system[i] = root_tree(system_folders[i], true)) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "mount %s", system_folders[i]);
	}
	for (size_t i = 0; i < LENGTH(devices); i++) {
		fd = open_path(AT_FDCWD, devices[i], 0);
		if (fd == -1 ||
		    (t->device[i] = clone_tree(fd, false, true)) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "mount %s", devices[i]);
	}
	for (size_t i = 0; i < LENGTH(hidden); i++) {
		fd = open_path(AT_FDCWD, "/dev/null", 0);
		if (fd == -1 ||
		    (t->hidden[i] = clone_tree(fd, true, true)) == -1)
			return err_sys(e, FAILURE_INTERNAL, "mount /dev/null");
	}
	for (size_t i = 0; i < p->nfolders; i++)
		if ((t->folder[i] = judged_tree(p->folder[i].path,
			 p->folder[i].device, p->folder[i].inode,
			 !p->folder[i].writable, e)) == -1)
			return -1;
	for (size_t i = 0; i < p->nfiles; i++)
		if ((t->file[i] = judged_tree(p->file[i].path,
			 p->file[i].device, p->file[i].inode, true, e)) == -1)
			return -1;
	etc_open(t->etc);
	return 0;
}

/* Puts the system's folders in place, or the links that the host has. */
static int
put_system(int root, struct trees *t, struct err *e)
{
	char target[PLAN_PATH_MAX];
	ssize_t n;

	for (size_t i = 0; i < LENGTH(system_folders); i++) {
		if (t->system[i] != -1) {
			if (root_attach(root, t->system[i], system_folders[i],
				false) == -1)
				return err_sys(e, FAILURE_INTERNAL, "mount %s",
				    system_folders[i]);
			continue;
		}
		n = readlink(system_folders[i], target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (symlinkat(target, root, system_folders[i] + 1) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "%s", system_folders[i]);
	}
	return 0;
}

/* Mounts a tmpfs of the program's own; path is relative to the new root. */
static int
put_tmpfs(int root, const struct plan *p, const char *path, const char *mode,
    struct err *e)
{
	char options[96];
	int at = make_folder(root, path);

	if (at == -1)
		return err_sys(e, FAILURE_INTERNAL, "make %.256s", path);
	close(at);
	while (*path == '/')
		path++;
	(void)snprintf(options, sizeof(options), "mode=%s,size=%llu", mode,
	    (unsigned long long)p->tmp);
	if (mount("tmpfs", path, "tmpfs", TMPFS_FLAGS, options) == -1)
		return err_sys(e, FAILURE_INTERNAL, "mount /%.256s", path);
	return 0;
}

static int
put_devices(int root, const struct plan *p, struct trees *t, struct err *e)
{
	for (size_t i = 0; i < LENGTH(devices); i++)
		if (root_attach(root, t->device[i], devices[i], true) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "mount %s", devices[i]);
	for (size_t i = 0; i < LENGTH(hidden); i++)
		if (access(hidden[i], F_OK) == -1)
			close(t->hidden[i]); /* a kernel without keys */
		else if (root_attach(root, t->hidden[i], hidden[i], true) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "mount %s", hidden[i]);
	if (mkdirat(root, "dev/pts", 0755) == -1 ||
	    mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0600") == -1)
		return err_sys(e, FAILURE_INTERNAL, "mount /dev/pts");
	return put_tmpfs(root, p, "dev/shm", "1777", e);
}

/* Mounts all folders, those further up first, then the files. */
static int
put_folders(int root, const struct plan *p, struct trees *t, struct err *e)
{
	bool done[PLAN_FOLDERS_MAX + 1] = {false};
	size_t first;

	for (size_t n = 0; n < p->nfolders; n++) {
		first = p->nfolders;
		for (size_t i = 0; i < p->nfolders; i++)
			if (!done[i] &&
			    (first == p->nfolders ||
				strcmp(p->folder[i].path,
				    p->folder[first].path) < 0))
				first = i;
		done[first] = true;
		if (root_attach(root, t->folder[first], p->folder[first].path,
			false) == -1)
			return err_sys(e, FAILURE_INTERNAL, "mount %.256s",
			    p->folder[first].path);
	}
	for (size_t i = 0; i < p->nfiles; i++)
		if (root_attach(root, t->file[i], p->file[i].path, true) == -1)
			return err_sys(e, FAILURE_INTERNAL, "mount %.256s",
			    p->file[i].path);
	return 0;
}

/* Mounts each kept path over itself. The path is opened below the new root, so
 * the tree is the one that the program would see. */
static int
put_kept(int root, const struct plan *p, struct err *e)
{
	int at, tree;

	for (size_t i = 0; i < p->nkept; i++) {
		const struct plan_kept *k = &p->kept[i];

		if (!k->there)
			continue;
		at = open_path(root, k->path + 1, RESOLVE_BENEATH);
		if (at == -1)
			return err_sys(
			    e, FAILURE_SANDBOX_UNAVAILABLE, "%.256s", k->path);
		tree = clone_tree(at, !k->writable, false);
		at = open_path(root, k->path + 1, RESOLVE_BENEATH);
		if (tree == -1 || at == -1 ||
		    syscall(SYS_move_mount, tree, "", at, "",
			MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) ==
			-1)
			return err_sys(
			    e, FAILURE_INTERNAL, "mount %.256s", k->path);
		close(at);
		close(tree);
	}
	return 0;
}

static int
put_links(int root, struct err *e)
{
	if (mkdirat(root, "run", 0755) == -1)
		return err_sys(e, FAILURE_INTERNAL, "make /run");
	for (size_t i = 0; i < LENGTH(links); i++)
		if (symlinkat(links[i].target, root, links[i].path) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "make /%s", links[i].path);
	return 0;
}

/* Makes the new root's own files read-only, and makes it the only root. */
static int
pivot(int root, struct err *e)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY |
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

	if (syscall(SYS_mount_setattr, root, "", AT_EMPTY_PATH, &attr,
		sizeof(attr)) == -1 ||
	    syscall(SYS_pivot_root, ".", ".") == -1 ||
	    umount2(".", MNT_DETACH) == -1 || chdir("/") == -1)
		return err_sys(e, FAILURE_INTERNAL, "pivot_root");
	return 0;
}

int
root_enter(const struct plan *p, struct err *e)
{
	struct trees t;
	int root, rc = -1;

	memset(&t, -1, sizeof(t)); /* no descriptor */
	(void)umask(0);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "private mounts (allow user namespaces: sysctl "
		    "kernel.apparmor_restrict_unprivileged_userns=0)");
	if (open_all(p, &t, e) == -1)
		return -1;
	if (mount("mcpbox-run", PLACE, "tmpfs", TMPFS_FLAGS, ROOT_OPTIONS) ==
		-1 ||
	    chdir(PLACE) == -1 ||
	    (root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return err_sys(e, FAILURE_INTERNAL, "the new root");
	if (mkdirat(root, "proc", 0555) == -1 ||
	    mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		"hidepid=2") == -1) {
		err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "a new /proc (in a container, give the container a whole "
		    "/proc)");
		goto out;
	}
	if (put_system(root, &t, e) == -1 ||
	    put_devices(root, p, &t, e) == -1 ||
	    put_tmpfs(root, p, "tmp", "1777", e) == -1 ||
	    put_tmpfs(root, p, "var/tmp", "1777", e) == -1 ||
	    etc_build(p, root, t.etc, e) == -1 || put_links(root, e) == -1 ||
	    put_tmpfs(root, p, p->home, "0700", e) == -1 ||
	    put_folders(root, p, &t, e) == -1 || put_kept(root, p, e) == -1 ||
	    pivot(root, e) == -1)
		goto out;
	(void)umask(022);
	rc = 0;
out:
	close(root);
	return rc;
}
