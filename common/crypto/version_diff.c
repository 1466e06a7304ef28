#include "version_diff.h"

#include <string.h>

#include "crypto.h"
#include "ids.h"
#include "jsonw.h"
#include "limit.h"
#include "linediff.h"
#include "version.h"

enum {
	/* Bytes of the JSON text before it is made ASCII and grows: two
	 * versions and their difference. */
	RAW_MAX = 4 * IPC_BLOB_MAX
};

/* The fields of one version. p is NULL if there is no version. */
struct side {
	const uint8_t *p;
	size_t n;
};

static bool
find(const struct side *s, uint8_t tag, struct tlv *f)
{
	return s->p != NULL && tlv_find(s->p, s->n, tag, f) == 1;
}

static bool
holds(const struct side *s, const struct tlv *value)
{
	struct tlv_reader r;
	struct tlv f;

	if (s->p == NULL)
		return false;
	tlv_open(&r, s->p, s->n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == value->tag && f.n == value->n &&
		    (f.n == 0 || memcmp(f.p, value->p, f.n) == 0))
			return true;
	return false;
}

/* Tells whether `other` has each value that `one` has for the tag. */
static bool
within(const struct side *one, const struct side *other, uint8_t tag)
{
	struct tlv_reader r;
	struct tlv f;

	if (one->p == NULL)
		return true;
	tlv_open(&r, one->p, one->n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == tag && !holds(other, &f))
			return false;
	return true;
}

/* Tells whether the field is shown as a difference of lines. */
static bool
by_line(unsigned tag)
{
	return tag == VERSION_CODE || tag == VERSION_SPEC ||
	    tag == VERSION_TEXT;
}

static void
put_value(struct jsonw *w, const struct side *s, uint8_t tag)
{
	enum version_kind kind = VERSION_S;
	char uuid[UUID_TEXT_LEN + 1];
	struct tlv_reader r;
	struct ipc_id id;
	struct tlv f;

	if (!find(s, tag, &f)) {
		jsonw_null(w);
		return;
	}
	(void)version_field(tag, &kind);
	switch (kind) {
	case VERSION_N:
		jsonw_u64(w, get_be64(f.p));
		return;
	case VERSION_I:
		memcpy(id.b, f.p, sizeof(id.b));
		uuid_text(&id, uuid);
		jsonw_str(w, uuid);
		return;
	case VERSION_M:
		jsonw_arr(w);
		tlv_open(&r, s->p, s->n);
		while (tlv_next(&r, &f) == 1)
			if (f.tag == tag)
				jsonw_strn(w, f.p, f.n);
		jsonw_arr_end(w);
		return;
	default:
		jsonw_strn(w, f.p, f.n);
	}
}

