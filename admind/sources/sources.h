/*
 * Other MCP servers as sources of tools (decision 0050): what is done with one,
 * whoever asks: a management tool (manage_sources.c) or an administrator
 * (adminsources.c).
 *
 *	discover  run the source's approved version, keep what it lists
 *	import    judge the definitions that are wanted as if somebody had
 *	          written them, make tools of them, ask for their review
 *
 * What another server says is JSON that PostgreSQL takes apart, and
 * admind-check judges; this process reads none of it.
 */
#ifndef SOURCES_H
#define SOURCES_H

#include "inner.h"

/* Names of tools in one import. */
enum { SOURCE_NAMES_MAX = 200 };

/* The actor of what nobody asked for: a listing after a definition changed,
 * and the requests that come of it. No client and no administrator has this
 * name: it is reserved, and a token's has a colon. */
#define SOURCES_SELF "mcpbox"

/* actor: who asks. May call cb before they return. */
void sources_discover(struct admind *, const struct ipc_id *source,
    const char *actor, sources_cb *cb, void *arg);
/* names: NUL-terminated texts, one behind the other; copied. */
void sources_import(struct admind *, const struct ipc_id *source,
    const char *actor, struct ipc_bytes names, sources_cb *cb, void *arg);
/*
 * quarantine.c: a call of this version met another definition than the one that
 * was approved, by sandboxd's word: its tool goes into quarantine (decision
 * 0083), and its source is listed for the definition that it has now.
 */
void quarantine_changed(struct admind *, const struct ipc_id *version);
#endif
