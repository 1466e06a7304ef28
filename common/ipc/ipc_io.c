/*
 * Frames on a SEQPACKET socket. The kernel keeps packet boundaries and ties
 * descriptors to their packet, so there is no reassembly to get wrong.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ids.h"
#include "ipc_io.h"

/* A sealed memfd can't change under the reader: TOCTOU is impossible. */
enum { SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL };

/* Makes a sealed memfd of a blob; -1 with errno. */
static int
memfd_make(const uint8_t *p, size_t n)
{
	int fd, saved;

	fd = memfd_create("mcpbox-blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1)
		return -1;
	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w == -1 && errno == EINTR)
			continue;
		if (w <= 0)
			goto fail;
		p += w;
		n -= (size_t)w;
	}
	if (fcntl(fd, F_ADD_SEALS, SEALS) == -1)
		goto fail;
	return fd;
fail:
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int
ipc_packet_make(struct ipc_packet *pk, enum ipc_type type, uint64_t request,
    const void *msg, struct err *e)
{
	struct ipc_bytes spill;
	int fd;

	memset(pk, 0, sizeof(*pk));
	buf_init(&pk->bytes, IPC_FRAME_MAX);
	if (ipc_encode(type, request, msg, &pk->bytes, &spill, &fd, e) == -1)
		goto fail;
	if (spill.p != NULL) {
		if ((pk->fds[pk->nfds] = memfd_make(spill.p, spill.n)) == -1) {
			err_sys(e, FAILURE_INTERNAL, "memfd for %s",
			    ipc_name(type));
			goto fail;
		}
		pk->nfds++;
	}
	if (fd >= 0) {
		pk->fds[pk->nfds] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (pk->fds[pk->nfds] == -1) {
			err_sys(e, FAILURE_INTERNAL, "descriptor for %s",
			    ipc_name(type));
			goto fail;
		}
		pk->nfds++;
	}
	return 0;
fail:
	ipc_packet_free(pk);
	return -1;
}

int
ipc_packet_send(int sock, const struct ipc_packet *pk)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = {pk->bytes.p, pk->bytes.len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (pk->nfds > 0) {
		memset(&control, 0, sizeof(control));
		m.msg_control = control.buf;
		m.msg_controllen = CMSG_SPACE(pk->nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(pk->nfds * sizeof(int));
		memcpy(CMSG_DATA(c), pk->fds, pk->nfds * sizeof(int));
	}
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (n == -1 && errno == EINTR);
	return n == -1 ? -1 : 0;
}

void
ipc_packet_free(struct ipc_packet *pk)
{
	for (unsigned i = 0; i < pk->nfds; i++)
		close(pk->fds[i]);
	pk->nfds = 0;
	buf_free(&pk->bytes);
}

int
ipc_write(int sock, enum ipc_type type, uint64_t request, const void *msg,
    struct err *e)
{
	struct ipc_packet pk;
	int rc, saved;

	if (ipc_packet_make(&pk, type, request, msg, e) == -1) {
		errno = EINVAL;
		return -1;
	}
	rc = ipc_packet_send(sock, &pk);
	saved = errno;
	if (rc == -1)
		err_sys(e, FAILURE_INTERNAL, "sending %s", ipc_name(type));
	ipc_packet_free(&pk);
	errno = saved;
	return rc;
}

/* Copies a sealed memfd's bytes. The seals are checked before the size, the
 * size before the allocation. */
static int
memfd_read(int fd, size_t max, uint8_t **out, size_t *len, struct err *e)
{
	struct stat st;
	uint8_t *p;
	int seals;
	size_t done = 0;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals == -1 || (seals & SEALS) != SEALS)
		return err_set(
		    e, FAILURE_INVALID_REQUEST, "blob is not a sealed memfd");
	if (fstat(fd, &st) == -1)
		return err_sys(e, FAILURE_INTERNAL, "fstat of blob");
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(e, FAILURE_TOO_LARGE,
		    "blob of %lld bytes exceeds %zu", (long long)st.st_size,
		    max);
	if ((p = malloc((size_t)st.st_size + 1)) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory for a blob");
	while (done < (size_t)st.st_size) {
		ssize_t n =
		    pread(fd, p + done, (size_t)st.st_size - done, (off_t)done);

		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(p);
			return err_sys(e, FAILURE_INTERNAL, "reading blob");
		}
		done += (size_t)n;
	}
	*out = p;
	*len = done;
	return 0;
}

