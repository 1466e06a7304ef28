/*
 * The PROXY header that begins a balancer's connection.
 *
 * Only the addresses that proxy_protocol_from lists may send the header, and
 * the kernel says which address a connection has. Any other client is refused
 * before a byte is read. So a client that reaches the listener without the
 * balancer can't name itself as it likes. The address in the header counts for
 * max_connections_per_source and gives no right.
 */
#include <stdio.h>

#include "httpd_internal.h"
#include "proxyv2.h"

void
httpd_proxy_take(struct httpd_req *r)
{
	struct proxyv2 p;
	struct err e;
	uint8_t key[16], *head;
	char why[128];
	size_t n;
	int took;

	if (r->in == NULL)
		return;
	n = evbuffer_get_length(r->in);
	if (n > PROXYV2_MAX)
		n = PROXYV2_MAX;
	if (n == 0)
		return;
	if ((head = evbuffer_pullup(r->in, (ev_ssize_t)n)) == NULL) {
		httpd_kill_now(r);
		return;
	}
	if ((took = proxyv2_read(head, n, &p, &e)) == 0)
		return;
	r->proxied = false;
	if (took < 0) {
		httpd_answer_refusal(r, 403, e.text);
		return;
	}
	evbuffer_drain(r->in, (size_t)took);
	/* The balancer itself makes a `local` connection, to check that we
	 * live. Such a connection counts for max_connections only, and so does
	 * one whose client has no IP address. */
	if (p.local || !p.client)
		return;
	httpd_listen_source(
	    (const struct sockaddr *)(const void *)&p.from, r->source, key);
	if (!httpd_admit_source(r, key, why, sizeof(why)))
		httpd_answer_refusal(r, 503, why);
}
