/*
 * Bodies of actions (admin_action.def): JSON objects with closed members.
 */
#ifndef ADMIN_BODY_H
#define ADMIN_BODY_H

#include "admin_action.h"
#include "err.h"

struct json_object;

/* Checks that the body has only the action's members, each of its type, and all
 * required ones. A member that is not required may be null. 0, or -1 with one
 * sentence (INVALID_PARAMS). */
int admin_body_check(
    const struct admin_action *, struct json_object *, struct err *);
/* Adds "name=value" with the type that the action's row gives. An array gets
 * value as one more element. For an object or limits value is JSON text. 0, or
 * -1 with one sentence. */
int admin_body_word(const struct admin_action *, struct json_object *,
    const char *word, struct err *);

#endif
