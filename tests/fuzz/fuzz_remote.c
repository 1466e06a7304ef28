/*
 * Answers from outside, as remote check reads them: the first byte says whether
 * the rest is a challenge, JSON, an event stream or a page. Each text that
 * comes out ends within its field, and has printable ASCII alone.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "remote_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
fits(const char *s, size_t size)
{
	size_t n = strnlen(s, size);

	assert(n < size);
	for (size_t i = 0; i < n; i++)
		assert(s[i] >= ' ' && s[i] <= '~');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const types[] = {
	    "application/json", "text/event-stream", "text/html", ""};
	static struct remote_said s;

	if (n == 0)
		return 0;
	memset(&s, 0, sizeof(s));
	if (*data == 'c')
		remote_read_challenge((const char *)data + 1, n - 1, &s);
	else
		remote_read_body(data + 1, n - 1, types[*data % 4], &s);
#define FITS(x) fits(x, sizeof(x))
	FITS(s.resource);
	FITS(s.issuer);
	FITS(s.jwks_uri);
	FITS(s.rpc_error);
	FITS(s.realm);
	FITS(s.metadata);
	FITS(s.error);
	FITS(s.description);
	assert(s.nservers <= REMOTE_SERVERS_MAX && s.nkeys <= REMOTE_KEYS_MAX);
	for (uint32_t i = 0; i < s.nservers; i++)
		FITS(s.servers[i]);
	for (uint32_t i = 0; i < s.nkeys; i++) {
		FITS(s.keys[i].kid);
		assert(strlen(s.keys[i].thumb) == REMOTE_THUMB_LEN);
	}
	assert(s.bearer || s.realm[0] == '\0');
	assert(s.json || s.resource[0] == '\0');
	return 0;
}
