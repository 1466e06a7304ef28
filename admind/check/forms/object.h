/*
 * Prompts and resources in the making: what their arguments' schema can't say.
 */
#ifndef OBJECT_H
#define OBJECT_H

#include "check.h"

/* Beside its fields: is this, of create or update, a prompt or resource? Then
 * its calls' schema as MF_OBJECT_SCHEMA, if the arguments decide it. d passed
 * the tool's own schema. 0 or -1. */
int object_prompt(struct check *, struct report *, const struct doc *,
    bool create, struct err *);
int object_resource(struct check *, struct report *, const struct doc *,
    bool create, struct err *);

#endif