/*
 * Turns a received packet and its descriptors into a frame. The caller closes
 * the descriptors that the frame did not take over.
 */
static int
frame_make(const uint8_t *packet, size_t n, int *fds, unsigned nfds,
    struct ipc_frame *f, struct err *e)
{
	const struct ipc_info *info;
	unsigned want;

	if (ipc_decode_header(packet, n, f, e) == -1)
		return -1;
	info = ipc_info(f->type);
	want = info->nfds + ((f->flags & IPC_FLAG_MEMFD) ? 1 : 0);
	if (nfds != want)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "%s with %u descriptors, not %u", info->name, nfds, want);
	if ((f->flags & IPC_FLAG_MEMFD) != 0 &&
	    memfd_read(fds[0], info->max_blob, &f->blob, &f->blob_len, e) == -1)
		return -1;
	f->payload_len = n - IPC_HEADER_LEN;
	if ((f->payload = malloc(f->payload_len + 1)) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory for a frame");
	memcpy(f->payload, packet + IPC_HEADER_LEN, f->payload_len);
	if (info->nfds == 1) {
		f->fd = fds[nfds - 1];
		fds[nfds - 1] = -1;
	}
	return 0;
}

int
ipc_read(int sock, struct ipc_frame *f, struct err *e)
{
	static uint8_t packet[IPC_FRAME_MAX + 1]; /* +1: detects oversize */
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = {packet, sizeof(packet)};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf)};
	int fds[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, rc = -1, saved = EPROTO;
	unsigned nfds = 0;
	ssize_t n;

	memset(f, 0, sizeof(*f));
	f->fd = -1;
	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n == -1) {
		if (errno == ECONNRESET)
			return 0;
		/* Every burst of frames ends with EAGAIN, so no error text is
		 * made. */
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return -1;
		return err_sys(e, FAILURE_INTERNAL, "recvmsg");
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL;
	    c = CMSG_NXTHDR(&m, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (nfds < 8)
				fds[nfds++] = fd;
			else
				close(fd);
		}
	}
	if (n == 0 && nfds == 0)
		return 0;
	if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		err_set(e, FAILURE_INVALID_REQUEST, "truncated packet");
		goto out;
	}
	if (frame_make(packet, (size_t)n, fds, nfds, f, e) == -1) {
		ipc_frame_free(f);
		goto out;
	}
	rc = 1;
out:
	for (unsigned i = 0; i < nfds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	explicit_bzero(packet, n > 0 ? (size_t)n : 0);
	if (rc == -1)
		errno = saved;
	return rc;
}

/* sun_path is 108 bytes and state directories may be long, so the error names
 * the path. */
static int
set_path(struct sockaddr_un *sa, const char *path, struct err *e)
{
	size_t n = strlen(path);

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (n >= sizeof(sa->sun_path))
		return err_set(e, FAILURE_INTERNAL,
		    "socket path longer than %zu bytes: %s",
		    sizeof(sa->sun_path) - 1, path);
	memcpy(sa->sun_path, path, n);
	return 0;
}

