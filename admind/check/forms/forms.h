/*
 * Turns three kinds of input into typed fields: arguments of management tools,
 * a runner's inspection of code, and prompts. Each function fills c, which
 * check_free() empties. The bytes are hostile.
 */
#ifndef FORMS_H
#define FORMS_H

#include "check.h"

/* Checks a management tool's arguments. c->fields gets tags of enum
 * management_field, ascending. */
void check_management(
    struct check *c, struct ipc_bytes tool, struct ipc_bytes arguments);
/* Checks an inspection. c->fields gets tags of enum inspection_field,
 * ascending. */
void check_inspection(struct check *c, struct ipc_bytes json);
/*
 * Puts arguments into the placeholders of a static prompt's text. The values
 * have satisfied the prompt's schema. c->fields gets the GetPromptResult
 * object. When a prompt is saved, given is the array that declares the
 * arguments; then each placeholder must be declared.
 */
void check_render(
    struct check *c, struct ipc_bytes text, struct ipc_bytes given);

#endif
