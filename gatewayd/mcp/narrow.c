/* See narrow.h. */
#include "json.h"
#include "narrow.h"
#include "walk.h"

/* Returns the place of a member and of one comma next to it. */
static struct narrow
cut(struct ipc_bytes object, const uint8_t *from, const uint8_t *to)
{
	const uint8_t *p = from, *end = object.p + object.n;

	do
		p--;
	while (walk_space(*p));
	if (*p == ',')
		from = p;
	else {
		while (to < end && walk_space(*to))
			to++;
		to += to < end && *to == ',';
	}
	return (struct narrow){(size_t)(from - object.p), (size_t)(to - from)};
}

static bool
find(struct ipc_bytes object, const char *name, struct ipc_bytes *v,
    struct narrow *where)
{
	struct ipc_bytes member;
	struct walk w;

	if (walk_open(&w, object, '{') != 0)
		return false;
	while (walk_next(&w, &member, v))
		if (walk_is(member, name)) {
			*where = cut(object, member.p - 1, v->p + v->n);
			return true;
		}
	return false;
}

struct narrow
narrow_tool(struct ipc_bytes tool)
{
	static const char *const type[] = {"type", NULL};
	struct narrow where = {0, 0};
	struct ipc_bytes v;
	const uint8_t *p;
	size_t n;

	if (find(tool, "outputSchema", &v, &where) &&
	    json_slice(v.p, v.n, type, &p, &n) == 1 &&
	    walk_is(ipc_bytes(p, n), "\"object\""))
		where.n = 0;
	return where;
}

struct narrow
narrow_result(struct ipc_bytes result)
{
	struct narrow where = {0, 0};
	struct ipc_bytes v;

	if (find(result, "structuredContent", &v, &where) && v.p[0] == '{')
		where.n = 0;
	return where;
}
