/* See origin.h. */
#include "origin.h"

#include <stdbool.h>
#include <string.h>

enum {
	PORT_DIGITS_MAX = 5,
	PORT_MAX = 65535, /* RFC 9293 */
	HTTP_PORT = 80,   /* browsers leave these two out (RFC 6454) */
	HTTPS_PORT = 443
};

/* Returns the length of the host at s, 0 for none. The characters are those of
 * host-part in Content Security Policy, so a name with an underscore is
 * refused. */
static size_t
host_length(const char *s)
{
	static const char loopback[] = "[::1]";
	size_t n;

	if (strncmp(s, loopback, sizeof(loopback) - 1) == 0)
		return sizeof(loopback) - 1;
	n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.");
	if (n > ORIGIN_HOST_MAX || s[0] == '.' || s[0] == '-' ||
	    (n > 0 && (s[n - 1] == '.' || s[n - 1] == '-')))
		return 0;
	for (size_t i = 1; i < n; i++)
		if (s[i] == '.' && s[i - 1] == '.')
			return 0;
	return n;
}

/* Returns the length of the port at s, with its colon; 0 for one that browsers
 * write otherwise. */
static size_t
port_length(const char *s, bool https)
{
	size_t n = strspn(s + 1, "0123456789");
	unsigned v = 0;

	if (n == 0 || n > PORT_DIGITS_MAX || s[1] == '0')
		return 0;
	for (size_t i = 1; i <= n; i++)
		v = v * 10 + (unsigned)(s[i] - '0');
	if (v > PORT_MAX || v == (https ? HTTPS_PORT : HTTP_PORT))
		return 0;
	return n + 1;
}

size_t
origin_read(const char *address)
{
	bool https = strncmp(address, "https://", 8) == 0;
	size_t at = https ? 8 : 7, n;

	if (!https && strncmp(address, "http://", 7) != 0)
		return 0;
	if ((n = host_length(address + at)) == 0)
		return 0;
	at += n;
	if (address[at] == ':') {
		if ((n = port_length(address + at, https)) == 0)
			return 0;
		at += n;
	}
	return address[at] == '\0' || address[at] == '/' ? at : 0;
}
