/* The browser of a test of admind-http: one request on a connection of its own.
 */
#include "unit.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <unistd.h>

#include "http_client.h"

uint16_t http_port;
char answer[262144];

int
http_send(
    const char *method, const char *path, const char *fields, const char *body)
{
	struct sockaddr_in to = {
	    .sin_family = AF_INET, .sin_port = htons(http_port)};
	char head[4096];
	int s, len;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true((s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
	assert_int_equal(connect(s, (struct sockaddr *)&to, sizeof(to)), 0);
	len = snprintf(head, sizeof(head),
	    "%s %s HTTP/1.1\r\n%s%s\r\nConnection: close\r\n", method, path,
	    strstr(fields, "Host:") == NULL ? "Host: 127.0.0.1\r\n" : "",
	    fields);
	if (body != NULL)
		len += snprintf(head + len, sizeof(head) - (size_t)len,
		    "Content-Length: %zu\r\n", strlen(body));
	len += snprintf(head + len, sizeof(head) - (size_t)len, "\r\n%s",
	    body != NULL ? body : "");
	assert_int_equal(write(s, head, (size_t)len), len);
	return s;
}

int
http_read(int s)
{
	size_t n = 0;
	ssize_t got;

	while ((got = read(s, answer + n, sizeof(answer) - 1 - n)) > 0)
		n += (size_t)got;
	answer[n] = '\0';
	close(s);
	if (strncmp(answer, "HTTP/1.1 ", 9) != 0)
		fail_msg("no answer: %s", answer);
	return (int)strtol(answer + 9, NULL, 10);
}

int
http(const char *method, const char *path, const char *fields, const char *body)
{
	return http_read(http_send(method, path, fields, body));
}
