/* Checks for prompts and resources that are created or updated. They are checks
 * that the schema of the management tool's arguments can't express. */
#ifndef OBJECT_H
#define OBJECT_H

#include "check.h"

/* Check the arguments of create or update. Put the schema for the object's
 * calls as MF_OBJECT_SCHEMA, if the arguments determine it. d has passed the
 * management tool's own schema. 0, or -1 with err. */
int object_prompt(struct check *, struct report *, const struct doc *,
    bool create, struct err *);
int object_resource(struct check *, struct report *, const struct doc *,
    bool create, struct err *);

#endif
