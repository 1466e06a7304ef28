/*
 * A challenge has nothing from the request. Its texts are ours, admind's
 * (gw_access.c checks them) and the sentence of a refusal, in which only the
 * characters that RFC 6750 section 3 permits are left. So no client can write
 * into another field, or make its user's browser go elsewhere.
 *
 * A client that reads insufficient_scope signs its user in again, with the
 * union of the scopes that it had and those of the challenge (MCP 2026-07-28,
 * step-up authorization). So the error is there only if that helps, and the
 * challenge has all scopes at once (docs/decisions/0100). Else the field has
 * the realm alone and the text is in the body: the client has nothing to try.
 * An API token is of no issuer; it keeps the error of RFC 6750 without scopes.
 *
 * Without word from admind the address of the metadata is left out. A client
 * then tries the well-known paths, which say when to come again.
 */
#include "buf.h"
#include "challenge.h"

/* The field's name, realm and error make about 100 bytes. */
enum {
	FIELD_MAX =
	    GW_ACCESS_URL_MAX + GW_ACCESS_SCOPE_MAX + CHALLENGE_TEXT_MAX + 256
};

/* error_description = %x20-21 / %x23-5B / %x5D-7E. A quotation mark becomes an
 * apostrophe, every other character a question mark, one for each byte. */
void
challenge_text(const char *why, char out[CHALLENGE_TEXT_MAX + 1])
{
	size_t i;

	for (i = 0; i < CHALLENGE_TEXT_MAX && why[i] != '\0'; i++)
		out[i] = why[i] == '"'                               ? '\''
		    : why[i] < ' ' || why[i] > '~' || why[i] == '\\' ? '?'
								     : why[i];
	out[i] = '\0';
}

void
challenge_add(const struct gateway *gw, struct httpd_req *req,
    enum challenge kind, const char *why, const char *scope)
{
	const struct gw_access *a = &gw->access;
	bool invalid = kind == CHALLENGE_INVALID;
	char text[CHALLENGE_TEXT_MAX + 1];
	const char *name;
	struct buf b;

	buf_init(&b, FIELD_MAX);
	buf_puts(&b, "Bearer realm=\"mcpbox\"");
	if (kind != CHALLENGE_NEVER && a->told &&
	    a->resource_metadata[0] != '\0') {
		buf_putf(&b, ", resource_metadata=\"%s", a->resource_metadata);
		/* An endpoint has metadata of its own, for which the client
		 * asks for a token. The name has no character to escape. */
		name = gw_endpoints_name(httpd_request(req)->path);
		if (name != NULL)
			buf_putf(&b, "/%s", name);
		buf_putc(&b, '"');
		if ((kind == CHALLENGE_NONE || invalid) && a->scope[0] != '\0')
			buf_putf(&b, ", scope=\"%s\"", a->scope);
	}
	if (kind == CHALLENGE_MORE)
		buf_putf(&b, ", scope=\"%s\"", scope);
	if (kind == CHALLENGE_SCOPE || kind == CHALLENGE_MORE)
		buf_puts(&b, ", error=\"insufficient_scope\"");
	else if (invalid)
		buf_puts(&b, ", error=\"invalid_token\"");
	if (kind == CHALLENGE_MORE || invalid) {
		challenge_text(why, text);
		buf_putf(&b, ", error_description=\"%s\"", text);
	}
	buf_putc(&b, '\0');
	/* Without memory the client still learns the scheme. */
	httpd_header(req, "WWW-Authenticate",
	    b.failed ? "Bearer realm=\"mcpbox\"" : (const char *)b.p);
	buf_free(&b);
}
