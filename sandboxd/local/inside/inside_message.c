/* The messages of inside.h. */
#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

int
inside_send(
    int channel, enum inside_kind kind, int value, const char *text, int fd)
{
	struct inside_message m = {.kind = kind, .value = value};
	struct iovec v = {&m, offsetof(struct inside_message, text)};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};

	(void)snprintf(m.text, sizeof(m.text), "%s", text);
	v.iov_len += strlen(m.text) + 1;
	if (fd != -1) {
		control.h.cmsg_level = SOL_SOCKET;
		control.h.cmsg_type = SCM_RIGHTS;
		control.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
	}
	return sendmsg(channel, &h, MSG_NOSIGNAL) == (ssize_t)v.iov_len ? 0
									: -1;
}

int
inside_receive(int channel, struct inside_message *m, int *fd)
{
	struct iovec v = {m, sizeof(*m) - 1};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr h = {.msg_iov = &v,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	memset(m, 0, sizeof(*m));
	do
		n = recvmsg(channel, &h, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n <= 0)
		return (int)n;
	c = CMSG_FIRSTHDR(&h);
	if (c != NULL && c->cmsg_level == SOL_SOCKET &&
	    c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return 1;
}
