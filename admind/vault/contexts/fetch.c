/*
 * Security argument.
 *
 * admind asks for this context and may be hostile. The run connects to hosts of
 * the access document alone, and an administrator's login sealed that document.
 * We do not parse JSON. Each address that admind brings must be in the document
 * as a whole string, between quotation marks. It has no quotation mark and no
 * backslash itself, so the bytes between the marks are exactly the string. The
 * document must be the newest that we know, so a host that was taken out is not
 * reached.
 *
 * admind still chooses which of the document's strings it names. Every string
 * that is a host or an https URL was written by an administrator. The run sends
 * GET requests without a credential, to the port of the URL or to the port that
 * the document names. So a hostile admind gains nothing by a wrong choice.
 */
#include "fetch.h"

#include <string.h>

#include "bounds.h"
#include "context.h"
#include "crypto.h"
#include "grantreq.h"
#include "ids.h"
#include "jsonw.h"
#include "netgrant.h"
#include "tlv.h"

/* Bytes of an address: a URL of an access document. */
enum { ADDRESS_MAX = 512 };

/* The run's specification and its hosts. */
struct spec {
	struct buf json;
	struct jsonw w;
	unsigned hosts;
};

/* Tells whether the text is a whole string of the document. */
static bool
stands(struct ipc_bytes document, struct ipc_bytes text)
{
	const uint8_t *at = document.p, *end = document.p + document.n;

	if (text.n == 0 || text.n > ADDRESS_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] > '~' || text.p[i] == '"' ||
		    text.p[i] == '\\')
			return false;
	while ((size_t)(end - at) >= text.n + 2 &&
	    (at = memmem(at, (size_t)(end - at), text.p, text.n)) != NULL) {
		if (at > document.p + 1 && at[-1] == '"' && at[-2] != '\\' &&
		    at + text.n < end && at[text.n] == '"')
			return true;
		at++;
	}
	return false;
}

/* Adds a host in the spelling of `requires`. Without a port it is 443. */
static int
put_host(
    struct buf *out, struct spec *s, struct ipc_bytes text, struct err *err)
{
	struct buf line;
	struct netgrant g;
	int rc = -1;

	buf_init(&line, NETGRANT_LINE_MAX + 8);
	if (grantreq_need(text, &line, err) == -1)
		goto out;
	if (line.len > 2 && memcmp(line.p + line.len - 2, " 0", 2) == 0) {
		line.len--;
		buf_puts(&line, "443");
	}
	if (line.failed) {
		err_set(err, FAILURE_BUSY, "out of memory");
		goto out;
	}
	if (netgrant_read(ipc_bytes(line.p, line.len), &g, err) == -1)
		goto out;
	if (g.any || g.form == GRANT_HOST_WILD || g.proto != NETGRANT_TCP) {
		err_set(err, FAILURE_FORBIDDEN,
		    "keys are fetched from one host by TCP, and from no "
		    "wildcard");
		goto out;
	}
	if (s->hosts++ > FETCH_HOSTS_MAX) {
		err_set(err, FAILURE_LIMIT, "more than %d hosts of one issuer",
		    FETCH_HOSTS_MAX);
		goto out;
	}
	tlv_put(out, CTX_REQUIRE, line.p, line.len);
	tlv_put(out, CTX_GRANT, line.p, line.len);
	jsonw_strn(&s->w, line.p, line.len);
	rc = 0;
out:
	buf_free(&line);
	return rc;
}

/* Adds the host of an https URL. */
static int
put_url(struct buf *out, struct spec *s, struct ipc_bytes url, struct err *err)
{
	static const char scheme[] = "https://";
	size_t start = sizeof(scheme) - 1, n;

	if (url.n <= start || memcmp(url.p, scheme, start) != 0)
		return err_set(
		    err, FAILURE_FORBIDDEN, "keys are fetched by https alone");
	for (n = start; n < url.n && url.p[n] != '/'; n++)
		;
	return put_host(out, s, ipc_bytes(url.p + start, n - start), err);
}

static int
put_hosts(struct buf *out, struct spec *s, struct ipc_bytes document,
    struct ipc_bytes material, struct err *err)
{
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, material.p, material.n);
	while (tlv_next(&r, &f) == 1) {
		struct ipc_bytes host = ipc_bytes(f.p, f.n);

		if (f.tag != CTX_KEYS_HOST)
			continue;
		if (!stands(document, host))
			return err_set(err, FAILURE_FORBIDDEN,
			    "a host is not in the access document, or is "
			    "written there with an escape");
		if (put_host(out, s, host, err) == -1)
			return -1;
	}
	return 0;
}

int
fetch_put(struct buf *out, const struct keys *k, struct access *newest,
    struct ipc_bytes material, struct err *err)
{
	struct tlv seal, document, url;
	struct ipc_bytes text, address;
	struct ipc_hash hash;
	struct spec s = {0};
	int rc = -1;

	if (newest == NULL ||
	    tlv_find(material.p, material.n, CTX_ACCESS_SEAL, &seal) != 1 ||
	    tlv_find(material.p, material.n, CTX_ACCESS_DOCUMENT, &document) !=
		1 ||
	    tlv_find(material.p, material.n, CTX_KEYS_URL, &url) != 1)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material has no access document, seal or address");
	sha256(document.p, document.n, &hash);
	if (access_check(k, ipc_bytes(seal.p, seal.n), &hash, now_us(), newest,
		err) == -1)
		return -1;
	text = ipc_bytes(document.p, document.n);
	address = ipc_bytes(url.p, url.n);
	if (!stands(text, address))
		return err_set(err, FAILURE_FORBIDDEN,
		    "an address is not in the access document, or is written "
		    "there with an escape");
	buf_init(&s.json, CODE_MAX);
	jsonw_open(&s.w, &s.json);
	jsonw_obj(&s.w);
	jsonw_kv_strn(&s.w, "url", url.p, url.n);
	jsonw_name(&s.w, "hosts");
	jsonw_arr(&s.w);
	if (put_url(out, &s, address, err) == -1 ||
	    put_hosts(out, &s, text, material, err) == -1)
		goto out;
	jsonw_arr_end(&s.w);
	jsonw_obj_end(&s.w);
	tlv_puts(out, CTX_KIND, "keys");
	tlv_put(out, CTX_SPEC, s.json.p, s.json.len);
	if (s.json.failed)
		out->failed = true;
	rc = 0;
out:
	buf_free(&s.json);
	return rc;
}
