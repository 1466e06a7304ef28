/*
 * The state while an OpenAPI 3 document is read. Used by openapi*.c.
 */
#ifndef OPENAPI_H
#define OPENAPI_H

#include "bounds.h"
#include "check.h"
#include "http_spec.h"

struct openapi {
	const struct doc *d;
	/* Nodes that may still be read for schemas. The number is limited
	 * because references can expand a small document to a large one.
	 * Negative: used up. */
	long budget;
};

enum {
	OPENAPI_PARTS_MAX = HTTP_PARAMETERS_MAX,
	/* Bytes of a tool's name: so server__name has at most 64 bytes for
	 * every server. */
	OPENAPI_TOOL_MAX = NAME_EXPOSED_MAX - NAME_SERVER_MAX - 2,
	OPENAPI_REASON_MAX = 300,
};

/* One argument of the tool that is made from an operation. */
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
	struct ipc_bytes base; /* the URL before the path, if the caller gave
				* one */
	struct openapi_part part[OPENAPI_PARTS_MAX];
	unsigned n;
	const char *body; /* json, form, whole, text; NULL: none */
	char reason[OPENAPI_REASON_MAX]; /* why the operation is left out, or
					  * "" */
};

/* Returns a member of an object, or NULL. Follows a reference in place of the
 * object or of the member. */
const struct doc_node *openapi_get(const struct openapi_operation *,
    const struct doc_node *, const char *name);
/* Notes why the operation is left out. Only the first reason is kept. */
void openapi_leave_out(struct openapi_operation *, const char *why);
/* Reads the parameters and the body of an operation as parts. */
void openapi_parts(struct openapi_operation *);
/* Writes listPetsByID as list_pets_by_id; returns its length, below max. */
size_t openapi_snake(const uint8_t *, size_t n, char *out, size_t max);

/* Returns the node itself, or the node of this document that its $ref names, or
 * NULL. */
const struct doc_node *openapi_resolve(
    const struct openapi *, const struct doc_node *);
/*
 * Writes a schema in the closed subset (docs/SCHEMAS.md). References are
 * replaced by the schemas that they name. `nullable` and boolean exclusive
 * bounds of OpenAPI 3.0 are written as in JSON Schema. Keywords that are not
 * judged are left out. described: the description is written, too.
 */
void openapi_schema(struct openapi *, struct jsonw *, const struct doc_node *,
    bool described, unsigned depth);

#endif
