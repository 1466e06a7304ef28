/* See content.h. */
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "walk.h"

enum rule {
	END,
	STRING,
	URI,
	BASE64,
	SIZE,
	RESOURCE,
	ANNOTATIONS,
	ROLE,
	BLOCK
};

struct member {
	const char *name;
	enum rule rule;
	bool required;
};

enum { MEMBERS_MAX = 8 };

static const struct member text_members[] = {
    {"text", STRING, true}, {"annotations", ANNOTATIONS, false}, {0}};
/* Images and sound. */
static const struct member media_members[] = {{"data", BASE64, true},
    {"mimeType", STRING, true}, {"annotations", ANNOTATIONS, false}, {0}};
static const struct member link_members[] = {{"uri", URI, true},
    {"name", STRING, true}, {"title", STRING, false},
    {"description", STRING, false}, {"mimeType", STRING, false},
    {"size", SIZE, false}, {"annotations", ANNOTATIONS, false}, {0}};
static const struct member resource_members[] = {
    {"resource", RESOURCE, true}, {"annotations", ANNOTATIONS, false}, {0}};
/* The members of an embedded resource, and of resources/read, where a missing
 * URI means the URI that was asked for. */
enum { INNER_URI, INNER_MIME, INNER_TEXT, INNER_BLOB };
static const struct member inner_members[] = {{"uri", URI, true},
    {"mimeType", STRING, false}, {"text", STRING, false},
    {"blob", BASE64, false}, {0}};
static const struct member read_members[] = {{"uri", URI, false},
    {"mimeType", STRING, false}, {"text", STRING, false},
    {"blob", BASE64, false}, {0}};
static const struct member message_members[] = {
    {"role", ROLE, true}, {"content", BLOCK, true}, {0}};

static const struct type {
	const char *name;
	const struct member *members;
} types[] = {
    {"text", text_members},
    {"image", media_members},
    {"audio", media_members},
    {"resource_link", link_members},
    {"resource", resource_members},
};

struct taker {
	struct jsonw *w;
	struct redact *redact;
	struct buf tmp;
	bool *replaced;
	const char *list; /* the block's list: "content", "messages" */
	unsigned index;   /* of the block in the list */
	const char *type;
	struct err *err;
};

static int
refuse(struct taker *t, const char *member, const char *what)
{
	return err_set(t->err, FAILURE_EXCEPTION,
	    "The tool's result was refused: %s[%u]%s%s%s%s %s.", t->list,
	    t->index, t->type != NULL ? ", of type " : "",
	    t->type != NULL ? t->type : "", member != NULL ? ": " : "",
	    member != NULL ? member : "", what);
}

/* --- Forms. ------------------------------------------------------------ */

static bool
is_string(struct ipc_bytes v)
{
	return v.p[0] == '"';
}

/* Tells whether v is a URI (RFC 3986 section 3.1): a scheme and a colon, and no
 * blanks or controls anywhere. */
static bool
is_uri(struct ipc_bytes v)
{
	size_t i = 1;

	if (!is_string(v) || !((v.p[i] | 32) >= 'a' && (v.p[i] | 32) <= 'z'))
		return false;
	while (((v.p[i] | 32) >= 'a' && (v.p[i] | 32) <= 'z') ||
	    (v.p[i] >= '0' && v.p[i] <= '9') || v.p[i] == '+' ||
	    v.p[i] == '-' || v.p[i] == '.')
		i++;
	if (v.p[i] != ':')
		return false;
	/* JSON writes controls as escapes. A URI has no backslash, so the test
	 * for a backslash finds these, too. */
	for (; i < v.n - 1; i++)
		if (v.p[i] <= ' ' || v.p[i] == '\\' || v.p[i] == 0x7f)
			return false;
	return true;
}

/* Tells whether v is base64 (RFC 4648 section 4) with padding and nothing else.
 */
