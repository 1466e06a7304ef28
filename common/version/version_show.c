/*
 * version_json: shows a version to people. This is a file of its own, so that a
 * program that only makes or checks pre-images doesn't link it.
 */
#include "ids.h"
#include "json_grammar.h"
#include "jsonw.h"
#include "version.h"

enum {
	/* Content becomes at most six times larger by \uXXXX escapes. */
	SHOW_MAX = 6 * IPC_BLOB_MAX
};

/* Fields that hold JSON are shown as JSON; code is text. */
static bool
is_json(unsigned tag)
{
	return tag != VERSION_CODE;
}

/*
 * The bytes come from admind, which the reviewer's programs don't trust: an
 * input_schema of `{},"code":"harmless"` pasted in raw would forge a field of
 * the shown object. So raw fields are embedded only if they are one JSON value
 * by grammar; else the version can't be shown, and hence not approved.
 */
static int
show_field(struct jsonw *w, const struct tlv *f, const char *name,
    enum version_kind kind, struct err *e)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct ipc_id id;
	uint64_t v;

	switch (kind) {
	case VERSION_S:
		jsonw_kv_strn(w, name, f->p, f->n);
		return 0;
	case VERSION_N:
		v = get_be64(f->p);
		jsonw_name(w, name);
		if (f->tag == VERSION_CONFIRM && v <= 1)
			jsonw_bool(w, v == 1);
		else
			jsonw_u64(w, v);
		return 0;
	case VERSION_I:
		for (size_t i = 0; i < sizeof(id.b); i++)
			id.b[i] = f->p[i];
		uuid_text(&id, uuid);
		jsonw_kv_str(w, name, uuid);
		return 0;
	case VERSION_B:
		if (!is_json(f->tag)) {
			jsonw_kv_strn(w, name, f->p, f->n);
			return 0;
		}
		if (!json_grammar_valid(f->p, f->n))
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: %s is not JSON", name);
		jsonw_kv_raw(w, name, f->p, f->n);
		return 0;
	case VERSION_M:
		jsonw_strn(w, f->p, f->n);
		return 0;
	}
	return err_set(e, FAILURE_INTERNAL, "version: unknown kind");
}

int
version_json(
    const uint8_t *preimage, size_t len, struct buf *out, struct err *e)
{
	const uint8_t *fields;
	struct tlv_reader r;
	enum version_kind kind;
	const char *name;
	struct buf raw;
	struct jsonw w;
	struct tlv f;
	unsigned set = 0; /* tag of the open array */
	size_t n;
	int rc = -1;

	if (version_check(preimage, len, &fields, &n, e) < 0)
		return -1;
	buf_init(&raw, SHOW_MAX);
	jsonw_open(&w, &raw);
	jsonw_obj(&w);
	tlv_open(&r, fields, n);
	while (tlv_next(&r, &f) == 1) {
		name = version_field(f.tag, &kind);
		if (set != 0 && f.tag != set) {
			jsonw_arr_end(&w);
			set = 0;
		}
		if (kind == VERSION_M && set == 0) {
			jsonw_name(&w, name);
			jsonw_arr(&w);
			set = f.tag;
		}
		if (show_field(&w, &f, name, kind, e) < 0)
			goto out;
	}
	if (set != 0)
		jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	jsonw_ascii(out, raw.p, raw.len);
	if (raw.failed || out->failed) {
		err_set(e, FAILURE_INTERNAL, "version: too large to show");
		goto out;
	}
	rc = 0;
out:
	buf_free(&raw);
	return rc;
}
