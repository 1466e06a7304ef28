/*
 * The questions admind asks, without I/O: bytes in, verdict out.
 */
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
/* An input schema by itself, for tests: management.c and inspection.c judge
 * schemas with what they come in. */
void check_schema(struct check *c, struct ipc_bytes schema);
/* output: an outputSchema and structured content, not arguments. */
void check_arguments(struct check *c, struct ipc_bytes schema,
    struct ipc_bytes arguments, bool output);
/* fields: tags of enum management_field, ascending. */
void check_management(
    struct check *c, struct ipc_bytes tool, struct ipc_bytes arguments);
/* fields: tags of enum inspection_field, ascending. */
void check_inspection(struct check *c, struct ipc_bytes json);
/* spec: of a command; schema: of its arguments. No fields. */
void check_command(
    struct check *c, struct ipc_bytes spec, struct ipc_bytes schema);
/* A declared REST call (kind http). confirm: CHECK_HTTP's. fields: of enum
 * inspection_field, what follows from it. */
void check_http(struct check *c, unsigned confirm, struct ipc_bytes spec);
/* An OpenAPI document. fields: of enum openapi_field, a group for each
 * operation. */
struct ipc_check_openapi;
void check_openapi(struct check *c, const struct ipc_check_openapi *);
/* A static prompt's text with arguments in its placeholders (their values
 * satisfied the prompt's schema). fields: the GetPromptResult object. given may
 * also be the array that declares them: then it is checked that each
 * placeholder is declared, as when the prompt is saved. */
void check_render(
    struct check *c, struct ipc_bytes text, struct ipc_bytes given);
void check_free(struct check *c);

/* For the files of this folder. Starts a verdict with an open report; ends it:
 * ok if rc is 0 and the report is empty, else with `what` as the beginning of
 * the summary and, for rc -1, the error. */
void check_begin(struct check *c, struct report *r);
void check_end(struct check *c, struct report *r, int rc, enum failure,
    const char *what, const struct err *e);
/* Validates arguments, already parsed, against schema text. 0 or -1. */
int check_against(struct ipc_bytes schema, const struct doc *arguments,
    struct report *r, struct err *e);

#endif
