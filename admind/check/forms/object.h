/* Prompts and resources in the making: checks that their arguments' schema
 * can't express. */
#ifndef OBJECT_H
#define OBJECT_H

#include "check.h"

/* Check arguments of create or update beyond their fields, and put the schema
 * of the object's calls as MF_OBJECT_SCHEMA if the arguments decide it. d
 * passed the tool's own schema. 0 or -1. */
int object_prompt(struct check *, struct report *, const struct doc *,
    bool create, struct err *);
int object_resource(struct check *, struct report *, const struct doc *,
    bool create, struct err *);

#endif
