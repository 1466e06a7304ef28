#include <string.h>

#include "callreq.h"
#include "ids.h"
#include "json_grammar.h"
#include "jsonw.h"
#include "tlv.h"

/* The terminating NUL is part of the magic. */
static const char magic[] = "mcpbox call 1";

enum { SHOW_MAX = 6 * CALLREQ_MAX }; /* \uXXXX: six bytes for one */

static const char *const names[] = {[CALLREQ_VERSION_HASH] = "version_hash",
    [CALLREQ_TOOL] = "tool",
    [CALLREQ_PRINCIPAL] = "principal",
    [CALLREQ_LISTENER] = "listener",
    [CALLREQ_ARGUMENTS] = "arguments",
    [CALLREQ_REQUEST] = "request",
    [CALLREQ_EXPIRES_MS] = "expires_ms"};

bool
callreq_is(const void *preimage, size_t n)
{
	return n >= sizeof(magic) &&
	    memcmp(preimage, magic, sizeof(magic)) == 0;
}

/* Takes text that a person reads: UTF-8 without NUL. Otherwise two contents
 * could look the same on the screen. */
static int
take_text(const struct tlv *f, size_t max, struct ipc_bytes *out, struct err *e)
{
	if (f->n == 0 || f->n > max || memchr(f->p, 0, f->n) != NULL ||
	    !utf8_valid(f->p, f->n))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "call: %s is empty, too long or no text", names[f->tag]);
	*out = ipc_bytes(f->p, f->n);
	return 0;
}

static int
take(const struct tlv *f, struct callreq *out, struct err *e)
{
	switch (f->tag) {
	case CALLREQ_VERSION_HASH:
		if (f->n != sizeof(out->version.b))
			break;
		memcpy(out->version.b, f->p, f->n);
		return 0;
	case CALLREQ_TOOL:
		return take_text(f, CALLREQ_NAME_MAX, &out->tool, e);
	case CALLREQ_PRINCIPAL:
		return take_text(f, CALLREQ_PRINCIPAL_MAX, &out->principal, e);
	case CALLREQ_LISTENER:
		if (tlv_u64(f, &out->listener) == -1 ||
		    (out->listener != LISTENER_LOCAL &&
			out->listener != LISTENER_TUNNEL))
			break;
		return 0;
	case CALLREQ_ARGUMENTS:
		return take_text(f, CALLREQ_ARGUMENTS_MAX, &out->arguments, e);
	case CALLREQ_REQUEST:
		if (f->n != sizeof(out->request.b))
			break;
		memcpy(out->request.b, f->p, f->n);
		return 0;
	default:
		if (tlv_u64(f, &out->expires_ms) == 0)
			return 0;
	}
	return err_set(e, FAILURE_INVALID_PARAMS, "call: %s is not in its form",
	    names[f->tag]);
}

int
callreq_read(const void *preimage, size_t n, struct callreq *out, struct err *e)
{
	struct tlv_reader r;
	uint8_t next = CALLREQ_VERSION_HASH;
	struct tlv f;
	int rc;

	if (!callreq_is(preimage, n))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "call: does not start with its magic");
	tlv_open(
	    &r, (const uint8_t *)preimage + sizeof(magic), n - sizeof(magic));
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (f.tag != next || next > CALLREQ_EXPIRES_MS)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "call: field %u is not the next", f.tag);
		if (take(&f, out, e) == -1)
			return -1;
		next++;
	}
	if (rc == -1 || next != CALLREQ_EXPIRES_MS + 1)
		return err_set(e, FAILURE_INVALID_PARAMS, "call: cut short");
	return 0;
}

int
callreq_write(const struct callreq *c, struct buf *b, struct err *e)
{
	struct callreq read;

	buf_clear(b);
	buf_put(b, magic, sizeof(magic));
	tlv_put(b, CALLREQ_VERSION_HASH, c->version.b, sizeof(c->version.b));
	tlv_put(b, CALLREQ_TOOL, c->tool.p, c->tool.n);
	tlv_put(b, CALLREQ_PRINCIPAL, c->principal.p, c->principal.n);
	tlv_put_u64(b, CALLREQ_LISTENER, c->listener);
	tlv_put(b, CALLREQ_ARGUMENTS, c->arguments.p, c->arguments.n);
	tlv_put(b, CALLREQ_REQUEST, c->request.b, sizeof(c->request.b));
	tlv_put_u64(b, CALLREQ_EXPIRES_MS, c->expires_ms);
	if (b->failed)
		return err_set(e, FAILURE_BUSY, "out of memory");
	return callreq_read(b->p, b->len, &read, e);
}

/* Embeds the arguments only if they are one JSON value by grammar: else
 * `{},"tool":"harmless"` would forge a field of the object shown. */
int
callreq_json(const void *preimage, size_t n, struct buf *out, struct err *e)
{
	char hex[HEX32_LEN + 1], uuid[UUID_TEXT_LEN + 1];
	char when[TIME_TEXT_LEN + 1];
	struct callreq c = {0};
	struct jsonw w;
	struct buf raw;
	int rc = -1;

	if (callreq_read(preimage, n, &c, e) == -1)
		return -1;
	if (!json_grammar_valid(c.arguments.p, c.arguments.n))
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "call: arguments are not JSON");
	hex_encode(c.version.b, sizeof(c.version.b), hex);
	uuid_text(&c.request, uuid);
	buf_init(&raw, SHOW_MAX);
	jsonw_open(&w, &raw);
	jsonw_obj(&w);
	jsonw_kv_strn(&w, "tool", c.tool.p, c.tool.n);
	jsonw_kv_raw(&w, "arguments", c.arguments.p, c.arguments.n);
	jsonw_kv_strn(&w, "principal", c.principal.p, c.principal.n);
	jsonw_kv_str(&w, "listener", listener_name((unsigned)c.listener));
	jsonw_kv_str(&w, "version_hash", hex);
	jsonw_kv_str(&w, "request", uuid);
	jsonw_name(&w, "expires_at");
	/* A time after the year 9999 is shown as a number. */
	if (c.expires_ms > UINT64_C(253402300799000)) {
		jsonw_u64(&w, c.expires_ms);
	} else {
		time_text(c.expires_ms * 1000, when);
		jsonw_str(&w, when);
	}
	jsonw_obj_end(&w);
	jsonw_ascii(out, raw.p, raw.len);
	if (raw.failed || out->failed)
		err_set(e, FAILURE_INTERNAL, "call: too large to show");
	else
		rc = 0;
	buf_free(&raw);
	return rc;
}
