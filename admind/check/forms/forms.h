/*
 * Arguments of management tools, what a runner says about code, and prompts: as
 * typed fields. Each fills c, which check_free empties. The bytes are hostile.
 */
#ifndef FORMS_H
#define FORMS_H

#include "check.h"

/* fields: tags of enum management_field, ascending. */
void check_management(
    struct check *c, struct ipc_bytes tool, struct ipc_bytes arguments);
/* fields: tags of enum inspection_field, ascending. */
void check_inspection(struct check *c, struct ipc_bytes json);
/* A static prompt's text with arguments in its placeholders (their values
 * satisfied the prompt's schema). fields: the GetPromptResult object. given may
 * also be the array that declares them: then it is checked that each
 * placeholder is declared, as when the prompt is saved. */
void check_render(
    struct check *c, struct ipc_bytes text, struct ipc_bytes given);

#endif
