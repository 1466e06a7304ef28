/* One object of a list of MCP as JSON, from a row of the catalogue's pages. */
#ifndef ITEM_H
#define ITEM_H

#include "db.h"
#include "endpoint.h"
#include "ipc_values.h"
#include "jsonw.h"

/* Columns of a page, after the revision. Null values are left out. */
enum {
	C_NAME = 1,
	C_URI,
	C_HASH,
	C_TITLE,
	C_DESCRIPTION,
	C_MIME_TYPE,
	C_SIZE,
	C_TTL_MS,
	C_META,
	C_ICONS,
	C_INPUT_SCHEMA,
	C_OUTPUT_SCHEMA,
	C_ANNOTATIONS,
	C_ARGUMENTS,
	C_SERVER,
	C_PLAIN_NAME
};

/* Writes an object. shown: the name that the list gives it. rename: the entry
 * of an endpoint that gave it, or NULL. */
void item_put(struct jsonw *, enum mcp_list, const struct pg_result *rows,
    int i, struct ipc_bytes shown, const struct endpoint_rename *rename);

#endif
