/*
 * Other MCP servers as sources of tools (decision 0050): the operations on a
 * source, for a management tool (manage_sources.c) or an administrator
 * (adminsources.c).
 *
 *  discover  run the source's approved version, keep its list
 *  import    judge the wanted definitions as if somebody had
 *            written them, make tools of them, ask for their review
 *
 * PostgreSQL takes the JSON of another server apart, and admind-check judges
 * it; this process reads none of it.
 */
#ifndef SOURCES_H
#define SOURCES_H

#include "inner.h"

/* Names of tools in one import. */
enum { SOURCE_NAMES_MAX = 200 };

/* The actor of events that neither a client nor a person asked for: a listing
 * after a definition changed, and the requests that follow from it. No client
 * and no administrator has this name, because it is reserved, and a token's
 * principal has a colon. */
#define SOURCES_SELF "mcpbox"

/* Lists a source for `actor`. This function and sources_import() may call cb
 * before they return. */
void sources_discover(struct admind *, const struct ipc_id *source,
    const char *actor, sources_cb *cb, void *arg);
/* Imports tools for `actor`. names has NUL-terminated texts, one after the
 * other, and is copied. */
void sources_import(struct admind *, const struct ipc_id *source,
    const char *actor, struct ipc_bytes names, sources_cb *cb, void *arg);
/*
 * quarantine.c: puts the tool of this version into quarantine (decision 0083),
 * because sandboxd reported that a call met another definition than the
 * approved one. The tool's source is listed to get the present definition.
 */
void quarantine_changed(struct admind *, const struct ipc_id *version);
#endif
