/* See gw_endpoints.h. */
#include <stdlib.h>
#include <string.h>

#include "gateway.h"
#include "gw_endpoints.h"
#include "json.h"
#include "tlv.h"
#include "utf8.h"

static void
free_list(struct gw_endpoints *x)
{
	for (unsigned i = 0; i < x->n; i++) {
		free(x->list[i].metadata);
		free(x->list[i].instructions);
	}
	free(x->list);
	memset(x, 0, sizeof(*x));
}

void
gw_endpoints_free(struct gateway *gw)
{
	free_list(&gw->endpoints);
}

/* ---- names ---- */

static bool
name_ok(const void *name, size_t n)
{
	const uint8_t *p = name;

	if (n == 0 || n > ENDPOINT_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!((p[i] >= 'a' && p[i] <= 'z') ||
			(p[i] >= '0' && p[i] <= '9') || p[i] == '-'))
			return false;
	return true;
}

const char *
gw_endpoints_name(const char *path)
{
	size_t n = strlen("/mcp/");

	if (strncmp(path, "/mcp/", n) != 0 ||
	    !name_ok(path + n, strlen(path + n)))
		return NULL;
	return path + n;
}

static const struct gw_endpoint *
find(const struct gw_endpoints *x, const char *name)
{
	for (unsigned i = 0; i < x->n; i++)
		if (strcmp(x->list[i].name, name) == 0)
			return &x->list[i];
	return NULL;
}

const struct gw_endpoint *
gw_endpoints_find(const struct gateway *gw, const char *name)
{
	return find(&gw->endpoints, name);
}

bool
gw_endpoints_is(const struct gateway *gw, const char *path, bool *later)
{
	const char *name;

	*later = false;
	if (strcmp(path, "/mcp") == 0)
		return true;
	name = gw_endpoints_name(path);
	if (name == NULL)
		return false;
	if (gw_endpoints_find(gw, name) != NULL)
		return true;
	/* Clients would take 404 for the end of their endpoint. */
	*later = !gw->access.told;
	return *later;
}

/* ---- GW_ENDPOINTS ---- */

static int
take_text(const struct tlv *t, char **out)
{
	if (*out != NULL || t->n == 0 || t->n > ENDPOINT_INSTRUCTIONS_MAX ||
	    !utf8_valid(t->p, t->n) || memchr(t->p, '\0', t->n) != NULL)
		return -1;
	*out = ipc_strdup(ipc_bytes(t->p, t->n));
	return *out != NULL ? 0 : -1;
}

static int
take_json(const struct tlv *t, struct gw_endpoint *e)
{
	if (e->metadata != NULL || t->n == 0 || t->p[0] != '{' ||
	    json_scan(t->p, t->n, NULL) < 0)
		return -1;
	e->metadata = malloc(t->n);
	if (e->metadata == NULL)
		return -1;
	memcpy(e->metadata, t->p, t->n);
	e->metadata_len = t->n;
	return 0;
}

static int
take_field(struct gw_endpoint *e, const struct tlv *t)
{
	switch (t->tag) {
	case GW_ENDPOINT_NAME:
		if (!name_ok(t->p, t->n))
			return -1;
		memcpy(e->name, t->p, t->n);
		e->name[t->n] = '\0';
		return 0;
	case GW_ENDPOINT_DIGEST:
		if (t->n != sizeof(e->digest.b))
			return -1;
		memcpy(e->digest.b, t->p, t->n);
		return 0;
	case GW_ENDPOINT_METADATA:
		return take_json(t, e);
	case GW_ENDPOINT_INSTRUCTIONS:
		return take_text(t, &e->instructions);
	default:
		return -1;
	}
}

static int
take_one(struct gw_endpoints *x, const struct tlv *record)
{
	struct gw_endpoint *e;
	struct tlv_reader r;
	struct tlv t;
	int rc;

	if (record->tag != GW_ENDPOINT || x->n == ENDPOINTS_MAX)
		return -1;
	e = &x->list[x->n++];
	tlv_open(&r, record->p, record->n);
	while ((rc = tlv_next(&r, &t)) == 1)
		if (take_field(e, &t) < 0)
			return -1;
	return rc == 0 && e->name[0] != '\0' ? 0 : -1;
}

/* Checks everything before it takes anything: the texts go into answers to
 * strangers. */
int
gw_endpoints_take(struct gateway *gw, struct ipc_frame *f,
    void (*changed)(struct gateway *, const char *name))
{
	struct gw_endpoints now = {0}, old = gw->endpoints;
	const struct gw_endpoint *e;
	struct ipc_gw_endpoints m;
	struct tlv_reader r;
	struct tlv t;
	int rc;

	if (ipc_decode(f, &m, NULL) < 0)
		return -1;
	now.list = calloc(ENDPOINTS_MAX, sizeof(*now.list));
	if (now.list == NULL)
		return -1;
	tlv_open(&r, m.list.p, m.list.n);
	while ((rc = tlv_next(&r, &t)) == 1)
		if (take_one(&now, &t) < 0)
			break;
	if (rc != 0) {
		free_list(&now);
		return -1;
	}
	gw->endpoints = now;
	for (unsigned i = 0; i < old.n; i++) {
		e = find(&now, old.list[i].name);
		if (e == NULL ||
		    memcmp(&e->digest, &old.list[i].digest,
			sizeof(e->digest)) != 0)
			changed(gw, old.list[i].name);
	}
	free_list(&old);
	return 0;
}
