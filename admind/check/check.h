/* Answers the questions that admind asks, without I/O: bytes in, verdict
 * out. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>

#include "buf.h"
#include "doc.h"
#include "err.h"
#include "ipc.h"
#include "report.h"

/* A verdict, as CHECK_OK or CHECK_ERRORS will carry it. */
struct check {
	bool ok;
	struct buf fields;    /* TLV, when ok */
	struct buf kept;      /* arguments as records keep them, or empty */
	enum failure failure; /* when not ok */
	char summary[ERR_TEXT_MAX]; /* one sentence, when not ok */
	struct buf errors;          /* JSON array of {pointer, message} */
};

/* Each fills c, which check_free empties. The bytes are hostile. */
/* Judges an input schema by itself, for tests: management.c and inspection.c
 * judge schemas together with the message that brings them. */
void check_schema(struct check *c, struct ipc_bytes schema);
/* Checks a value against a schema. output: an outputSchema and structured
 * content, not arguments. */
void check_arguments(struct check *c, struct ipc_bytes schema,
    struct ipc_bytes arguments, bool output);
/* Checks a management tool's arguments. fields: tags of enum management_field,
 * ascending. */
void check_management(
    struct check *c, struct ipc_bytes tool, struct ipc_bytes arguments);
/* Checks an inspection. fields: tags of enum inspection_field, ascending. */
void check_inspection(struct check *c, struct ipc_bytes json);
/* Checks a command. spec: its specification; schema: of its arguments. No
 * fields. */
void check_command(
    struct check *c, struct ipc_bytes spec, struct ipc_bytes schema);
/* Checks a declared REST call (kind http). confirm: CHECK_HTTP's. fields: of
 * enum inspection_field, derived from the specification. */
void check_http(struct check *c, unsigned confirm, struct ipc_bytes spec);
/* Checks an OpenAPI document. fields: of enum openapi_field, a group for each
 * operation. */
struct ipc_check_openapi;
void check_openapi(struct check *c, const struct ipc_check_openapi *);
/*
 * Puts arguments into the placeholders of a static prompt's text (their values
 * satisfied the prompt's schema). fields: the GetPromptResult object. given may
 * also be the array that declares the arguments: then each placeholder must be
 * declared, as when the prompt is saved.
 */
void check_render(
    struct check *c, struct ipc_bytes text, struct ipc_bytes given);
void check_free(struct check *c);

/* For the files of this folder. check_begin starts a verdict with an open
 * report. check_end ends it: ok if rc is 0 and the report is empty, else with
 * `what` as the beginning of the summary and, for rc -1, the error. */
void check_begin(struct check *c, struct report *r);
void check_end(struct check *c, struct report *r, int rc, enum failure,
    const char *what, const struct err *e);
/* Validates arguments, already parsed, against schema text. 0 or -1. */
int check_against(struct ipc_bytes schema, const struct doc *arguments,
    struct report *r, struct err *e);

#endif
