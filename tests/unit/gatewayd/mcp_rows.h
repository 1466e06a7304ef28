/*
 * Rows of the inbound ladder's table, and how they are judged: (body, headers)
 * -> (HTTP status, JSON-RPC code).
 */
#ifndef MCP_ROWS_H
#define MCP_ROWS_H

#include "mcp_request.h"
#include "unit.h"

#define V26 "2026-07-28"
#define V25 "2025-11-25"
#define ENV                                                             \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" V26 \
	"\",\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define ENV_V(v)                                                    \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" v \
	",\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define REQ(method, params)                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method \
	"\",\"params\":{" params "}}"

enum { L = 0, M = 1, X = 2 }; /* era: legacy, modern, not looked at */

#define HEADER_QUIRK (1 << MCP_QUIRK_HEADER_VERSION)
#define INIT_QUIRK   (1 << MCP_QUIRK_INITIALIZE)
#define COMPLETE(type, key)                                               \
	"\"ref\":{\"type\":\"" type "\",\"" key "\":\"x\"},\"argument\":" \
	"{\"name\":\"a\",\"value\":\"b\"}"

struct row {
	const char *what, *body;
	struct mcp_headers h;
	int status, code, era;
	const char *id; /* as it must be echoed; NULL: null */
};

static inline void
check_rows(const struct row *rows, size_t n)
{
	struct mcp_message m;
	struct mcp_error e;
	struct mcp_body b;
	struct ipc_bytes id;
	const struct row *r;
	size_t i;
	int status, code;

	for (i = 0; i < n; i++) {
		r = &rows[i];
		if (mcp_request_split((const uint8_t *)r->body, strlen(r->body),
			&r->h, -1, &b, &id, &e) == 0) {
			mcp_request_read(b.member[0], &r->h, b.array, &m);
			e = m.error;
			id = m.id;
			if (r->era != X && m.modern != (r->era == M))
				fail_msg("%s: wrong era", r->what);
		}
		status = e.failure == FAILURE_NONE ? 0 : e.status;
		code = failure_info(e.failure)->jsonrpc_code;
		if (status != r->status || code != r->code)
			fail_msg("%s: got %d %d (%s)", r->what, status, code,
			    e.message);
		if ((r->id == NULL) != (id.n == 0) ||
		    (r->id != NULL && !ipc_streq(id, r->id)))
			fail_msg("%s: id is %.*s", r->what, (int)id.n, id.p);
	}
}

static inline struct mcp_message
read_one(const char *body, const struct mcp_headers *h)
{
	struct mcp_message m;
	struct mcp_error e;
	struct mcp_body b;
	struct ipc_bytes id;

	assert_int_equal(mcp_request_split((const uint8_t *)body, strlen(body),
			     h, -1, &b, &id, &e),
	    0);
	mcp_request_read(b.member[0], h, b.array, &m);
	return m;
}

#endif
