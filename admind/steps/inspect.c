/*
 * Inspects Python source, or a command, for a management tool. The code is
 * parsed in a runner, never here (own_run.h). The runner's answer is foreign
 * JSON, so admind-check takes it apart.
 *
 * Code may run in an inspection before a review, since the vault seals an
 * inspection without secrets, hosts or version (contexts.c), and its runner
 * reaches nothing. An inspection runs the top level of the inspected code, and
 * of modules that the tool was granted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "jobs.h"
#include "management_tools.h"
#include "own_run.h"
#include "step.h"
#include "version.h"
#include "waits.h"

enum {
	/* Importing a module takes less on an ordinary machine (waits.h). */
	INSPECT_TIMEOUT_MS = 10 * 1000,
	/* time for the queue, the start of a runner, the run, and the answer */
	INSPECT_WAIT_MS = QUEUE_MS + INSPECT_TIMEOUT_MS + 10 * 1000,
};

struct inspect {
	struct job *j;
	bool command;
	void (*broken)(struct job *, const char *why); /* subject's broken */
};

/* The steps, in order; each leads to the next. */
static void ran(void *arg, const struct own_end *e);
static void not_inspected(struct inspect *in, enum failure failure);
static void taken_apart(void *arg, struct ipc_frame *f, enum failure gone);
static void broken_code(struct job *j, bool command, struct ipc_bytes fields,
    void (*broken)(struct job *, const char *));
static void text_of(struct buf *b, const struct tlv *t);

/* Ends the inspection and the job. */
static void
fail(struct inspect *in, enum failure failure, const char *text)
{
	struct inspect last = *in;

	free(in);
	if (failure == FAILURE_BAD_CODE && last.broken != NULL)
		last.broken(last.j, text);
	else
		job_fail(last.j, failure, "%s", text);
}

/* ---- 1: the run ---- */

void
job_inspect(struct job *j, const struct subject *what, const char *name,
    void (*next)(struct job *, struct ipc_bytes))
{
	uint8_t module[MODULES_PER_CALL_MAX][32];
	struct own_what own = {.kind = CONTEXT_INSPECT,
	    .noun = "inspection",
	    .tool = name,
	    .principal = j->principal,
	    .client = j->client,
	    .protocol = j->protocol,
	    .arguments = ipc_str("{}"),
	    .kept = ipc_str("{}"),
	    .timeout_ms = (uint32_t)wait_ms(INSPECT_TIMEOUT_MS),
	    .wait_ms = INSPECT_WAIT_MS};
	struct buf material;
	struct inspect *in;
	size_t nmodules;
	struct err e;

	j->next.fields = next;
	if (what->code.n > CODE_MAX) {
		job_fail(
		    j, FAILURE_LIMIT, "code has at most %d bytes", CODE_MAX);
		return;
	}
	/* An inspection runs the code's imports, so the modules must be mounted
	 * for it, too. */
	if (version_modules(what->modules.p, what->modules.n, module, &nmodules,
		&e) == -1) {
		job_fail(j, e.failure, "%s", e.text);
		return;
	}
	in = calloc(1, sizeof(*in));
	if (in == NULL) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	in->j = j;
	in->command = what->command;
	in->broken = what->broken;
	buf_init(&material, IPC_BLOB_MAX);
	for (size_t i = 0; i < nmodules; i++)
		tlv_put(&material, CTX_MODULE, module[i], 32);
	if (what->command) {
		tlv_puts(&material, CTX_KIND, "command");
		tlv_put(&material, CTX_SPEC, what->code.p, what->code.n);
		tlv_put(&material, CTX_EXECUTABLE, what->executable.p,
		    what->executable.n);
	} else {
		tlv_put(&material, CTX_CODE, what->code.p, what->code.n);
	}
	own.material = &material;
	own_run(j->a, &own, ran, in);
	buf_free(&material);
}

/* ---- 2: the inspection ran ---- */

static void
ran(void *arg, const struct own_end *e)
{
	struct inspect *in = arg;
	struct ipc_check_inspection c = {.json = e->body};
	struct err err;

	if (e->how != OWN_RAN)
		fail(in, e->failure, e->text);
	else if (e->outcome != OUTCOME_DONE)
		not_inspected(in, e->failure);
	else if (ask(in->j->a->check, IPC_CHECK_INSPECTION, &c, taken_apart, in,
		     &err) == -1)
		fail(in, err.failure, err.text);
}

/* Tells the author why the code or command was not inspected, and how to mend
 * the cause. */
