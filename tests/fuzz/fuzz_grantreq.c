/*
 * The pre-image of a grant as its readers meet it (bytes of a hostile admind):
 * what is taken has one form only, so that made again of what was read it is
 * the same bytes; what is shown of it is one JSON object in ASCII; and its host
 * is in the one spelling.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "grantreq.h"
#include "json_grammar.h"
#include "netgrant.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
put(struct buf *b, uint8_t tag, struct ipc_bytes text)
{
	tlv_put(b, tag, text.p, text.n);
}

static void
again(const struct grantreq *g, struct buf *b)
{
	buf_put(b, "mcpbox grant 1", 15);
	tlv_put_u64(b, GRANTREQ_KIND, g->kind);
	tlv_put(b, GRANTREQ_REQUEST, g->request.b, 16);
	tlv_put(b, GRANTREQ_SERVER_ID, g->server.b, 16);
	put(b, GRANTREQ_SERVER_NAME, g->server_name);
	if (g->kind == GRANT_MODULE) {
		tlv_put(b, GRANTREQ_TOOL_ID, g->tool.b, 16);
		put(b, GRANTREQ_TOOL_NAME, g->tool_name);
		put(b, GRANTREQ_NAME, g->name);
		if (g->recorded) {
			put(b, GRANTREQ_VERSION, g->version);
			tlv_put(b, GRANTREQ_DIGEST, g->digest.b, 32);
			tlv_put_u64(b, GRANTREQ_FILES, g->files);
			tlv_put_u64(b, GRANTREQ_SIZE, g->size);
		}
	} else {
		put(b, GRANTREQ_PROTO, g->proto);
		put(b, GRANTREQ_HOST, g->host);
		tlv_put_u64(b, GRANTREQ_PORT, g->port);
	}
	for (size_t i = 0; i < g->naffected; i++)
		tlv_put(b, GRANTREQ_AFFECTED, grantreq_affected(g, i), 32);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct netgrant need;
	struct grantreq g;
	struct buf b;

	(void)grantreq_host(ipc_bytes(data, n));
	/* what an author writes becomes a line that is read, or nothing */
	buf_init(&b, NETGRANT_LINE_MAX + 1);
	if (grantreq_need(ipc_bytes(data, n), &b, NULL) == 0 &&
	    (b.failed ||
		netgrant_read(ipc_bytes(b.p, b.len), &need, NULL) == -1))
		abort();
	buf_free(&b);
	if (grantreq_read(data, n, &g, NULL) == -1)
		return 0;
	if (g.kind == GRANT_NETWORK && grantreq_host(g.host) == GRANT_HOST_BAD)
		abort();
	buf_init(&b, GRANTREQ_MAX);
	again(&g, &b);
	if (b.failed || b.len != n || memcmp(b.p, data, n) != 0)
		abort();
	buf_free(&b);
	buf_init(&b, 8 * GRANTREQ_MAX);
	if (grantreq_json(data, n, &b, NULL) == -1 ||
	    !json_grammar_valid(b.p, b.len) || b.p[0] != '{')
		abort();
	for (size_t i = 0; i < b.len; i++)
		if (b.p[i] >= 0x80)
			abort();
	buf_free(&b);
	return 0;
}
