/*
 * The hosts to which installers may connect: those of this machine's own
 * configuration, and no others. Neither admind nor the vault can change them.
 * So an attacker who has taken over admind, or can write to its database, can
 * only make an installer fetch a wheel from the configured index. Any request
 * for a module can do that, too.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "depot_conf.h"
#include "held.h"
#include "jsonw.h"
#include "netgrant.h"

enum {
	SPEC_MAX = 8192,
	HOSTS_MAX = 32, /* of one index and its files: usually two */
	PORT_HTTP = 80,
	PORT_HTTPS = 443
};

/* Appends a line for `text` of n bytes, which is host, host:port or
 * [v6]:port. */
static int
put_host(
    struct buf *hosts, const char *text, size_t n, unsigned port, struct err *e)
{
	char line[NETGRANT_LINE_MAX + 1], host[GRANTREQ_HOST_MAX + 1];
	const char *end = text + n, *colon;
	struct netgrant g;
	size_t len;
	int made;

	if (n > 0 && text[0] == '[') {
		const char *close = memchr(text, ']', n);

		if (close == NULL)
			goto bad;
		len = (size_t)(close - text) - 1;
		text++;
		colon = close + 1 < end ? close + 1 : NULL;
	} else {
		colon = memchr(text, ':', n);
		len = colon != NULL ? (size_t)(colon - text) : n;
	}
	if (colon != NULL) {
		port = 0;
		if (*colon != ':' || colon + 1 == end || end - colon > 6)
			goto bad;
		for (const char *p = colon + 1; p < end; p++) {
			if (*p < '0' || *p > '9')
				goto bad;
			port = port * 10 + (unsigned)(*p - '0');
		}
	}
	if (len == 0 || len >= sizeof(host) || port == 0 || port > 65535)
		goto bad;
	for (size_t i = 0; i < len; i++)
		host[i] = (char)tolower((unsigned char)text[i]);
	host[len] = '\0';
	made = snprintf(line, sizeof(line), "tcp %s %u", host, port);
	if (made < 0 || (size_t)made >= sizeof(line) ||
	    netgrant_read(ipc_str(line), &g, NULL) != 0)
		goto bad;
	buf_puts(hosts, line);
	buf_putc(hosts, '\n');
	return 0;
bad:
	return err_set(e, FAILURE_INVALID_PARAMS,
	    "\"%.*s\" has no host, or one that nobody may connect to",
	    n < 200 ? (int)n : 200, end - n);
}

static int
put_url(struct buf *hosts, const char *url, struct err *e)
{
	bool tls = strncmp(url, "https://", 8) == 0;
	const char *host;

	if (!tls && strncmp(url, "http://", 7) != 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "\"%.200s\" is no http or https URL", url);
	host = url + (tls ? 8 : 7);
	return put_host(
	    hosts, host, strcspn(host, "/?#"), tls ? PORT_HTTPS : PORT_HTTP, e);
}

static int
put_list(struct buf *hosts, const char *list, struct err *e)
{
	while (*(list += strspn(list, ", ")) != '\0') {
		size_t n = strcspn(list, ", ");

		if (put_host(hosts, list, n, PORT_HTTPS, e) != 0)
			return -1;
		list += n;
	}
	return 0;
}

int
depot_configure(struct depot_conf *d, const char *index, const char *files,
    const char *advisories, uint64_t wheel_bytes, struct err *e)
{
	struct jsonw w;

	buf_init(&d->spec, SPEC_MAX);
	buf_init(&d->hosts, HOSTS_MAX * (NETGRANT_LINE_MAX + 1));
	if (index[0] == '\0')
		return 0;
	if (put_url(&d->hosts, index, e) != 0 ||
	    put_list(&d->hosts, files, e) != 0 ||
	    (advisories[0] != '\0' && put_url(&d->hosts, advisories, e) != 0))
		return -1;
	jsonw_open(&w, &d->spec);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "index", index);
	jsonw_kv_str(&w, "advisories", advisories);
	jsonw_name(&w, "wheel_bytes");
	jsonw_u64(&w, wheel_bytes);
	jsonw_obj_end(&w);
	if (d->spec.failed || d->hosts.failed)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "the settings of modules are too long");
	return 0;
}

int
depot_fill(const struct depot_conf *d, struct held *h, struct err *e)
{
	if (d->spec.len == 0)
		return err_set(e, FAILURE_MISSING_GRANT,
		    "no module_index is configured: an administrator names "
		    "one in sandboxd.conf, or puts the module into the store "
		    "by hand");
	h->code = ipc_bytes(d->spec.p, d->spec.len);
	h->driver = DRIVER_MODULE;
	if (h->timeout_ms > d->timeout_ms)
		h->timeout_ms = d->timeout_ms;
	h->limit[LIMIT_TIMEOUT_MS] = h->timeout_ms;
	buf_put(&h->requires, d->hosts.p, d->hosts.len);
	buf_put(&h->grants, d->hosts.p, d->hosts.len);
	if (h->requires.failed || h->grants.failed)
		return err_set(e, FAILURE_BUSY, "no memory");
	return 0;
}
