#include "content_show.h"

#include "callreq.h"
#include "grantreq.h"
#include "version.h"

int
content_show_json(
    const void *preimage, size_t n, struct buf *out, struct err *e)
{
	if (callreq_is(preimage, n))
		return callreq_json(preimage, n, out, e);
	if (grantreq_is(preimage, n))
		return grantreq_json(preimage, n, out, e);
	return version_json(preimage, n, out, e);
}
