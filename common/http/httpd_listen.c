/*
 * Addresses of the HTTP server: binding its socket, naming a client.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "httpd_internal.h"

/* Writes a peer's address as text, and the key by which its connections are
 * counted. An IPv6 source is counted by its /64, which belongs to one
 * subscriber. */
void
httpd_listen_source(
    const struct sockaddr *sa, char text[HTTPD_SOURCE_MAX], uint8_t key[16])
{
	const struct sockaddr_in *in4 =
	    (const struct sockaddr_in *)(const void *)sa;
	const struct sockaddr_in6 *in6 =
	    (const struct sockaddr_in6 *)(const void *)sa;
	char a[INET6_ADDRSTRLEN] = "";

	memset(key, 0, 16);
	if (sa->sa_family == AF_INET) {
		inet_ntop(AF_INET, &in4->sin_addr, a, sizeof(a));
		snprintf(
		    text, HTTPD_SOURCE_MAX, "%s:%u", a, ntohs(in4->sin_port));
		key[0] = 4;
		memcpy(key + 1, &in4->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, a, sizeof(a));
		snprintf(text, HTTPD_SOURCE_MAX, "[%s]:%u", a,
		    ntohs(in6->sin6_port));
		key[0] = 6;
		memcpy(key + 1, &in6->sin6_addr, 8);
	} else {
		snprintf(text, HTTPD_SOURCE_MAX, "unix");
	}
}

int
httpd_listen_unix(const char *path, struct err *err)
{
	struct sockaddr_un sun;
	int fd;

	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(sun.sun_path))
		return err_set(
		    err, FAILURE_INTERNAL, "%s: path is too long", path);
	memcpy(sun.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, FAILURE_INTERNAL, "socket");
	unlink(path);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    chmod(path, 0666) < 0) { /* the path's directory guards access */
		err_sys(err, FAILURE_INTERNAL, "%s", path);
		close(fd);
		return -1;
	}
	return fd;
}

int
httpd_listen_tcp(const char *host, uint16_t port, char *address_out, size_t len,
    struct err *err)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in4 = {.sin_family = AF_INET};
	struct sockaddr_storage ss;
	struct sockaddr *sa;
	socklen_t salen;
	char a[HTTPD_SOURCE_MAX];
	uint8_t key[16];
	int fd, one = 1;

	/* A literal address: a daemon resolves nothing. */
	if (inet_pton(AF_INET, host, &in4.sin_addr) == 1) {
		in4.sin_port = htons(port);
		sa = (struct sockaddr *)&in4;
		salen = sizeof(in4);
	} else if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1) {
		in6.sin6_port = htons(port);
		sa = (struct sockaddr *)&in6;
		salen = sizeof(in6);
	} else {
		return err_set(err, FAILURE_INTERNAL,
		    "listen address is not an IP address");
	}
	fd = socket(
	    sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, FAILURE_INTERNAL, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, sa, salen) < 0) {
		err_sys(
		    err, FAILURE_INTERNAL, "bind to %s port %u", host, port);
		close(fd);
		return -1;
	}
	memset(&ss, 0, sizeof(ss));
	salen = sizeof(ss);
	if (getsockname(fd, (struct sockaddr *)&ss, &salen) < 0) {
		err_sys(err, FAILURE_INTERNAL, "getsockname");
		close(fd);
		return -1;
	}
	httpd_listen_source((struct sockaddr *)&ss, a, key);
	snprintf(address_out, len, "%s", a);
	return fd;
}

/* Returns a socket option that is an int; -1 if there is none. */
static int
option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int v = -1;

	return getsockopt(fd, SOL_SOCKET, name, &v, &len) == 0 ? v : -1;
}

/*
 * Refuses a datagram socket, a connection (Accept=yes) and a FIFO. They are
 * mistakes of the unit's author, and would look like a server that never gets a
 * request.
 */
int
httpd_listen_inherited(
    int fd, bool *unix_socket, char *address_out, size_t len, struct err *err)
{
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_storage all;
	} a;
	socklen_t salen = sizeof(a) - 1;
	char text[HTTPD_SOURCE_MAX];
	uint8_t key[16];
	int family = option(fd, SO_DOMAIN), flags;

	if (option(fd, SO_TYPE) == -1)
		return err_set(err, FAILURE_INTERNAL,
		    "inherited descriptor %d is no socket", fd);
	if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
		return err_set(err, FAILURE_INTERNAL,
		    "inherited descriptor %d is a socket of family %d, neither "
		    "TCP nor unix",
		    fd, family);
	if (option(fd, SO_TYPE) != SOCK_STREAM ||
	    option(fd, SO_ACCEPTCONN) != 1)
		return err_set(err, FAILURE_INTERNAL,
		    "inherited descriptor %d is no listening stream socket "
		    "(ListenStream=, Accept=no)",
		    fd);
	memset(&a, 0, sizeof(a));
	if (getsockname(fd, &a.sa, &salen) < 0 ||
	    (flags = fcntl(fd, F_GETFL)) < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_sys(
		    err, FAILURE_INTERNAL, "inherited descriptor %d", fd);
	*unix_socket = family == AF_UNIX;
	if (!*unix_socket) {
		httpd_listen_source(&a.sa, text, key);
		snprintf(address_out, len, "%s", text);
	} else if (a.un.sun_path[0] == '\0') {
		/* No NUL ends an abstract name; salen tells its length. */
		snprintf(address_out, len, "@%.*s",
		    (int)(salen - sizeof(a.un.sun_family)) - 1,
		    a.un.sun_path + 1);
	} else {
		snprintf(address_out, len, "%s", a.un.sun_path);
	}
	return 0;
}
