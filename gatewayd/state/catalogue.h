/*
 * The lists of a permission set as admind streamed them: MCP's four lists, and
 * the list of stopped objects. A list is one buffer with its JSON, without the
 * brackets, and the place of each object in the buffer. All that a request
 * needs of an object is read when the list comes, so that serving a list or
 * finding an object parses nothing.
 */
#ifndef CATALOGUE_H
#define CATALOGUE_H

#include <sys/queue.h>

#include "buf.h"
#include "ipc.h"
#include "narrow.h"
#include "uri_template.h"

enum { CATALOGUE_LISTS = 5 }; /* of enum mcp_list */

struct exchange;
struct gateway;
struct json_object;
struct refusal;

struct catalogue_item {
	char *name;              /* exposed name */
	char *uri;               /* of a resource or template, else NULL */
	struct ipc_hash version; /* the version that serves it */
	size_t at, n;            /* its JSON in the list's text */
	bool marked;             /* a tool whose input schema names headers */
	bool stopped;            /* one of MCP_LIST_STOPPED: in no list */
	/* the part that legacy clients don't get (n = 0: none) */
	struct narrow hidden;
	/* {argument: [value, ...]} of a prompt or template, or NULL */
	struct json_object *values;
	struct uri_template *template; /* of a template; points into uri */
	uint64_t ttl_ms;               /* of a resource: caching hint */
};

/* A hash table with open addressing. A slot is 0 if it is empty, else an item's
 * index plus one. */
struct catalogue_index {
	uint32_t *slot;
	uint32_t mask;
};

struct catalogue_part {
	struct buf json; /* {...},{...} */
	struct catalogue_item *items;
	size_t n;
	struct catalogue_index by_name, by_uri;
};

struct catalogue_waiter;

struct catalogue {
	TAILQ_ENTRY(catalogue) all;
	struct gateway *gw;
	char *set;
	bool linked; /* in gw->catalogues */
	bool ready;
	bool failed; /* an item did not fit: the catalogue fails */
	struct catalogue_part part[CATALOGUE_LISTS];
	STAILQ_HEAD(, catalogue_waiter) waiters;
};

/* Called from the loop or at once with the catalogue, valid during the call
 * only, or with NULL and the reason. */
typedef void catalogue_cb(
    void *arg, const struct catalogue *, const struct refusal *);
void catalogue_ask(
    struct gateway *, const char *permission_set, catalogue_cb *, void *arg);
void catalogue_drop(struct gateway *); /* all catalogues */

/* catalogue_item.c. Adds one object as admind sent it; its JSON was scanned. 0,
 * or -1 without memory. */
int catalogue_item_add(
    struct catalogue_part *, enum mcp_list, const struct ipc_catalogue_item *);
int catalogue_item_index(struct catalogue_part *);
void catalogue_item_free_all(struct catalogue_part *);
/* Returns an item's JSON text. */
struct ipc_bytes catalogue_item_json(
    const struct catalogue_part *, const struct catalogue_item *);
/* Find an object by its exposed name, or by its exact URI. NULL: there is
 * none. */
const struct catalogue_item *catalogue_item_named(
    const struct catalogue *, enum mcp_list, const char *name);
const struct catalogue_item *catalogue_item_at(
    const struct catalogue *, enum mcp_list, const char *uri);
/* Returns the object that a URI names: the resource with just this URI, else
 * the stopped object with this URI, else the first template in list order that
 * matches. For a template, *values has its variables. */
const struct catalogue_item *catalogue_item_for(const struct catalogue *,
    const char *uri, struct uri_value values[URI_VARIABLES_MAX]);

#endif
