/*
 * Checks specifications of tools that are not Python code. Each function fills
 * c, which check_free() empties. The bytes are hostile.
 */
#ifndef SPECS_H
#define SPECS_H

#include "check.h"

/* Checks a command. spec: its specification; schema: the schema of its
 * arguments. Puts no fields. */
void check_command(
    struct check *c, struct ipc_bytes spec, struct ipc_bytes schema);
/* Checks a declared REST call (kind http). confirm: as in CHECK_HTTP. c->fields
 * gets tags of enum inspection_field, derived from the specification. */
void check_http(struct check *c, unsigned confirm, struct ipc_bytes spec);
/* Checks an OpenAPI document. c->fields gets tags of enum openapi_field, a
 * group for each operation. */
struct ipc_check_openapi;
void check_openapi(struct check *c, const struct ipc_check_openapi *);

#endif
