/*
 * A value of Accept-Encoding or If-None-Match: the readers stay inside it. A
 * list that both knows the tag and lacks its text is wrong, unless it is the
 * asterisk; a list that takes gzip names gzip or the asterisk.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "negotiate.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct http1_request r = {.method = HTTP1_GET, .path = "/"};
	char *text;

	/* a field's value has no NUL */
	if (memchr(data, '\0', n) != NULL || (text = malloc(n + 1)) == NULL)
		return 0;
	if (n > 0)
		memcpy(text, data, n);
	text[n] = '\0';
	r.nfields = 1;
	r.fields[0] = (struct http1_field){"accept-encoding", text};
	if (negotiate_gzip(&r))
		assert(strcasestr(text, "gzip") != NULL ||
		    strchr(text, '*') != NULL);
	r.fields[0].name = "if-none-match";
	if (negotiate_known(&r, "\"a-1\""))
		assert(strstr(text, "\"a-1\"") != NULL ||
		    strchr(text, '*') != NULL);
	free(text);
	return 0;
}
