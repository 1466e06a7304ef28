#include <stdio.h>
#include <string.h>

#include "check.h"
#include "kept.h"
#include "schema.h"

void
check_begin(struct check *c, struct report *r)
{
	memset(c, 0, sizeof(*c));
	buf_init(&c->fields, IPC_BLOB_MAX);
	buf_init(&c->kept, ARGUMENTS_KEPT);
	buf_init(&c->errors, RESULT_MAX);
	report_open(r, &c->errors);
}

void
check_end(struct check *c, struct report *r, int rc, enum failure f,
    const char *what, const struct err *e)
{
	report_close(r);
	c->ok = false;
	if (rc == -1) {
		/* The check itself ended early. The list of errors is not
		 * complete, so only the reason is sent. */
		c->failure = e->failure;
		buf_clear(&c->errors);
		buf_puts(&c->errors, "[]");
		snprintf(c->summary, sizeof(c->summary), "%s", e->text);
	} else if (r->n > 0) {
		c->failure = f;
		if (r->n == 1)
			snprintf(c->summary, sizeof(c->summary), "%s: %s", what,
			    r->first);
		else
			snprintf(c->summary, sizeof(c->summary),
			    "%s: %u errors, the first: %s", what, r->n,
			    r->first);
	} else if (c->fields.failed || c->errors.failed || c->kept.failed) {
		c->failure = FAILURE_INTERNAL;
		snprintf(c->summary, sizeof(c->summary), "out of memory");
	} else {
		c->ok = true;
	}
}

void
check_free(struct check *c)
{
	buf_free(&c->fields);
	buf_free(&c->kept);
	buf_free(&c->errors);
}

void
check_schema(struct check *c, struct ipc_bytes text)
{
	struct schema s;
	struct report r;
	struct err e;
	int rc;

	check_begin(c, &r);
	rc = schema_compile(&s, SCHEMA_INPUT, text.p, text.n, &r, &e);
	check_end(c, &r, rc, FAILURE_INVALID_ARGUMENTS,
	    "the schema cannot be used", &e);
	schema_free(&s);
}

int
check_against(struct ipc_bytes text, const struct doc *arguments,
    struct report *r, struct err *e)
{
	struct report quiet;
	struct schema s;
	int rc;

	/* A stored schema was judged when it was made. If it does not pass now,
	 * the fault is ours and not in the arguments. */
	report_open(&quiet, NULL);
	rc = schema_compile(&s, SCHEMA_ANY, text.p, text.n, &quiet, e);
	if (rc == 0 && quiet.n > 0)
		rc = err_set(e, FAILURE_INTERNAL,
		    "the stored schema is not of the subset: %s", quiet.first);
	if (rc == 0)
		rc = schema_validate(&s, arguments, r, e);
	schema_free(&s);
	return rc;
}

void
check_arguments(struct check *c, struct ipc_bytes schema,
    struct ipc_bytes arguments, bool output)
{
	struct report r;
	struct doc d;
	struct err e;
	int rc;

	check_begin(c, &r);
	if ((rc = doc_parse(&d, arguments.p, arguments.n, &e)) == 0)
		rc = check_against(schema, &d, &r, &e);
	if (rc == 0 && r.n == 0 && !output)
		(void)kept_form(
		    arguments.p, arguments.n, ARGUMENTS_KEPT, &c->kept);
	if (output)
		check_end(c, &r, rc, FAILURE_BAD_RESULT,
		    "the result is not what the tool's output schema promises",
		    &e);
	else
		check_end(c, &r, rc, FAILURE_INVALID_ARGUMENTS,
		    "the arguments are invalid", &e);
	doc_free(&d);
}