static bool
is_base64(struct ipc_bytes v)
{
	size_t n = v.n - 2, pad = 0;

	if (!is_string(v) || n % 4 != 0)
		return false;
	while (pad < 2 && pad < n && v.p[n - pad] == '=')
		pad++;
	for (size_t i = 1; i <= n - pad; i++) {
		uint8_t c = v.p[i];

		if (!(((c | 32) >= 'a' && (c | 32) <= 'z') ||
			(c >= '0' && c <= '9') || c == '+' || c == '/'))
			return false;
	}
	return true;
}

static bool
is_size(struct ipc_bytes v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
	return v.n <= 16; /* 2^53 has 16 digits */
}

/* Tells whether v is a number from 0 to 1. */
static bool
is_priority(struct ipc_bytes v)
{
	char s[32], *end;
	double d;

	if (v.n >= sizeof(s))
		return false;
	memcpy(s, v.p, v.n);
	s[v.n] = '\0';
	d = strtod(s, &end);
	return (s[0] == '-' || (s[0] >= '0' && s[0] <= '9')) && *end == '\0' &&
	    d >= 0 && d <= 1;
}

static bool
is_audience(struct ipc_bytes v)
{
	struct ipc_bytes name, x;
	struct walk w;

	if (walk_open(&w, v, '[') != 0)
		return false;
	while (walk_next(&w, &name, &x))
		if (!walk_is(x, "\"user\"") && !walk_is(x, "\"assistant\""))
			return false;
	return true;
}

/* --- Writing. ---------------------------------------------------------- */

/* Writes a member with its secrets replaced. Leaves out a number that holds a
 * secret. */
static void
put(struct taker *t, const char *name, struct ipc_bytes v)
{
	int any;

	buf_clear(&t->tmp);
	any = redact_json(t->redact, v, &t->tmp);
	if (t->tmp.failed) {
		t->w->out->failed = true;
		return;
	}
	if (any)
		*t->replaced = true;
	if (any && v.p[0] != '"' && v.p[0] != '[' && v.p[0] != '{')
		return;
	jsonw_kv_raw(t->w, name, t->tmp.p, t->tmp.len);
}

static unsigned
sixbits(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26U;
	if (c >= '0' && c <= '9')
		return c - '0' + 52U;
	return c == '+' ? 62 : 63;
}

/* Decodes base64 the way a client does. is_base64 must have accepted v. */
static void
decode(struct ipc_bytes v, struct buf *out)
{
	uint32_t bits = 0;
	unsigned have = 0;
	uint8_t *p;

	buf_reserve(out, v.n);
	if (out->failed)
		return;
	p = out->p;
	for (size_t i = 1; i < v.n - 1 && v.p[i] != '='; i++) {
		bits = bits << 6 | sixbits(v.p[i]);
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		*p++ = (uint8_t)(bits >> have);
	}
	out->len = (size_t)(p - out->p);
}

/* Tells whether data holds a secret, as it is written or as a client decodes
 * it. */
static bool
tells(struct taker *t, struct ipc_bytes v)
{
	struct buf plain, out;
	bool rc;

	if (!redact_any(t->redact))
		return false;
	buf_clear(&t->tmp);
	if (redact_json(t->redact, v, &t->tmp) != 0)
		return true;
	buf_init(&plain, v.n);
	buf_init(&out, v.n);
	decode(v, &plain);
	rc = plain.failed ||
	    redact_bytes(t->redact, ipc_bytes(plain.p, plain.len), &out) != 0;
	buf_free(&plain);
	buf_free(&out);
	return rc;
}

static int
annotations(struct taker *t, struct ipc_bytes v)
{
	struct ipc_bytes name, x;
	struct walk w;

	if (walk_open(&w, v, '{') != 0)
		return refuse(t, "annotations", "is no object");
	jsonw_name(t->w, "annotations");
	jsonw_obj(t->w);
	while (walk_next(&w, &name, &x)) {
		if (walk_is(name, "audience")) {
			if (!is_audience(x))
				return refuse(t, "annotations.audience",
				    "is no list of \"user\" and \"assistant\"");
			put(t, "audience", x);
		} else if (walk_is(name, "priority")) {
			if (!is_priority(x))
				return refuse(t, "annotations.priority",
				    "is no number from 0 to 1");
			put(t, "priority", x);
		} else if (walk_is(name, "lastModified")) {
			if (!is_string(x))
				return refuse(t, "annotations.lastModified",
				    "is no string");
			put(t, "lastModified", x);
		}
	}
	jsonw_obj_end(t->w);
	return 0;
}