int
ipc_connect_path(const char *path, bool nonblock, struct err *e)
{
	struct sockaddr_un sa;
	int fd, saved;

	if (set_path(&sa, path, e) == -1)
		return -1;
	fd = socket(AF_UNIX,
	    SOCK_SEQPACKET | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0);
	if (fd == -1)
		return err_sys(e, FAILURE_INTERNAL, "socket");
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1) {
		err_sys(e, FAILURE_INTERNAL, "connect to %s", path);
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

int
ipc_listen_path(const char *path, struct err *e)
{
	struct sockaddr_un sa;
	int fd;

	if (set_path(&sa, path, e) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_sys(e, FAILURE_INTERNAL, "socket");
	/* The directory belongs to this process alone, so an existing file of
	 * that name is a socket that an earlier instance left. */
	if (unlink(path) == -1 && errno != ENOENT) {
		err_sys(e, FAILURE_INTERNAL, "unlink %s", path);
		goto fail;
	}
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1) {
		err_sys(e, FAILURE_INTERNAL, "bind %s", path);
		goto fail;
	}
	/* Access is guarded by the directory (0750) and, at accept, by
	 * SO_PEERCRED. */
	if (chmod(path, 0666) == -1 || listen(fd, 128) == -1) {
		err_sys(e, FAILURE_INTERNAL, "listen on %s", path);
		goto fail;
	}
	return fd;
fail:
	close(fd);
	return -1;
}

int
ipc_peer_cred(int sock, uid_t *uid, pid_t *pid, struct err *e)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1)
		return err_sys(e, FAILURE_INTERNAL, "SO_PEERCRED");
	*uid = cred.uid;
	*pid = cred.pid;
	return 0;
}

/* Waits until sock is readable. 0; -1 with err on time-out. */
static int
wait_readable(int sock, uint64_t until_ms, struct err *e)
{
	struct pollfd p = {sock, POLLIN, 0};

	for (;;) {
		uint64_t now = now_boot_ms();
		int rc =
		    poll(&p, 1, now < until_ms ? (int)(until_ms - now) : 0);

		if (rc == 1)
			return 0;
		if (rc == -1 && errno == EINTR)
			continue;
		return err_set(e, FAILURE_BUSY, "no answer in time");
	}
}

int
ipc_client_open(const char *path, enum ipc_role local, enum ipc_role peer,
    const char *process, struct err *e)
{
	struct ipc_hello hello = {.table = ipc_table_hash,
	    .process = ipc_str(process),
	    .build = ipc_str("client")};
	struct ipc_hello answer;
	struct ipc_frame f;
	int fd, rc;

	if ((fd = ipc_connect_path(path, false, e)) == -1)
		return -1;
	id_random(&hello.epoch);
	if (ipc_write(fd, IPC_HELLO, 0, &hello, e) == -1 ||
	    wait_readable(fd, now_boot_ms() + 5000, e) == -1)
		goto fail;
	rc = ipc_read(fd, &f, e);
	if (rc != 1) {
		if (rc == 0)
			err_set(e, FAILURE_FORBIDDEN,
			    "%s closed the connection: not an allowed user",
			    path);
		goto fail;
	}
	rc = ipc_permit(f.type, peer, local, IPC_STATE_NEW, e);
	if (rc == 0)
		rc = ipc_decode(&f, &answer, e);
	if (rc == 0 &&
	    memcmp(&answer.table, &ipc_table_hash, sizeof(ipc_table_hash)) != 0)
		rc = err_set(e, FAILURE_UPGRADING,
		    "the daemon behind %s is of another build", path);
	ipc_frame_free(&f);
	if (rc == 0)
		return fd;
fail:
	close(fd);
	return -1;
}

int
ipc_client_call(int sock, enum ipc_type type, const void *msg, int timeout_ms,
    struct ipc_frame *answer, struct err *e)
{
	static uint64_t next_request = 1;
	uint64_t request = next_request++;
	uint64_t until = now_boot_ms() + (uint64_t)timeout_ms;

	if (ipc_write(sock, type, request, msg, e) == -1)
		return -1;
	for (;;) {
		const struct ipc_info *info;
		int rc;

		if (wait_readable(sock, until, e) == -1)
			return -1;
		if ((rc = ipc_read(sock, answer, e)) != 1)
			return rc == 0
			    ? err_set(e, FAILURE_INTERNAL, "connection closed")
			    : -1;
		info = ipc_info(answer->type);
		if (info->kind == IPC_KIND_ANS && answer->request == request)
			return 0;
		ipc_frame_free(answer);
	}
}
