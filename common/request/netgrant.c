#include "netgrant.h"

#include <string.h>

enum { PORT_HTTP = 80, PORT_HTTPS = 443, PORT_MAX = 65535 };

static int
bad(struct err *e)
{
	return err_set(
	    e, FAILURE_INVALID_PARAMS, "network grant: not in its form");
}

static bool
same(struct ipc_bytes b, const char *text)
{
	return b.n == strlen(text) && memcmp(b.p, text, b.n) == 0;
}

/* Takes the word before the next space off the line; the last word ends with
 * the line. */
static struct ipc_bytes
word(struct ipc_bytes *line)
{
	const uint8_t *space = line->n ? memchr(line->p, ' ', line->n) : NULL;
	size_t n = space != NULL ? (size_t)(space - line->p) : line->n;
	struct ipc_bytes w = ipc_bytes(line->p, n);

	n += space != NULL;
	line->p += n;
	line->n -= n;
	return w;
}

/* Reads a decimal number, which has only one spelling. */
static int
number(struct ipc_bytes w, uint16_t *out)
{
	unsigned v = 0;

	if (w.n == 0 || w.n > 5 || (w.n > 1 && w.p[0] == '0'))
		return -1;
	for (size_t i = 0; i < w.n; i++) {
		if (w.p[i] < '0' || w.p[i] > '9')
			return -1;
		v = v * 10 + (unsigned)(w.p[i] - '0');
	}
	if (v > PORT_MAX)
		return -1;
	*out = (uint16_t)v;
	return 0;
}

int
netgrant_read(struct ipc_bytes line, struct netgrant *out, struct err *e)
{
	struct netgrant g = {.proto = NETGRANT_TCP};
	struct ipc_bytes proto, port;

	if (line.n == 0 || line.n > NETGRANT_LINE_MAX)
		return bad(e);
	proto = word(&line);
	g.host = word(&line);
	port = line; /* the rest: number() refuses a space */
	if (same(proto, "tcp"))
		g.proto = NETGRANT_TCP;
	else if (same(proto, "udp"))
		g.proto = NETGRANT_UDP;
	else
		return bad(e);
	g.any = same(g.host, "*");
	if (!g.any && (g.form = grantreq_host(g.host)) == GRANT_HOST_BAD)
		return bad(e);
	if (number(port, &g.port) < 0)
		return bad(e);
	*out = g;
	return 0;
}

int
netgrant_next(struct ipc_bytes *list, struct netgrant *out, struct err *e)
{
	const uint8_t *end;
	size_t n;

	if (list->n == 0)
		return 0;
	if ((end = memchr(list->p, '\n', list->n)) == NULL)
		return bad(e);
	n = (size_t)(end - list->p);
	if (netgrant_read(ipc_bytes(list->p, n), out, e) < 0)
		return -1;
	list->p += n + 1;
	list->n -= n + 1;
	return 1;
}

static bool
equal(struct ipc_bytes a, struct ipc_bytes b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Tells whether the grant names this host. *.example.org names a.example.org
 * and b.a.example.org, but not example.org. */
static bool
names(const struct netgrant *g, struct ipc_bytes name)
{
	const size_t n = g->host.n - 1; /* length of ".example.org" */

	if (g->any)
		return true;
	switch (g->form) {
	case GRANT_HOST_NAME:
	case GRANT_HOST_LOCAL:
		return equal(g->host, name);
	case GRANT_HOST_WILD:
		return name.n > n &&
		    memcmp(name.p + name.n - n, g->host.p + 1, n) == 0;
	default:
		return false;
	}
}

bool
netgrant_covers(const struct netgrant *g, bool declared,
    enum netgrant_proto proto, struct ipc_bytes host, bool is_address,
    uint16_t port)
{
	if (g->proto != proto)
		return false;
	if (g->port != 0) {
		if (g->port != port)
			return false;
	} else if (!declared &&
	    (proto != NETGRANT_TCP ||
		(port != PORT_HTTP && port != PORT_HTTPS)))
		return false;
	if (!is_address)
		return names(g, host);
	return g->any || (g->form == GRANT_HOST_IP && equal(g->host, host));
}

bool
netgrant_names(struct ipc_bytes list, struct ipc_bytes name)
{
	struct netgrant g = {.proto = NETGRANT_TCP};

	while (netgrant_next(&list, &g, NULL) == 1)
		if (names(&g, name))
			return true;
	return false;
}