/* Looks up and checks the members of one object. An absent member has p NULL.
 */
static int
gather(struct taker *t, struct ipc_bytes object, const struct member *m,
    struct ipc_bytes v[MEMBERS_MAX])
{
	struct ipc_bytes name, x;
	struct walk w;

	memset(v, 0, MEMBERS_MAX * sizeof(v[0]));
	if (walk_open(&w, object, '{') != 0)
		return refuse(t, NULL, "is no object");
	while (walk_next(&w, &name, &x))
		for (unsigned i = 0; m[i].rule != END; i++)
			if (walk_is(name, m[i].name))
				v[i] = x;
	for (unsigned i = 0; m[i].rule != END; i++) {
		if (v[i].p == NULL) {
			if (m[i].required)
				return refuse(t, m[i].name, "is missing");
			continue;
		}
		if (m[i].rule == STRING && !is_string(v[i]))
			return refuse(t, m[i].name, "is no string");
		if (m[i].rule == URI && !is_uri(v[i]))
			return refuse(t, m[i].name,
			    "is no URI (scheme:..., without blanks)");
		if (m[i].rule == BASE64 && !is_base64(v[i]))
			return refuse(t, m[i].name, "is no base64");
		if (m[i].rule == SIZE && !is_size(v[i]))
			return refuse(t, m[i].name, "is no size in bytes");
		if (m[i].rule == ROLE && !walk_is(v[i], "\"user\"") &&
		    !walk_is(v[i], "\"assistant\""))
			return refuse(
			    t, m[i].name, "is neither user nor assistant");
	}
	return 0;
}

static int
one_of_two(struct taker *t, const struct ipc_bytes *v)
{
	if ((v[INNER_TEXT].p == NULL) == (v[INNER_BLOB].p == NULL))
		return refuse(t, t->type != NULL ? "resource" : NULL,
		    "must have text or blob, not both");
	return 0;
}

/* Tells whether the block's data holds a secret. Called before any part of the
 * block is written, because the block may become a text. */
static bool
data_tells(struct taker *t, const struct member *m, const struct ipc_bytes *v)
{
	for (unsigned i = 0; m[i].rule != END; i++)
		if (m[i].rule == BASE64 && v[i].p != NULL && tells(t, v[i]))
			return true;
	return false;
}

static int
members(struct taker *t, const struct member *m, const struct ipc_bytes *v,
    const struct ipc_bytes *inner)
{
	for (unsigned i = 0; m[i].rule != END; i++) {
		if (v[i].p == NULL)
			continue;
		if (m[i].rule == RESOURCE && inner != NULL) {
			jsonw_name(t->w, m[i].name);
			jsonw_obj(t->w);
			(void)members(t, inner_members, inner, NULL);
			jsonw_obj_end(t->w);
		} else if (m[i].rule != ANNOTATIONS)
			put(t, m[i].name, v[i]);
		else if (annotations(t, v[i]) != 0)
			return -1;
	}
	return 0;
}

static const struct type *
type_of(struct ipc_bytes block)
{
	struct ipc_bytes name, x;
	struct walk w;

	if (walk_open(&w, block, '{') != 0)
		return NULL;
	while (walk_next(&w, &name, &x)) {
		if (!walk_is(name, "type") || !is_string(x))
			continue;
		x = ipc_bytes(x.p + 1, x.n - 2);
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			if (walk_is(x, types[i].name))
				return &types[i];
	}
	return NULL;
}

static const char withheld_text[] =
    "[data withheld: it contains a secret of the call]";

