#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* Bytes of struct sockaddr_in6 without sin6_scope_id. The kernel accepts this
 * length, too. */
enum { SIN6_SHORT = 24 };

struct address
address_v4(const uint8_t *b)
{
	struct address a = {.family = AF_INET};

	memcpy(a.b, b, 4);
	return a;
}

bool
address_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	const unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

int
address_foreign(const uint8_t *p, size_t n, sa_family_t family,
    struct address *out, uint16_t *port)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct address a = {0};
	sa_family_t own;

	if (family != AF_INET && family != AF_INET6)
		return EAFNOSUPPORT;
	if (n < sizeof(own))
		return EINVAL;
	memcpy(&own, p, sizeof(own));
	if (own != family)
		return EAFNOSUPPORT;
	if (family == AF_INET) {
		if (n < sizeof(struct sockaddr_in))
			return EINVAL;
		a = address_v4(p + offsetof(struct sockaddr_in, sin_addr));
	} else {
		if (n < SIN6_SHORT)
			return EINVAL;
		a.family = AF_INET6;
		memcpy(a.b, p + offsetof(struct sockaddr_in6, sin6_addr), 16);
		if (memcmp(a.b, mapped, sizeof(mapped)) == 0)
			a = address_v4(a.b + sizeof(mapped));
	}
	*out = a;
	*port = get_be16(p + offsetof(struct sockaddr_in, sin_port));
	return 0;
}

int
address_read(struct ipc_bytes text, struct address *out)
{
	char s[ADDRESS_TEXT];
	struct address a = {.family = AF_INET};

	if (text.n >= sizeof(s))
		return -1;
	memcpy(s, text.p, text.n);
	s[text.n] = '\0';
	if (strlen(s) != text.n)
		return -1;
	if (inet_pton(AF_INET, s, a.b) != 1) {
		a.family = AF_INET6;
		if (inet_pton(AF_INET6, s, a.b) != 1)
			return -1;
	}
	*out = a;
	return 0;
}

void
address_text(const struct address *a, char text[ADDRESS_TEXT])
{
	if (inet_ntop(a->family, a->b, text, ADDRESS_TEXT) == NULL)
		text[0] = '\0';
}

socklen_t
address_sockaddr(
    const struct address *a, uint16_t port, struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (a->family == AF_INET) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->b, 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->b, 16);
	return sizeof(*in6);
}

bool
address_equal(const struct address *a, const struct address *b)
{
	return a->family == b->family &&
	    memcmp(a->b, b->b, a->family == AF_INET ? 4 : 16) == 0;
}