static void
not_inspected(struct inspect *in, enum failure failure)
{
	char text[ERR_TEXT_MAX];
	const char *what = in->command ? "the command" : "the code";

	switch (failure) {
	case FAILURE_TIMEOUT:
		snprintf(text, sizeof(text),
		    "%s could not be inspected: timeout, it did not end within "
		    "%d s. What stands outside main runs then: move slow work "
		    "into main, and try again if the machine was busy",
		    what, wait_ms(INSPECT_TIMEOUT_MS) / 1000);
		break;
	case FAILURE_LIMIT:
		snprintf(text, sizeof(text),
		    "%s could not be inspected: it met a limit (memory, CPU "
		    "time, processes or size of its schema). What stands "
		    "outside main runs then: move it into main",
		    what);
		break;
	default:
		snprintf(text, sizeof(text), "%s could not be inspected%s",
		    what,
		    in->command
			? ""
			: ": it must be one Python module with a function "
			  "main, and its import must not end the process");
	}
	if (failure == FAILURE_EXCEPTION || failure == FAILURE_LIMIT ||
	    failure == FAILURE_TIMEOUT)
		failure = FAILURE_BAD_CODE;
	fail(in, failure, text);
}

/* ---- 3: the typed fields ---- */

static void
taken_apart(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct inspect *in = arg;
	struct job *j = in->j;
	void (*broken)(struct job *, const char *) = in->broken;
	bool command = in->command;
	struct ipc_check_errors no;
	struct ipc_check_ok m;
	struct tlv t;
	uint64_t ok = 0;
	struct err err;

	if (f == NULL || f->type != IPC_CHECK_OK) {
		/* CHECK_ERRORS says which part of the signature is too big. */
		if (f != NULL && f->type == IPC_CHECK_ERRORS &&
		    ipc_decode(f, &no, NULL) == 0)
			err_set(&err, FAILURE_BAD_CODE, "%.*s",
			    no.summary.n < ERR_TEXT_MAX ? (int)no.summary.n : 0,
			    (const char *)no.summary.p);
		else
			answer_err(f, gone, &err);
		fail(in, err.failure, err.text);
		return;
	}
	free(in);
	if (ipc_decode(f, &m, &err) == -1 ||
	    tlv_find(m.fields.p, m.fields.n, INSPECT_OK, &t) != 1 ||
	    tlv_u64(&t, &ok) == -1) {
		job_fail(j, FAILURE_INTERNAL, "malformed inspection");
		return;
	}
	if (ok != 1)
		broken_code(j, command, m.fields, broken);
	else if (command !=
	    (tlv_find(m.fields.p, m.fields.n, INSPECT_EXECUTABLE_DIGEST, &t) ==
		1))
		job_fail(j, FAILURE_INTERNAL,
		    "the runner inspected another kind of tool");
	else
		j->next.fields(j, m.fields);
}

/* Tells the author how the code is broken: type, message, place, lines. */
static void
broken_code(struct job *j, bool command, struct ipc_bytes fields,
    void (*broken)(struct job *, const char *))
{
	struct tlv_reader r;
	struct tlv f;
	struct buf b;
	uint64_t n;

	buf_init(&b, RESULT_MAX / 4);
	if (broken == NULL)
		buf_puts(&b,
		    command ? "Error: the command cannot be used: "
			    : "Error: the code is broken: ");
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_TYPE, &f) == 1) {
		text_of(&b, &f);
		buf_puts(&b, ": ");
	}
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_MESSAGE, &f) == 1)
		text_of(&b, &f);
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_LINE, &f) == 1 &&
	    tlv_u64(&f, &n) == 0)
		buf_putf(&b, ", line %llu", (unsigned long long)n);
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_COLUMN, &f) == 1 &&
	    tlv_u64(&f, &n) == 0)
		buf_putf(&b, ", column %llu", (unsigned long long)n);
	tlv_open(&r, fields.p, fields.n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == INSPECT_ERROR_CONTEXT) {
			buf_putc(&b, '\n');
			text_of(&b, &f);
		}
	buf_putc(&b, '\0');
	if (broken != NULL)
		broken(j, b.failed ? "it is broken" : (const char *)b.p);
	else
		job_error(j, FAILURE_BAD_CODE,
		    b.failed ? "Error: the code is broken" : (const char *)b.p,
		    ipc_bytes(NULL, 0));
	buf_free(&b);
}

static void
text_of(struct buf *b, const struct tlv *t)
{
	buf_put(b, t->p, t->n);
}
