/*
 * The program's /etc: names for its own user, and the files of the host that
 * programs need and that say nothing about the machine's people, services or
 * secrets. Small files are copied, which costs less than a mount; folders are
 * mounted read-only. The rest of the host's /etc is absent.
 */
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A file that is larger is left out: ld.so.cache of a large desktop has some
 * hundred kilobytes. */
enum { COPY_MAX = 4 << 20 };

static const char *const folders[] = {"/etc/alternatives",
    "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts",
    "/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk",
    "/etc/ld.so.conf.d", "/etc/perl", "/etc/pki/ca-trust", "/etc/pki/tls",
    "/etc/python3", "/etc/ssl/certs", "/etc/terminfo", "/etc/vim", "/etc/xdg"};

/* A link is copied as a link. */
static const char *const files[] = {"bash.bashrc", "ca-certificates.conf",
    "debian_version", "inputrc", "ld.so.cache", "ld.so.conf", "localtime",
    "magic", "mime.types", "os-release", "protocols", "services", "shells",
    "ssl/openssl.cnf", "timezone"};

void
etc_open(struct etc_tree t[ETC_TREES])
{
	_Static_assert(LENGTH(folders) == ETC_TREES, "a place for each");
	for (size_t i = 0; i < ETC_TREES; i++) {
		t[i].path = folders[i];
		t[i].fd = root_tree(folders[i], true);
	}
}

static int
put(int root, const char *name, const char *text)
{
	const size_t n = strlen(text);
	char path[64];
	int fd, rc = -1;

	(void)snprintf(path, sizeof(path), "etc/%s", name);
	fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd == -1)
		return -1;
	if (write(fd, text, n) == (ssize_t)n)
		rc = 0;
	close(fd);
	return rc;
}

/* Copies a file or a link of the host. A file that is missing, or is neither,
 * is left out. */
static int
copy(int root, const char *name)
{
	char from[64], to[64], target[PLAN_PATH_MAX];
	struct stat st;
	ssize_t n;
	int in, out, rc = -1;

	(void)snprintf(from, sizeof(from), "/etc/%s", name);
	(void)snprintf(to, sizeof(to), "etc/%s", name);
	n = readlink(from, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		return symlinkat(target, root, to);
	}
	in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (in == -1)
		return 0;
	if (fstat(in, &st) == -1 || !S_ISREG(st.st_mode) ||
	    st.st_size > COPY_MAX) {
		close(in);
		return 0;
	}
	out = openat(root, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (out != -1) {
		while ((n = sendfile(out, in, NULL, COPY_MAX)) > 0)
			continue;
		rc = n == 0 ? 0 : -1;
		close(out);
	}
	close(in);
	return rc;
}

int
etc_build(
    const struct plan *p, int root, struct etc_tree t[ETC_TREES], struct err *e)
{
	char passwd[PLAN_PATH_MAX + 512], group[512];

	(void)snprintf(passwd, sizeof(passwd),
	    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
	    "%.128s:x:%u:%u::%s:/bin/sh\n"
	    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	    p->user, (unsigned)p->uid, (unsigned)p->gid, p->home);
	(void)snprintf(group, sizeof(group),
	    "root:x:0:\n%.128s:x:%u:\nnogroup:x:65534:\n", p->user,
	    (unsigned)p->gid);
	if (mkdirat(root, "etc", 0755) == -1 ||
	    mkdirat(root, "etc/ssl", 0755) == -1 ||
	    put(root, "passwd", passwd) == -1 ||
	    put(root, "group", group) == -1 ||
	    put(root, "hostname", "sandbox\n") == -1 ||
	    put(root, "hosts",
		"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 sandbox\n") ==
		-1 ||
	    put(root, "nsswitch.conf",
		"passwd: files\ngroup: files\nhosts: files dns\n"
		"services: files\nprotocols: files\n") == -1)
		return err_sys(e, FAILURE_INTERNAL, "the files of /etc");
	/* 127.0.0.1 is the process of the network (../net/resolver.c). */
	if (p->nhosts > 0 &&
	    put(root, "resolv.conf",
		"nameserver 127.0.0.1\noptions timeout:5 attempts:2\n") == -1)
		return err_sys(e, FAILURE_INTERNAL, "/etc/resolv.conf");
	for (size_t i = 0; i < LENGTH(files); i++)
		if (copy(root, files[i]) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "copy /etc/%s", files[i]);
	for (size_t i = 0; i < ETC_TREES; i++)
		if (t[i].fd != -1 &&
		    root_attach(root, t[i].fd, t[i].path, false) == -1)
			return err_sys(
			    e, FAILURE_INTERNAL, "mount %s", t[i].path);
	return 0;
}
