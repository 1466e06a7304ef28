#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal.h"

static int journal = -1;
static struct sockaddr_un journald;

bool
journal_reads(int fd)
{
	const char *s = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;
	char *end;

	if (s == NULL || *s < '0' || *s > '9')
		return false;
	errno = 0;
	dev = strtoull(s, &end, 10);
	if (errno != 0 || *end != ':' || end[1] < '0' || end[1] > '9')
		return false;
	ino = strtoull(end + 1, &end, 10);
	return errno == 0 && *end == '\0' && fstat(fd, &st) == 0 &&
	    st.st_dev == (dev_t)dev && st.st_ino == (ino_t)ino;
}

int
journal_open(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd, saved;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sun.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	if (journal >= 0)
		close(journal);
	journal = fd;
	journald = sun;
	return 0;
}

/*
 * Sends one entry. Each field is NAME, newline, the value's length in 64 bits
 * little-endian, the value, newline. The other form, NAME=value up to a
 * newline, is never used. The length says where a value ends, so the value's
 * author can't add a field.
 *
 * If journald was started again without keeping its socket, the entry is sent
 * to the socket's name.
 */
int
journal_send(const struct journal_field *fields, size_t n)
{
	struct iovec v[JOURNAL_FIELDS_MAX * 5];
	uint64_t len[JOURNAL_FIELDS_MAX];
	struct msghdr m = {.msg_iov = v};
	size_t i, k = 0;

	assert(n <= JOURNAL_FIELDS_MAX);
	if (journal < 0)
		return -1;
	for (i = 0; i < n; i++) {
		len[i] = htole64(fields[i].n);
		v[k++] = (struct iovec){
		    (void *)(uintptr_t)fields[i].name, strlen(fields[i].name)};
		v[k++] = (struct iovec){(void *)(uintptr_t)"\n", 1};
		v[k++] = (struct iovec){&len[i], sizeof(len[i])};
		v[k++] = (struct iovec){
		    (void *)(uintptr_t)fields[i].value, fields[i].n};
		v[k++] = (struct iovec){(void *)(uintptr_t)"\n", 1};
	}
	m.msg_iovlen = k;
	if (sendmsg(journal, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	if (errno != ECONNREFUSED && errno != ENOTCONN)
		return -1;
	m.msg_name = &journald;
	m.msg_namelen = sizeof(journald);
	return sendmsg(journal, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : -1;
}
