#include <string.h>

#include "ids.h"
#include "trace.h"

int
trace_parse(const void *text, size_t n, struct trace *out)
{
	static const struct trace none;
	char p[TRACE_PARENT_LEN + 1];
	uint8_t version, flags;
	struct trace t = none;

	*out = none;
	if (n < TRACE_PARENT_LEN || n > TRACE_PARENT_MAX)
		return -1;
	memcpy(p, text, TRACE_PARENT_LEN);
	p[TRACE_PARENT_LEN] = '\0';
	if (p[2] != '-' || p[35] != '-' || p[52] != '-' ||
	    hex_decode(p, 2, &version) == -1 ||
	    hex_decode(p + 3, 2 * sizeof(t.id.b), t.id.b) == -1 ||
	    hex_decode(p + 36, 2 * sizeof(t.span), t.span) == -1 ||
	    hex_decode(p + 53, 2, &flags) == -1)
		return -1;
	/* W3C, section 3.2.4: ff is no version. In version 00 nothing follows
	 * the flags. In a later version more may follow, after a dash. */
	if (version == 0xff || (version == 0 && n != TRACE_PARENT_LEN) ||
	    (n > TRACE_PARENT_LEN &&
		((const char *)text)[TRACE_PARENT_LEN] != '-'))
		return -1;
	if (memcmp(t.id.b, none.id.b, sizeof(t.id.b)) == 0 ||
	    memcmp(t.span, none.span, sizeof(t.span)) == 0)
		return -1;
	*out = t;
	return 0;
}
