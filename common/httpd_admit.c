/*
 * How many connections there may be, in all and of one source.
 */
#include <stdlib.h>
#include <string.h>

#include "httpd_internal.h"

static unsigned
bucket_of(const uint8_t key[16])
{
	unsigned v = 2166136261u;
	int i;

	for (i = 0; i < 16; i++)
		v = (v ^ key[i]) * 16777619u;
	return v % HTTPD_BUCKETS;
}

bool
httpd_admit(struct httpd *h, struct httpd_req *r, const uint8_t key[16])
{
	struct httpd_source *s;
	unsigned b = bucket_of(key);

	if (h->count >= h->limits.connections)
		return false;
	if (h->unix_socket)
		return true;
	LIST_FOREACH(s, &h->sources[b], chain)
	if (memcmp(s->key, key, 16) == 0)
		break;
	if (s != NULL && s->count >= h->limits.connections_per_source)
		return false;
	if (s == NULL) {
		s = calloc(1, sizeof(*s));
		if (s == NULL)
			return false;
		memcpy(s->key, key, 16);
		LIST_INSERT_HEAD(&h->sources[b], s, chain);
	}
	s->count++;
	r->counted = s;
	return true;
}

void
httpd_admit_leave(struct httpd_req *r)
{
	if (r->counted == NULL || --r->counted->count > 0)
		return;
	LIST_REMOVE(r->counted, chain);
	free(r->counted);
}
