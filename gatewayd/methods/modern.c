/* The modern era, 2026-07-28, which has no sessions. Only messages without
 * errors come here: mcp_era.c and mcp_params.c have checked them. */
#include "methods.h"
#include "stream.h"
#include "tasks.h"

void
modern_serve(struct exchange *ex)
{
	struct answer_to to = exchange_to(ex);
	struct buf b;

	buf_init(&b, ANSWER_MAX);
	/* A modern client cancels by closing the response, so nothing is begun
	 * for a client that has left. Notifications ask for nothing. */
	if (ex->m.kind == MCP_NOTIFICATION || ex->req == NULL) {
		exchange_answer(ex, 202, &b);
		return;
	}
	switch (ex->m.method) {
	case MCP_DISCOVER:
		answer_discover(&b, &to, exchange_instructions(ex));
		exchange_answer(ex, 200, &b);
		return;
	case MCP_TASKS_GET:
	case MCP_TASKS_UPDATE:
	case MCP_TASKS_CANCEL:
		tasks_serve(ex);
		return;
	case MCP_LISTEN:
		stream_listen(ex);
		return;
	default:
		if (!legacy_serve_common(ex))
			exchange_no_method(ex);
		return;
	}
}
