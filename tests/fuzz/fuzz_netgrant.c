/*
 * A list of network grants as its readers meet it: a line that is taken has one
 * form only, so that written again it is the same bytes; what it covers it
 * covers by its own host and port.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netgrant.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ipc_bytes list = ipc_bytes(data, n), before;
	char again[NETGRANT_LINE_MAX + 2];
	struct netgrant g;
	int len;

	(void)netgrant_names(list, ipc_str("a.example"));
	while ((before = list, netgrant_next(&list, &g, NULL)) == 1) {
		len = snprintf(again, sizeof(again), "%s %.*s %u\n",
		    g.proto == NETGRANT_TCP ? "tcp" : "udp", (int)g.host.n,
		    (const char *)g.host.p, g.port);
		if (len < 0 || (size_t)len != before.n - list.n ||
		    memcmp(again, before.p, (size_t)len) != 0)
			abort();
		if (g.form == GRANT_HOST_NAME &&
		    (!netgrant_covers(
			 &g, true, g.proto, g.host, false, g.port) ||
			netgrant_covers(
			    &g, true, g.proto, g.host, true, g.port)))
			abort();
		if (g.form == GRANT_HOST_WILD &&
		    netgrant_covers(&g, true, g.proto,
			ipc_bytes(g.host.p + 2, g.host.n - 2), false, g.port))
			abort();
	}
	return 0;
}