static int
block(struct taker *t, struct ipc_bytes v)
{
	struct ipc_bytes found[MEMBERS_MAX] = {0}, inner[MEMBERS_MAX] = {0};
	const struct type *type = type_of(v);
	bool withheld;

	t->type = NULL;
	if (type == NULL)
		return refuse(t, NULL,
		    "is no block of type text, image, audio, resource or "
		    "resource_link");
	t->type = type->name;
	if (gather(t, v, type->members, found) != 0)
		return -1;
	withheld = data_tells(t, type->members, found);
	if (type->members == resource_members) {
		if (gather(t, found[0], inner_members, inner) != 0 ||
		    one_of_two(t, inner) != 0)
			return -1;
		withheld = data_tells(t, inner_members, inner);
	}
	jsonw_obj(t->w);
	if (withheld) {
		*t->replaced = true;
		jsonw_kv_str(t->w, "type", "text");
		jsonw_kv_str(t->w, "text", withheld_text);
	} else {
		jsonw_kv_str(t->w, "type", type->name);
		if (members(t, type->members, found, inner) != 0)
			return -1;
	}
	jsonw_obj_end(t->w);
	return 0;
}

/* Writes a prompt's message: the speaker's role, and one block. */
static int
message(struct taker *t, struct ipc_bytes v)
{
	struct ipc_bytes found[MEMBERS_MAX] = {0};

	t->type = NULL;
	if (gather(t, v, message_members, found) != 0)
		return -1;
	jsonw_obj(t->w);
	/* The role is one of two words, so it holds no secret. */
	jsonw_kv_raw(t->w, "role", found[0].p, found[0].n);
	jsonw_name(t->w, "content");
	if (block(t, found[1]) != 0)
		return -1;
	jsonw_obj_end(t->w);
	return 0;
}

/* Writes one resource of resources/read. */
static int
contents(struct taker *t, struct ipc_bytes v)
{
	struct ipc_bytes found[MEMBERS_MAX] = {0};

	t->type = NULL;
	if (gather(t, v, read_members, found) != 0 || one_of_two(t, found) != 0)
		return -1;
	jsonw_obj(t->w);
	if (data_tells(t, read_members, found)) {
		*t->replaced = true;
		if (found[INNER_URI].p != NULL)
			put(t, "uri", found[INNER_URI]);
		jsonw_kv_str(t->w, "mimeType", "text/plain");
		jsonw_kv_str(t->w, "text", withheld_text);
	} else
		(void)members(t, read_members, found, NULL);
	jsonw_obj_end(t->w);
	return 0;
}

/* Takes the elements of an array, one by one. */
static int
take(struct ipc_bytes array, struct taker *t,
    int (*element)(struct taker *, struct ipc_bytes))
{
	struct ipc_bytes name, v;
	struct walk in;
	int rc = 0;

	if (walk_open(&in, array, '[') != 0)
		return err_set(t->err, FAILURE_EXCEPTION,
		    "The tool's result was refused: %s is no list.", t->list);
	buf_init(&t->tmp, array.n);
	jsonw_arr(t->w);
	while (rc == 0 && walk_next(&in, &name, &v)) {
		rc = element(t, v);
		t->index++;
	}
	if (rc == 0)
		jsonw_arr_end(t->w);
	buf_free(&t->tmp);
	return rc;
}

int
content_take(struct ipc_bytes array, struct redact *r, struct jsonw *w,
    bool *replaced, struct err *e)
{
	struct taker t = {.w = w,
	    .redact = r,
	    .replaced = replaced,
	    .list = "content",
	    .err = e};

	return take(array, &t, block);
}

int
content_messages(struct ipc_bytes array, struct redact *r, struct jsonw *w,
    bool *replaced, struct err *e)
{
	struct taker t = {.w = w,
	    .redact = r,
	    .replaced = replaced,
	    .list = "messages",
	    .err = e};

	return take(array, &t, message);
}

int
content_resources(struct ipc_bytes array, struct redact *r, struct jsonw *w,
    bool *replaced, struct err *e)
{
	struct taker t = {.w = w,
	    .redact = r,
	    .replaced = replaced,
	    .list = "contents",
	    .err = e};

	return take(array, &t, contents);
}
