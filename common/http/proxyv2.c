#include "proxyv2.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"

enum {
	VERSION = 0x20, /* high half of byte 12; the low half is the command */
	LOCAL = 0,
	PROXY = 1,
	TCP4 = 0x11, /* byte 13: family and protocol */
	TCP6 = 0x21,
	UNIX_STREAM = 0x31,
	UNSPEC = 0,
	TCP4_BYTES = 12, /* two addresses, two ports */
	TCP6_BYTES = 36,
	UNIX_BYTES = 216,
	ENTRY_TEXT = 64 /* bytes; more than any ADDRESS/BITS */
};

static const uint8_t signature[12] = {
    '\r', '\n', '\r', '\n', '\0', '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

/* Reads the client's address, if the family has one, from the `len` bytes at p.
 * 0, or -1 with the reason. */
static int
take_from(const uint8_t *p, size_t len, int family, struct proxyv2 *out,
    struct err *e)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)(void *)&out->from;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&out->from;
	size_t need = family == TCP4 ? TCP4_BYTES
	    : family == TCP6         ? TCP6_BYTES
	    : family == UNIX_STREAM  ? UNIX_BYTES
				     : 0;

	if (family != TCP4 && family != TCP6 && family != UNIX_STREAM &&
	    family != UNSPEC)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "a PROXY header for family and protocol 0x%02x: only TCP "
		    "is served",
		    (unsigned)family);
	if (len < need)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "a PROXY header whose address is cut");
	if (family == TCP4) {
		in4->sin_family = AF_INET;
		memcpy(&in4->sin_addr, p, 4);
		memcpy(&in4->sin_port, p + 8, 2);
		out->client = true;
	} else if (family == TCP6) {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, p, 16);
		memcpy(&in6->sin6_port, p + 32, 2);
		out->client = true;
	}
	return 0;
}

int
proxyv2_read(const uint8_t *p, size_t n, struct proxyv2 *out, struct err *e)
{
	struct proxyv2 v = {.client = false};
	size_t len;

	if (memcmp(p, signature,
		n < sizeof(signature) ? n : sizeof(signature)) != 0)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    n >= 6 && memcmp(p, "PROXY ", 6) == 0
			? "a PROXY header of version 1: let the balancer send "
			  "version 2 (HAProxy: send-proxy-v2)"
			: "no PROXY header of version 2 came first");
	if (n < PROXYV2_HEAD)
		return 0;
	if ((p[12] & 0xf0) != VERSION || (p[12] & 0x0f) > PROXY)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "a PROXY header of version and command 0x%02x", p[12]);
	len = (size_t)p[14] << 8 | p[15];
	if (len > PROXYV2_REST_MAX)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "a PROXY header of %zu bytes: %d are read", len,
		    PROXYV2_REST_MAX);
	if (n - PROXYV2_HEAD < len)
		return 0;
	v.local = (p[12] & 0x0f) == LOCAL;
	/* The family of a LOCAL header is not looked at (section 2.2). */
	if (!v.local && take_from(p + PROXYV2_HEAD, len, p[13], &v, e) != 0)
		return -1;
	*out = v;
	return (int)(PROXYV2_HEAD + len);
}

static int
entry(const char *text, size_t n, struct proxyv2_from *out)
{
	const size_t i = out->n;
	unsigned long bits, most;
	char one[ENTRY_TEXT], *slash, *end;

	if (n == 0 || n >= sizeof(one) || i == PROXYV2_FROM_MAX)
		return -1;
	memcpy(one, text, n);
	one[n] = '\0';
	if ((slash = strchr(one, '/')) != NULL)
		*slash++ = '\0';
	out->entry[i].family = strchr(one, ':') != NULL ? AF_INET6 : AF_INET;
	most = out->entry[i].family == AF_INET ? 32 : 128;
	if (inet_pton(out->entry[i].family, one, out->entry[i].b) != 1)
		return -1;
	bits = most;
	if (slash != NULL) {
		if (*slash < '0' || *slash > '9')
			return -1;
		bits = strtoul(slash, &end, 10);
		if (*end != '\0' || bits > most)
			return -1;
	}
	out->entry[i].bits = (uint8_t)bits;
	out->n++;
	return 0;
}

int
proxyv2_from_read(const char *text, struct proxyv2_from *out, struct err *e)
{
	struct proxyv2_from v;
	size_t len, n;

	memset(&v, 0, sizeof(v));
	for (; *text != '\0'; text += len + (text[len] == ',')) {
		text += strspn(text, " ");
		n = len = strcspn(text, ",");
		while (n > 0 && text[n - 1] == ' ')
			n--;
		if (entry(text, n, &v) != 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "proxy_protocol_from: \"%.*s\" is no "
			    "ADDRESS[/BITS], or there are more than %d",
			    (int)(n < ENTRY_TEXT ? n : ENTRY_TEXT), text,
			    PROXYV2_FROM_MAX);
	}
	*out = v;
	return 0;
}

static bool
same(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	if (memcmp(a, b, bits / 8) != 0)
		return false;
	return bits % 8 == 0 ||
	    ((a[bits / 8] ^ b[bits / 8]) & (0xff << (8 - bits % 8))) == 0;
}

bool
proxyv2_from_has(const struct proxyv2_from *f, const struct sockaddr *sa)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	sa_family_t family = sa->sa_family;
	const uint8_t *b;

	if (family == AF_INET)
		b = (const uint8_t *)&(
		    (const struct sockaddr_in *)(const void *)sa)
			->sin_addr;
	else if (family == AF_INET6)
		b = (const uint8_t *)&(
		    (const struct sockaddr_in6 *)(const void *)sa)
			->sin6_addr;
	else
		return false;
	if (family == AF_INET6 && memcmp(b, mapped, sizeof(mapped)) == 0) {
		family = AF_INET;
		b += sizeof(mapped);
	}
	for (size_t i = 0; i < f->n; i++)
		if (f->entry[i].family == family &&
		    same(f->entry[i].b, b, f->entry[i].bits))
			return true;
	return false;
}
