/*
 * Security argument.
 *
 * A token was read on its way to us. Its reader sends it with another method,
 * path, query or body, or sends it to us through another gateway. All four are
 * compared here, byte by byte, with the request that came. The URL begins
 * with our own resource, never with a host that a request names.
 *
 * A ticket is good for a person until the session's end, so it must not be
 * guessed: it is a MAC under a key that no other process has and that ends with
 * this one. It is made of the session's claims, so equal sessions have equal
 * tickets, and a session that differs in anything that a rule looks at has
 * another one.
 */
#include <stdbool.h>
#include <string.h>

#include "bound.h"
#include "ids.h"
#include "tlv.h"

static const char path[] = "/mcp"; /* of every resource (access_form.c) */

static int
malformed(struct err *err)
{
	return err_set(err, FAILURE_INTERNAL,
	    "admind-check answered with a malformed bound token");
}

static int
read_field(struct bound *b, const struct tlv *t)
{
	struct ipc_bytes v = ipc_bytes(t->p, t->n);

	switch (t->tag) {
	case BOUND_METHOD:
		b->method = v;
		return v.n > 0 && v.n <= JWT_METHOD_MAX ? 0 : -1;
	case BOUND_URL:
		b->url = v;
		return v.n > 0 && v.n <= JWT_URL_MAX ? 0 : -1;
	case BOUND_BODY:
		b->body = v;
		return v.n == sizeof(struct ipc_hash) ? 0 : -1;
	case BOUND_ID:
		b->id = v;
		return v.n > 0 && v.n <= JWT_ID_MAX ? 0 : -1;
	case BOUND_SESSION_EXP_US:
		/* 0 would count as absent, and last as long as the token. */
		return tlv_u64(t, &b->session_exp_us) == 0 &&
			b->session_exp_us > 0
		    ? 0
		    : -1;
	default:
		return -1;
	}
}

int
bound_read(struct bound *out, struct ipc_bytes record, struct err *err)
{
	struct bound b = {0};
	struct tlv_reader r;
	struct tlv t;
	int got;

	tlv_open(&r, record.p, record.n);
	while ((got = tlv_next(&r, &t)) == 1)
		if (read_field(&b, &t) == -1)
			return malformed(err);
	if (got == -1 || b.method.n == 0 || b.url.n == 0 || b.body.n == 0 ||
	    b.id.n == 0)
		return malformed(err);
	*out = b;
	return 0;
}

static bool
same(struct ipc_bytes a, struct ipc_bytes b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Returns the resource without its path. */
static struct ipc_bytes
origin(struct ipc_bytes resource)
{
	const size_t n = sizeof(path) - 1;

	return resource.n > n &&
		memcmp(resource.p + resource.n - n, path, n) == 0
	    ? ipc_bytes(resource.p, resource.n - n)
	    : ipc_bytes(NULL, 0);
}

/* Returns whether the URL is the origin and then the target. */
static bool
is_at(struct ipc_bytes url, struct ipc_bytes at, struct ipc_bytes target)
{
	return at.n > 0 && target.n > 0 && target.p[0] == '/' && url.n > at.n &&
	    memcmp(url.p, at.p, at.n) == 0 &&
	    same(ipc_bytes(url.p + at.n, url.n - at.n), target);
}

int
bound_compare(const struct bound *b, struct ipc_bytes resource,
    const struct bound_request *rq, struct err *err)
{
	if (rq->method.n == 0)
		return err_set(err, FAILURE_BUSY,
		    "the gateway did not tell the request that the token is "
		    "bound to: send it again with a new token");
	if (!same(b->method, rq->method))
		return err_set(err, FAILURE_UNAUTHENTICATED,
		    "the token is bound to another method (`htm`)");
	if (!is_at(b->url, origin(resource), rq->target))
		return err_set(err, FAILURE_UNAUTHENTICATED,
		    "the token is bound to another URL: `htu` must be this "
		    "server's resource with the path and the query of the "
		    "request");
	if (!same(b->body, ipc_bytes(rq->body, sizeof(*rq->body))))
		return err_set(err, FAILURE_UNAUTHENTICATED,
		    "the token is bound to another body (`bsha256`)");
	return 0;
}

int
bound_session(struct ipc_bytes fields, uint64_t end_us, struct buf *out)
{
	struct tlv_reader r;
	struct tlv t;
	int got;

	tlv_open(&r, fields.p, fields.n);
	while ((got = tlv_next(&r, &t)) == 1)
		if (t.tag != JWT_EXP_US && t.tag != JWT_IAT_US &&
		    t.tag != JWT_BOUND)
			tlv_put(out, t.tag, t.p, t.n);
	tlv_put_u64(out, JWT_EXP_US, end_us);
	return got == 0 && !out->failed ? 0 : -1;
}

void
bound_ticket(const uint8_t key[KEY_LEN], struct ipc_bytes session,
    char out[BOUND_TICKET_LEN + 1])
{
	struct ipc_hash mac;

	hmac_sha256(key, session.p, session.n, &mac);
	b64url_encode(&mac, sizeof(mac), out);
	out[BOUND_TICKET_LEN] = '\0';
}
