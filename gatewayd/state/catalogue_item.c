/*
 * One object of a catalogue: the bytes that admind sent, and the fields that
 * are needed to serve the object.
 *
 * Some members are not for clients and are taken out of the text: `values` of a
 * prompt's arguments, which completion offers, and all of a template's
 * `arguments`, since MCP's ResourceTemplate has no such member.
 * `_meta["mcpbox/ttlMs"]` of a resource, its caching hint, may stay.
 */
#include <json-c/json_object.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "json.h"
#include "fnv.h"

static struct ipc_bytes
slice(struct ipc_bytes object, const char *const *path)
{
	struct ipc_bytes v = {NULL, 0};

	if (json_slice(object.p, object.n, path, &v.p, &v.n) != 1)
		v = ipc_bytes(NULL, 0);
	return v;
}

/* Moves the values of each argument from `args` to an object {name: values}. */
static struct json_object *
take_values(struct json_object *args)
{
	struct json_object *table = json_object_new_object();
	struct json_object *a, *name, *values;
	size_t i, n = json_object_array_length(args);

	for (i = 0; table != NULL && i < n; i++) {
		a = json_object_array_get_idx(args, i);
		if (!json_object_is_type(a, json_type_object) ||
		    !json_object_object_get_ex(a, "values", &values))
			continue;
		if (json_object_is_type(values, json_type_array) &&
		    json_object_object_get_ex(a, "name", &name) &&
		    json_object_is_type(name, json_type_string) &&
		    json_object_object_add(table, json_object_get_string(name),
			json_object_get(values)) < 0) {
			json_object_put(values);
			json_object_put(table);
			return NULL;
		}
		json_object_object_del(a, "values");
	}
	return table;
}

/* Puts a prompt's text without `values`. The arguments are written again; all
 * other bytes stay as they were. */
static int
put_prompt(struct catalogue_part *p, struct catalogue_item *item,
    struct ipc_bytes json)
{
	static const char *const path[] = {"arguments", NULL};
	struct ipc_bytes a = slice(json, path);
	struct json_object *args = NULL;
	const char *text;
	size_t before;
	int rc = -1;

	if (a.n == 0 || memmem(a.p, a.n, "\"values\"", 8) == NULL) {
		buf_put(&p->json, json.p, json.n);
		return p->json.failed ? -1 : 0;
	}
	if (json_parse(a.p, a.n, &args, NULL) < 0)
		return -1;
	if (json_object_is_type(args, json_type_array)) {
		item->values = take_values(args);
		text = json_object_to_json_string_ext(args,
		    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
		before = (size_t)(a.p - json.p);
		if (item->values != NULL && text != NULL) {
			buf_put(&p->json, json.p, before);
			buf_puts(&p->json, text);
			buf_put(&p->json, a.p + a.n, json.n - before - a.n);
			rc = p->json.failed ? -1 : 0;
		}
	} else {
		buf_put(&p->json, json.p, json.n);
		rc = p->json.failed ? -1 : 0;
	}
	json_object_put(args);
	return rc;
}

/* Puts a template's text without its arguments. Only their values are kept. */
static int
put_template(struct catalogue_part *p, struct catalogue_item *item,
    struct ipc_bytes json)
{
	static const char *const path[] = {"arguments", NULL};
	static const char name[] =
	    ",\"arguments\":"; /* never the first member */
	struct ipc_bytes a = slice(json, path);
	struct json_object *args = NULL;
	size_t len = sizeof(name) - 1;

