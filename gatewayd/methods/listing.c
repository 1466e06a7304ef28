/*
 * tools/list, prompts/list, resources/list, resources/templates/list, alike in
 * both eras.
 *
 * A page is a part of the list's text in the catalogue. Only the few bytes
 * before and after the page are made for each request.
 *
 * A cursor has the name of the last object shown, the number of its list, and a
 * MAC over both, by which other cursors than ours are refused. A cursor conveys
 * no authority: a client that changes it could at most begin elsewhere in a
 * list that the client may read whole. A cursor names an object, not a place,
 * so it stays valid when the list changes. If the object is gone, the page
 * begins with the next one in the list's order.
 */
#include <string.h>

#include "catalogue.h"
#include "ids.h"
#include "methods.h"
#include "name.h"

enum {
	MAC_LEN = 16,
	CURSOR_MAX = 1 + MAC_LEN + MCP_NAME_MAX,
	CURSOR_TEXT_MAX = (CURSOR_MAX * 4 + 2) / 3
};

static const struct {
	enum mcp_method method;
	enum mcp_list list;
	const char *member;
} lists[] = {{MCP_TOOLS_LIST, MCP_LIST_TOOLS, "tools"},
    {MCP_PROMPTS_LIST, MCP_LIST_PROMPTS, "prompts"},
    {MCP_RESOURCES_LIST, MCP_LIST_RESOURCES, "resources"},
    {MCP_TEMPLATES_LIST, MCP_LIST_TEMPLATES, "resourceTemplates"}};

/* Makes a cursor's MAC, over a label, the list and the name. A cursor's bytes:
 * list, MAC, name. */
static void
mac(const struct gateway *gw, uint8_t list, const char *name, uint8_t *out)
{
	static const char label[] = "mcpbox cursor 1"; /* with its NUL */
	uint8_t text[sizeof(label) + 1 + MCP_NAME_MAX + 1];
	struct ipc_hash h;
	size_t n = strlen(name);

	memcpy(text, label, sizeof(label));
	text[sizeof(label)] = list;
	memcpy(text + sizeof(label) + 1, name, n + 1);
	hmac_sha256(gw->session_key, text, sizeof(label) + 1 + n, &h);
	memcpy(out, h.b, MAC_LEN);
}

static void
cursor_make(const struct gateway *gw, enum mcp_list list, const char *name,
    char out[CURSOR_TEXT_MAX + 1])
{
	uint8_t b[CURSOR_MAX + 1];
	size_t n = strlen(name); /* catalogue.c keeps only names that fit */

	b[0] = (uint8_t)list;
	mac(gw, b[0], name, b + 1);
	memcpy(b + 1 + MAC_LEN, name, n + 1);
	b64url_encode(b, 1 + MAC_LEN + n, out);
}

/* Reads a cursor. 0 and the name, or -1. */
static int
cursor_read(const struct gateway *gw, struct ipc_bytes json, enum mcp_list list,
    char name[MCP_NAME_MAX + 1])
{
	char text[CURSOR_TEXT_MAX + 1];
	uint8_t b[CURSOR_MAX + 3], want[MAC_LEN];
	size_t len;
	long n;

	if (mcp_json_text(json, text, sizeof(text)) < 0)
		return -1;
	len = strlen(text);
	n = b64url_decode(text, len, b);
	if (n <= 1 + MAC_LEN || n > CURSOR_MAX || b[0] != (uint8_t)list)
		return -1;
	memcpy(name, b + 1 + MAC_LEN, (size_t)n - 1 - MAC_LEN);
	name[n - 1 - MAC_LEN] = '\0';
	if (strlen(name) != (size_t)n - 1 - MAC_LEN)
		return -1;
	mac(gw, b[0], name, want);
	return ct_equal(want, b + 1, MAC_LEN) ? 0 : -1;
}

/*
 * Returns the first item after `name` in the list's order: users' objects by
 * name, bytewise, then the management tools. A management tool disappears only
 * with an upgrade. If `name` is a management tool that disappeared, all
 * management tools are left out, so that none is shown twice.
 */
static size_t
after(const struct catalogue *c, enum mcp_list list, const char *name)
{
	const struct catalogue_part *p = &c->part[list];
	const struct catalogue_item *item = catalogue_item_named(c, list, name);
	size_t i;

	if (item != NULL)
		return (size_t)(item - p->items) + 1;
	if (name_is_management(name))
		return p->n;
	for (i = 0; i < p->n; i++)
		if (name_is_management(p->items[i].name) ||
		    strcmp(p->items[i].name, name) > 0)
			break;
	return i;
}

/* Puts the objects of a page without the parts that legacy clients don't
 * get. */
static void
put_narrow(
    struct buf *b, const struct catalogue_part *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct ipc_bytes json = catalogue_item_json(p, &p->items[i]);
		struct narrow hidden = p->items[i].hidden;

		if (i > from)
			buf_putc(b, ',');
		buf_put(b, json.p, hidden.at);
		buf_put(b, json.p + hidden.at + hidden.n,
		    json.n - hidden.at - hidden.n);
	}
}

static bool
any_hidden(const struct catalogue_part *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (p->items[i].hidden.n > 0)
			return true;
	return false;
}

static void
listed(void *arg, const struct catalogue *c, const struct refusal *no)
{
	struct exchange *ex = arg;
	struct gateway *gw = ex->gw;
	struct answer_to to = exchange_to(ex);
	char name[MCP_NAME_MAX + 1], cursor[CURSOR_TEXT_MAX + 1] = "";
	const struct catalogue_part *p;
	const struct catalogue_item *last;
	size_t i, start = 0, end;
	struct buf head, tail;
	struct ipc_bytes page = {NULL, 0};

	if (c == NULL) {
		exchange_refuse(ex, no);
		return;
	}
	for (i = 0; lists[i].method != ex->m.method; i++)
		;
	p = &c->part[lists[i].list];
	if (ex->m.cursor.n > 0) {
		/* Without the session key this process made no cursor. */
		if (!gw->has_key ||
		    cursor_read(gw, ex->m.cursor, lists[i].list, name) < 0) {
			exchange_error(ex, 200, FAILURE_BAD_CURSOR,
			    "This cursor is not one of this list.", NULL);
			return;
		}
		start = after(c, lists[i].list, name);
	}
	end = p->n;
	/* Without the session key there are no cursors, so the list goes out
	 * whole. */
	if (gw->has_key && end - start > gw->page_size) {
		end = start + gw->page_size;
		cursor_make(gw, lists[i].list, p->items[end - 1].name, cursor);
	}
	if (end > start) {
		last = &p->items[end - 1];
		page = ipc_bytes(p->json.p + p->items[start].at,
		    last->at + last->n - p->items[start].at);
	}
	buf_init(&head, ANSWER_MAX);
	buf_init(&tail, ANSWER_MAX);
	answer_list_head(&head, &to, lists[i].member);
	if (!ex->m.modern && any_hidden(p, start, end)) {
		put_narrow(&head, p, start, end);
		page = ipc_bytes(NULL, 0);
	}
	answer_list_tail(&tail, &to, cursor);
	exchange_answer_parts(ex, &head, page, &tail);
}

void
listing_serve(struct exchange *ex)
{
	size_t i;

	for (i = 0; lists[i].method != ex->m.method; i++)
		;
	if (exchange_may_read(ex, 1u << lists[i].list))
		catalogue_ask(ex->gw, ex->who.permission_set, listed, ex);
}