static void
put_fields(struct jsonw *w, const struct side *a, const struct side *b)
{
	jsonw_name(w, "fields");
	jsonw_arr(w);
	for (int i = 1; i <= VERSION_TAG_MAX; i++) {
		const uint8_t tag = (uint8_t)i;
		const char *name = version_field(tag, NULL);

		if (name == NULL || by_line(tag) ||
		    (within(a, b, tag) && within(b, a, tag)))
			continue;
		jsonw_obj(w);
		jsonw_kv_str(w, "field", name);
		jsonw_name(w, "before");
		put_value(w, a, tag);
		jsonw_name(w, "after");
		put_value(w, b, tag);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void
put_lines(struct jsonw *w, const struct side *a, const struct side *b)
{
	jsonw_name(w, "diff");
	jsonw_arr(w);
	for (int i = 1; i <= VERSION_TAG_MAX; i++) {
		const uint8_t tag = (uint8_t)i;
		struct tlv fa = {0}, fb = {0};
		struct buf lines;

		if (!by_line(tag) || (within(a, b, tag) && within(b, a, tag)))
			continue;
		(void)find(a, tag, &fa);
		(void)find(b, tag, &fb);
		buf_init(&lines, RAW_MAX);
		linediff(fa.p, fa.n, fb.p, fb.n, &lines);
		jsonw_obj(w);
		jsonw_kv_str(w, "field", version_field(tag, NULL));
		jsonw_kv_strn(w, "unified", lines.p, lines.len);
		jsonw_obj_end(w);
		if (lines.failed)
			w->out->failed = true;
		buf_free(&lines);
	}
	jsonw_arr_end(w);
}

static void
put_new(struct jsonw *w, const char *name, const struct side *a,
    const struct side *b, uint8_t tag)
{
	struct tlv_reader r;
	struct tlv f;

	jsonw_name(w, name);
	jsonw_arr(w);
	tlv_open(&r, b->p, b->n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == tag && !holds(a, &f))
			jsonw_strn(w, f.p, f.n);
	jsonw_arr_end(w);
}

/* Writes each limit that version b raises, no longer sets, or sets for the
 * first time, compared with version a. */
static void
put_limits(struct jsonw *w, const struct side *a, const struct side *b)
{
	struct tlv fa, fb;
	bool before, after;

	jsonw_name(w, "limits");
	jsonw_arr(w);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *t = limit_info((enum limit)i);
		uint8_t tag = (uint8_t)t->version;

		if (tag == 0)
			continue;
		before = find(a, tag, &fa);
		after = find(b, tag, &fb);
		if ((!before && !after) ||
		    (before && after && get_be64(fb.p) <= get_be64(fa.p)))
			continue;
		jsonw_obj(w);
		jsonw_kv_str(w, "limit", t->name);
		jsonw_name(w, "before");
		put_value(w, a, tag);
		jsonw_name(w, "after");
		put_value(w, b, tag);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static bool
confirms(const struct side *s)
{
	struct tlv f;

	return find(s, VERSION_CONFIRM, &f) && get_be64(f.p) != 0;
}

static void
put_other(struct jsonw *w, const struct side *a, const struct side *b)
{
	struct tlv fa, fb;

	jsonw_name(w, "other");
	jsonw_arr(w);
	if (confirms(a) && !confirms(b))
		jsonw_str(w, "no person is asked for each call any more");
	if (find(b, VERSION_EXECUTABLE, &fb) && !holds(a, &fb))
		jsonw_str(w, "another executable is run");
	else if (find(b, VERSION_EXECUTABLE_DIGEST, &fb) && !holds(a, &fb))
		jsonw_str(w, "the executable's content is another");
	if (find(a, VERSION_EXPOSED_NAME, &fa) &&
	    find(b, VERSION_EXPOSED_NAME, &fb) && !holds(a, &fb))
		jsonw_str(w, "clients see it under another name");
	jsonw_arr_end(w);
}

static int
same_tool(const struct side *a, const struct side *b, struct err *e)
{
	static const uint8_t tags[] = {VERSION_SERVER_ID, VERSION_TOOL_ID};
	struct tlv fa, fb;

	for (size_t i = 0; i < sizeof(tags); i++)
		if (!find(a, tags[i], &fa) || !find(b, tags[i], &fb) ||
		    memcmp(fa.p, fb.p, 16) != 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "the versions are not of one tool");
	return 0;
}

int
version_diff_json(const uint8_t *base, size_t nbase, const uint8_t *preimage,
    size_t n, struct buf *out, struct err *e)
{
	struct side a = {NULL, 0}, b = {NULL, 0};
	char hex[HEX32_LEN + 1];
	struct ipc_hash hash;
	struct jsonw w;
	struct buf raw;
	int rc = 0;

	if (version_check(preimage, n, &b.p, &b.n, e) == -1)
		return -1;
	if (base != NULL &&
	    (version_check(base, nbase, &a.p, &a.n, e) == -1 ||
		same_tool(&a, &b, e) == -1))
		return -1;
	buf_init(&raw, RAW_MAX);
	jsonw_open(&w, &raw);
	jsonw_obj(&w);
	jsonw_name(&w, "base");
	if (base == NULL) {
		jsonw_null(&w);
	} else {
		sha256(base, nbase, &hash);
		hex_encode(hash.b, sizeof(hash.b), hex);
		jsonw_str(&w, hex);
	}
	put_fields(&w, &a, &b);
	put_lines(&w, &a, &b);
	jsonw_name(&w, "gains");
	jsonw_obj(&w);
	put_new(&w, "secrets", &a, &b, VERSION_SECRET);
	put_new(&w, "modules", &a, &b, VERSION_MODULE);
	put_new(&w, "hosts", &a, &b, VERSION_REQUIRE);
	put_new(&w, "client_capabilities", &a, &b, VERSION_CLIENT_CAPABILITY);
	put_limits(&w, &a, &b);
	put_other(&w, &a, &b);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	jsonw_ascii(out, raw.p, raw.len);
	if (raw.failed || out->failed)
		rc = err_set(e, FAILURE_INTERNAL, "diff: too large to show");
	buf_free(&raw);
	return rc;
}