	if (a.n == 0 || (size_t)(a.p - json.p) < len ||
	    memcmp(a.p - len, name, len) != 0) {
		buf_put(&p->json, json.p, json.n);
		return p->json.failed ? -1 : 0;
	}
	if (json_parse(a.p, a.n, &args, NULL) < 0)
		return -1;
	if (json_object_is_type(args, json_type_array))
		item->values = take_values(args);
	json_object_put(args);
	buf_put(&p->json, json.p, (size_t)(a.p - json.p) - len);
	buf_put(&p->json, a.p + a.n, json.n - (size_t)(a.p + a.n - json.p));
	return p->json.failed ? -1 : 0;
}

/* Returns the caching hint in ms, at most a year. A longer time is of no use as
 * a hint, and a year fits every client's number type. */
static uint64_t
ttl(struct ipc_bytes json)
{
	static const char *const path[] = {"_meta", "mcpbox/ttlMs", NULL};
	const uint64_t year = 365ULL * 86400 * 1000;
	struct ipc_bytes v = slice(json, path);
	uint64_t t = 0;
	size_t i;

	for (i = 0; i < v.n && v.p[i] >= '0' && v.p[i] <= '9' && t < year; i++)
		t = t * 10 + (uint64_t)(v.p[i] - '0');
	return t < year ? t : year;
}

static int
add_template(struct catalogue_item *item)
{
	item->template = calloc(1, sizeof(*item->template));
	if (item->template == NULL)
		return -1;
	/* admind sends only valid templates. An invalid one would match
	 * nothing. */
	if (uri_template_parse(
		item->uri, strlen(item->uri), item->template, NULL) < 0) {
		free(item->template);
		item->template = NULL;
	}
	return 0;
}

static void
item_free(struct catalogue_item *item)
{
	free(item->name);
	free(item->uri);
	free(item->template);
	if (item->values != NULL)
		json_object_put(item->values);
}

int
catalogue_item_add(struct catalogue_part *p, enum mcp_list list,
    const struct ipc_catalogue_item *m)
{
	static const char *const schema[] = {"inputSchema", NULL};
	struct catalogue_item *item;
	struct ipc_bytes s;
	size_t cap;
	int rc = 0;

	if ((p->n & (p->n - 1)) == 0) { /* 0 or a power of two */
		cap = p->n > 0 ? p->n * 2 : 1;
		item = realloc(p->items, cap * sizeof(*item));
		if (item == NULL)
			return -1;
		p->items = item;
	}
	item = &p->items[p->n];
	memset(item, 0, sizeof(*item));
	/* No version serves a stopped object. For clients that watch the
	 * object, the object is gone. */
	item->stopped = list == MCP_LIST_STOPPED;
	if (!item->stopped)
		item->version = m->version;
	item->name = ipc_strdup(m->name);
	if (m->uri.n > 0)
		item->uri = ipc_strdup(m->uri);
	if (item->name == NULL || (m->uri.n > 0 && item->uri == NULL)) {
		item_free(item);
		return -1;
	}
	if (p->n > 0)
		buf_putc(&p->json, ',');
	item->at = p->json.len;
	if (list == MCP_LIST_PROMPTS)
		rc = put_prompt(p, item, m->json);
	else if (list == MCP_LIST_TEMPLATES)
		rc = put_template(p, item, m->json);
	else
		buf_put(&p->json, m->json.p, m->json.n);
	item->n = p->json.len - item->at;
	if (list == MCP_LIST_TOOLS) {
		s = slice(m->json, schema);
		item->marked =
		    s.n > 0 && memmem(s.p, s.n, "x-mcp-header", 12) != NULL;
		item->hidden = narrow_tool(m->json);
	} else if (list == MCP_LIST_TEMPLATES && item->uri != NULL) {
		rc = rc < 0 ? rc : add_template(item);
	}
	if (list == MCP_LIST_RESOURCES || list == MCP_LIST_TEMPLATES)
		item->ttl_ms = ttl(m->json);
	p->n++; /* after a failure, too: item is freed with p */
	return rc < 0 || p->json.failed ? -1 : 0;
}

void
catalogue_item_free_all(struct catalogue_part *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		item_free(&p->items[i]);
	free(p->items);
	free(p->by_name.slot);
	free(p->by_uri.slot);
	buf_free(&p->json);
	memset(p, 0, sizeof(*p));
}

struct ipc_bytes
catalogue_item_json(
    const struct catalogue_part *p, const struct catalogue_item *item)
{
	return ipc_bytes(p->json.p + item->at, item->n);
}

/* ---- finding ---- */

/* FNV-1a. Names come from approved objects, so only names that a person
 * approved can collide. */
static uint32_t
hash(const char *s)
{
	return fnv_bytes(FNV_START, s, strlen(s));
}

static const char *
key(const struct catalogue_item *item, bool uri)
{
	return uri ? item->uri : item->name;
}

/* Builds an index. The index is at most half full, so each search ends at an
 * empty slot. Of two items with the same key the first counts. */
static int
build(struct catalogue_part *p, struct catalogue_index *x, bool uri)
{
	uint32_t size = 8, at;
	size_t i;

	while (size < 2 * p->n)
		size *= 2;
	x->slot = calloc(size, sizeof(*x->slot));
	if (x->slot == NULL)
		return -1;
	x->mask = size - 1;
	for (i = 0; i < p->n; i++) {
		if (key(&p->items[i], uri) == NULL)
			continue;
		at = hash(key(&p->items[i], uri)) & x->mask;
		while (x->slot[at] != 0)
			at = (at + 1) & x->mask;
		x->slot[at] = (uint32_t)i + 1;
	}
	return 0;
}

int
catalogue_item_index(struct catalogue_part *p)
{
	return build(p, &p->by_name, false) < 0 ||
		build(p, &p->by_uri, true) < 0
	    ? -1
	    : 0;
}

static const struct catalogue_item *
find(const struct catalogue_part *p, const char *text, bool uri)
{
	const struct catalogue_index *x = uri ? &p->by_uri : &p->by_name;
	const struct catalogue_item *item;
	uint32_t at;

	for (at = hash(text) & x->mask; x->slot[at] != 0;
	    at = (at + 1) & x->mask) {
		item = &p->items[x->slot[at] - 1];
		if (strcmp(key(item, uri), text) == 0)
			return item;
	}
	return NULL;
}

const struct catalogue_item *
catalogue_item_named(
    const struct catalogue *c, enum mcp_list list, const char *name)
{
	return find(&c->part[list], name, false);
}

const struct catalogue_item *
catalogue_item_at(
    const struct catalogue *c, enum mcp_list list, const char *uri)
{
	return find(&c->part[list], uri, true);
}

const struct catalogue_item *
catalogue_item_for(const struct catalogue *c, const char *uri,
    struct uri_value values[URI_VARIABLES_MAX])
{
	const struct catalogue_part *p = &c->part[MCP_LIST_TEMPLATES];
	const struct catalogue_item *item;
	size_t i, n = strlen(uri);

	item = catalogue_item_at(c, MCP_LIST_RESOURCES, uri);
	if (item == NULL)
		item = catalogue_item_at(c, MCP_LIST_STOPPED, uri);
	for (i = 0; item == NULL && i < p->n; i++)
		if (p->items[i].template != NULL &&
		    uri_template_match(p->items[i].template, uri, n, values))
			item = &p->items[i];
	return item;
}
