/*
 * For openapi.c and openapi_schema.c: an OpenAPI 3 document while it is read.
 */
#ifndef OPENAPI_H
#define OPENAPI_H

#include "bounds.h"
#include "check.h"
#include "http_spec.h"

struct openapi {
	const struct doc *d;
	/* Nodes that may still be read for schemas: references can expand a
	 * small document to a large one. Negative: used up. */
	long budget;
};

enum {
	OPENAPI_PARTS_MAX = HTTP_PARAMETERS_MAX,
	/* Keeps server__name within 64 bytes for every server's name. */
	OPENAPI_TOOL_MAX = NAME_EXPOSED_MAX - NAME_SERVER_MAX - 2,
	OPENAPI_REASON_MAX = 300,
};

/* One argument in the making. */
struct openapi_part {
	char name[HTTP_NAME_MAX + 1];
	const char *in;
	const uint8_t *wire;
	size_t wirelen;
	const struct doc_node *schema, *text; /* may be NULL */
	bool required, comma;
};

struct openapi_operation {
	struct openapi *o;
	const char *method;
	const struct doc_node *path, *item, *src;
	struct ipc_bytes base; /* the URL before the path, as asked for */
	struct openapi_part part[OPENAPI_PARTS_MAX];
	unsigned n;
	const char *body; /* json, form, whole, text; NULL: none */
	char reason[OPENAPI_REASON_MAX]; /* why the operation is left out, or
					  * "" */
};

/* Returns a member of an object, with references followed on the way, or
 * NULL. */
const struct doc_node *openapi_get(const struct openapi_operation *,
    const struct doc_node *, const char *name);
/* Notes the first reason why the operation is left out. */
void openapi_leave_out(struct openapi_operation *, const char *why);
/* Reads its parameters and its body as parts. */
void openapi_parts(struct openapi_operation *);
/* Writes listPetsByID as list_pets_by_id; returns its length, below max. */
size_t openapi_snake(const uint8_t *, size_t n, char *out, size_t max);

/* Returns the node itself, or the node of this document that its $ref names.
 * NULL: none. */
const struct doc_node *openapi_resolve(
    const struct openapi *, const struct doc_node *);
/*
 * Writes a schema in the words of the closed subset (docs/SCHEMAS.md).
 * References are put in, 3.0's `nullable` and boolean exclusive bounds are
 * written as in JSON Schema, and keywords that are not judged are left out.
 * described: its description, too.
 */
void openapi_schema(struct openapi *, struct jsonw *, const struct doc_node *,
    bool described, unsigned depth);

#endif
