/* See gw_access.h. */
#include <stdlib.h>
#include <string.h>

#include "gateway.h"
#include "gw_access.h"
#include "json.h"

/* True for text that a quoted string of a challenge may have unchanged (RFC
 * 6750 section 3: no quotation mark, no backslash), with spaces or without. */
static bool
is_quotable(struct ipc_bytes s, size_t max, bool spaces)
{
	size_t i;

	if (s.n > max)
		return false;
	for (i = 0; i < s.n; i++)
		if (s.p[i] < (spaces ? ' ' : '!') || s.p[i] > '~' ||
		    s.p[i] == '"' || s.p[i] == '\\')
			return false;
	return true;
}

void
gw_access_scopes(struct ipc_bytes words, char *out)
{
	size_t n = is_quotable(words, GW_SCOPES_MAX, true) ? words.n : 0;

	if (n > 0)
		memcpy(out, words.p, n);
	out[n] = '\0';
}

void
gw_access_forget(struct gateway *gw)
{
	struct gw_access *a = &gw->access;

	free(a->resource_metadata);
	free(a->scope);
	free(a->metadata);
	memset(a, 0, sizeof(*a));
}

/* Checks everything before it takes anything. The texts go into header fields
 * of strangers' answers, so a faulty text must not come that far. */
int
gw_access_take(struct gateway *gw, struct ipc_frame *f)
{
	struct gw_access a = {.told = true};
	struct ipc_gw_access m;

	if (ipc_decode(f, &m, NULL) < 0 ||
	    !is_quotable(m.resource_metadata, GW_ACCESS_URL_MAX, false) ||
	    !is_quotable(m.scope, GW_ACCESS_SCOPE_MAX, true) ||
	    (m.metadata.n > 0 &&
		(m.metadata.p[0] != '{' ||
		    json_scan(m.metadata.p, m.metadata.n, NULL) < 0)))
		return -1;
	a.assertion = m.assertion != 0;
	a.bound = m.bound != 0;
	a.resource_metadata = ipc_strdup(m.resource_metadata);
	a.scope = ipc_strdup(m.scope);
	a.metadata = m.metadata.n > 0 ? malloc(m.metadata.n) : NULL;
	if (a.resource_metadata == NULL || a.scope == NULL ||
	    (m.metadata.n > 0 && a.metadata == NULL)) {
		free(a.resource_metadata);
		free(a.scope);
		free(a.metadata);
		return -1; /* out of memory: the link begins again */
	}
	if (m.metadata.n > 0)
		memcpy(a.metadata, m.metadata.p, m.metadata.n);
	a.metadata_len = m.metadata.n;
	gw_access_forget(gw);
	gw->access = a;
	return 0;
}
