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

/* check_schema() and check_arguments() fill c, which check_free() empties. The
 * bytes are hostile. */
/* Judges an input schema by itself, for tests: management.c and inspection.c
 * judge schemas together with the message that brings them. */
void check_schema(struct check *c, struct ipc_bytes schema);
/* Checks arguments against a schema. output: checks structured content against
 * an outputSchema instead. */
void check_arguments(struct check *c, struct ipc_bytes schema,
    struct ipc_bytes arguments, bool output);
void check_free(struct check *c);

/* For forms/ and specs/. check_begin() starts a verdict and opens its report.
 * check_end() ends both. The verdict is ok if rc is 0 and the report is empty.
 * If rc is -1, the failure and the summary are those of e. Else the failure is
 * the one given, and the summary begins with `what`. */
void check_begin(struct check *c, struct report *r);
void check_end(struct check *c, struct report *r, int rc, enum failure,
    const char *what, const struct err *e);
/* Checks parsed arguments against the text of a stored schema. Faults go to the
 * report. 0, or -1 with err if the check itself failed. */
int check_against(struct ipc_bytes schema, const struct doc *arguments,
    struct report *r, struct err *e);

#endif
