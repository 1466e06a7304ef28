/*
 * The runners' /etc, a part of the template: names for every uid that a call
 * may get, and the resolver's files. This /etc holds nothing of the host's
 * /etc. All calls share it, so that no call pays for a mount and five files of
 * its own. A tool learns from it only how many uids the pool has.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "root.h"
#include "runner.h"
#include "steps_path.h"

enum {
	/* conf_keys.def: runner_uid_count is at most this. */
	UIDS_MAX = 64512,
	/* "tool64512:x:64512:64512:tool:/tmp:/nonexistent" and newline */
	LINE_MAX_BYTES = 64
};

/* Sets *count to the number of the pool's uids. The second line of our user
 * namespace's map (user_namespaces(7)) starts at 1 and has all uids of the
 * pool. */
static int
uids(unsigned *count)
{
	static const char path[] = "/proc/self/uid_map";
	char text[256];
	const char *line;
	unsigned inside, outside;
	ssize_t n;
	int fd;

	steps_path(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	line = strchr(text, '\n');
	if (line == NULL ||
	    sscanf(line + 1, "%u %u %u", &inside, &outside, count) != 3 ||
	    inside != 1 || *count == 0 || *count > UIDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

static int
put(const char *name, const void *text, size_t n)
{
	char path[RUNNER_PATH_MAX];
	int fd, rc = -1;

	(void)snprintf(path, sizeof(path), "%s/etc/%s", RUNNER_BASE, name);
	steps_path(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd == -1)
		return -1;
	if (write(fd, text, n) == (ssize_t)n && fchmod(fd, 0444) == 0)
		rc = 0;
	(void)close(fd);
	return rc;
}

static int
put_text(const char *name, const char *text)
{
	return put(name, text, strlen(text));
}

int
etc_build(void)
{
	struct buf passwd, group;
	unsigned count, uid;
	int rc = -1;

	if (uids(&count) == -1)
		return -1;
	buf_init(&passwd, (size_t)UIDS_MAX * LINE_MAX_BYTES);
	buf_init(&group, (size_t)UIDS_MAX * LINE_MAX_BYTES);
	for (uid = 1; uid <= count; uid++) {
		buf_putf(&passwd, "tool%u:x:%u:%u:tool:/tmp:/nonexistent\n",
		    uid, uid, uid);
		buf_putf(&group, "tool%u:x:%u:\n", uid, uid);
	}
	if (passwd.failed || group.failed) {
		errno = ENOMEM;
		goto out;
	}
	if (put("passwd", passwd.p, passwd.len) == -1 ||
	    put("group", group.p, group.len) == -1 ||
	    put_text("hosts",
		"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 sandbox\n") ==
		-1 ||
	    put_text("nsswitch.conf",
		"passwd: files\ngroup: files\nhosts: files\n") == -1 ||
	    put_text("nsswitch.network",
		"passwd: files\ngroup: files\nhosts: files dns\n") == -1 ||
	    put_text("resolv.conf",
		"nameserver 127.0.0.1\n"
		"options use-vc timeout:5 attempts:1\n") == -1 ||
	    put_text("services",
		"ftp 21/tcp\nssh 22/tcp\nsmtp 25/tcp\ndomain 53/tcp\n"
		"domain 53/udp\nhttp 80/tcp\nntp 123/udp\nimap2 143/tcp imap\n"
		"ldap 389/tcp\nhttps 443/tcp\nhttps 443/udp\n"
		"submission 587/tcp\nldaps 636/tcp\nimaps 993/tcp\n"
		"postgresql 5432/tcp\n") == -1 ||
	    put_text("host.conf", "multi on\n") == -1)
		goto out;
	rc = 0;
out:
	buf_free(&passwd);
	buf_free(&group);
	return rc;
}

/*
 * Makes names resolve for a runner that is granted hosts. The resolver connects
 * to 127.0.0.1. Nothing listens there in this namespace: the runner gets a
 * connection to sandboxd-egress, which is the name server. The resolver uses
 * TCP, so that a query is one connect(2) and one stream. For a runner without
 * hosts, a name that isn't in /etc/hosts is unknown at once. The bind mount has
 * its source's flags, so it is read-only. Called before toolbox_mounts(), which
 * binds this /etc.
 */
int
etc_names(struct runner *r)
{
	if (r->fork->network == 0)
		return 0;
	steps_path("/etc/nsswitch.conf");
	return mount(RUNNER_BASE "/etc/nsswitch.network",
	    RUNNER_BASE "/etc/nsswitch.conf", NULL, MS_BIND, NULL);
}
