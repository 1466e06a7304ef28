#include <string.h>

#include "ids.h"
#include "utf8.h"
#include "version.h"

/* The terminating NUL is part of the magic. */
static const char magic[] = "mcpbox version 1";

static const struct {
	const char *name;
	enum version_kind kind;
} fields_by_tag[VERSION_TAG_MAX + 1] = {
#define V(number, SYMBOL, name, kind) [number] = {name, VERSION_##kind},
    VERSION_FIELDS(V)
#undef V
};

const char *
version_field(unsigned tag, enum version_kind *kind)
{
	if (tag > VERSION_TAG_MAX || fields_by_tag[tag].name == NULL)
		return NULL;
	if (kind != NULL)
		*kind = fields_by_tag[tag].kind;
	return fields_by_tag[tag].name;
}

void
version_begin(struct buf *b)
{
	buf_put(b, magic, sizeof(magic));
}

/* Tells whether two fields of a sorted set are in strict byte order. */
static bool
ascends(const struct tlv *a, const struct tlv *b)
{
	size_t n = a->n < b->n ? a->n : b->n;
	int rc = n > 0 ? memcmp(a->p, b->p, n) : 0;

	return rc < 0 || (rc == 0 && a->n < b->n);
}

/*
 * Checks one value against its kind. Text and raw bytes alike must be UTF-8
 * without NUL: a reviewer is shown these bytes as text, and two contents that
 * look the same on his screen must not have two hashes.
 */
static int
check_value(const struct tlv *f, struct err *e)
{
	const char *name = fields_by_tag[f->tag].name;

	switch (fields_by_tag[f->tag].kind) {
	case VERSION_N:
		if (f->n != 8)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: %s is not 8 bytes", name);
		return 0;
	case VERSION_I:
		if (f->n != 16)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: %s is not 16 bytes", name);
		return 0;
	case VERSION_S:
	case VERSION_B:
	case VERSION_M:
		if (f->n > 0 && memchr(f->p, 0, f->n) != NULL)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: %s holds a NUL", name);
		if (!utf8_valid(f->p, f->n))
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: %s is not UTF-8", name);
		return 0;
	}
	return err_set(e, FAILURE_INVALID_PARAMS, "version: unknown kind");
}

/*
 * One content has one pre-image: fields in table order, single ones once, sets
 * sorted without duplicates. Everything else is refused, so the hash can't be
 * varied without varying the content.
 */
int
version_check(const uint8_t *preimage, size_t len, const uint8_t **fields,
    size_t *n, struct err *e)
{
	struct tlv_reader r;
	struct tlv f, last = {0};
	uint64_t format;
	int rc;

	if (len < sizeof(magic) || memcmp(preimage, magic, sizeof(magic)) != 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "version: does not start with its magic");
	tlv_open(&r, preimage + sizeof(magic), len - sizeof(magic));
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (version_field(f.tag, NULL) == NULL)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: unknown field %u", f.tag);
		if (f.tag < last.tag)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: %s is out of order",
			    fields_by_tag[f.tag].name);
		if (f.tag == last.tag) {
			if (fields_by_tag[f.tag].kind != VERSION_M)
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "version: %s occurs twice",
				    fields_by_tag[f.tag].name);
			if (!ascends(&last, &f))
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "version: %s is not sorted or has a "
				    "duplicate",
				    fields_by_tag[f.tag].name);
		}
		if (last.tag == 0 &&
		    (f.tag != VERSION_FORMAT || tlv_u64(&f, &format) < 0 ||
			format != 1))
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "version: the first field must be format 1");
		if (check_value(&f, e) < 0)
			return -1;
		last = f;
	}
	if (rc < 0)
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "version: a field is cut short");
	if (last.tag == 0)
		return err_set(e, FAILURE_INVALID_PARAMS, "version: no fields");
	*fields = preimage + sizeof(magic);
	*n = len - sizeof(magic);
	return 0;
}

int
version_modules(const uint8_t *fields, size_t n,
    uint8_t digest[MODULES_PER_CALL_MAX][32], size_t *count, struct err *err)
{
	struct tlv_reader r;
	size_t have = 0, i;
	uint8_t one[32];
	struct tlv f;

	tlv_open(&r, fields, n);
	while (tlv_next(&r, &f) == 1) {
		if (f.tag != VERSION_MODULE)
			continue;
		if (f.n < HEX32_LEN + 4 || f.p[f.n - HEX32_LEN - 1] != ' ' ||
		    hex_decode((const char *)f.p + f.n - HEX32_LEN, HEX32_LEN,
			one) == -1)
			goto bad;
		for (i = have; i > 0 && memcmp(digest[i - 1], one, 32) > 0; i--)
			;
		/* The same content under two names is mounted once. */
		if (i > 0 && memcmp(digest[i - 1], one, 32) == 0)
			continue;
		if (have == MODULES_PER_CALL_MAX)
			goto bad;
		if (i < have)
			memmove(digest[i + 1], digest[i], (have - i) * 32);
		memcpy(digest[i], one, 32);
		have++;
	}
	*count = have;
	return 0;
bad:
	return err_set(err, FAILURE_INVALID_REQUEST,
	    "the version's modules are no lock, or more than %d: make a new "
	    "version",
	    MODULES_PER_CALL_MAX);
}
