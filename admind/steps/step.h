/* The steps that management tools are written with: step.c, inspect.c. */
#ifndef STEP_H
#define STEP_H

#include "db.h"
#include "job.h"
#include "management_tools.h"

/*
 * A tool is a function void run(struct job *) that is called once its arguments
 * passed admind-check; job->fields holds them as TLV. It works in steps: each
 * step function takes the continuation to run when it succeeded. A step that
 * fails ends the job by itself with a typed failure (job_fail), so
 * continuations see only success. Exactly one step may be in work; the last one
 * calls job_done or job_fail. The tool need not know whether the client is
 * still there.
 */
struct manage_tool {
	const char *name; /* mcpbox_* */
	void (*run)(struct job *);
	enum management_object object;
};

/* Finds one field of the arguments: 1 found, 0 absent. */
int job_field(const struct job *, uint8_t tag, struct ipc_bytes *out);
/* Returns a number, or `absent`. */
uint64_t job_number(const struct job *, uint8_t tag, uint64_t absent);
/* Reads a uuid field, 16 bytes. 0, or -1 with the job already failed. */
int job_uuid(struct job *, uint8_t tag, struct ipc_id *out);
/* Reads tool_id, prompt_id or resource_id, as job_uuid does. */
int job_object_id(struct job *, struct ipc_id *out);

/* Returns false if the administrator read another version than this newest one,
 * given by its pre-image. Then the job has failed. */
bool job_seen(struct job *, struct ipc_bytes newest);

/* Runs a statement. */
void job_query(struct job *, const struct db_stmt *, const struct db_params *,
    void (*next)(struct job *, const struct pg_result *));
/* Ends the job with the errors of a CHECK_ERRORS frame. For any other frame or
 * NULL, ends the job with the failure that answer_err() makes of the frame and
 * `gone`. */
void job_check_failed(struct job *, struct ipc_frame *, enum failure gone);
/* Asks admind-check whether spec is a valid command, and whether the schema has
 * a property for each placeholder. */
void job_check_command(struct job *, struct ipc_bytes spec,
    struct ipc_bytes schema, void (*next)(struct job *));
/* Asks admind-check whether spec is a declared REST call. next gets the TLV of
 * the fields that follow from spec (enum inspection_field). confirm: as in
 * CHECK_HTTP. */
void job_check_http(struct job *, struct ipc_bytes spec, uint8_t confirm,
    void (*next)(struct job *, struct ipc_bytes fields));
/* Asks admind-check whether a static prompt's placeholders are all among its
 * arguments (a JSON array of PromptArgument). */
void job_check_render(struct job *, struct ipc_bytes text,
    struct ipc_bytes arguments, void (*next)(struct job *));
/* Asks admind-check whether these are arguments of this schema. */
void job_check_arguments(struct job *, struct ipc_bytes schema,
    struct ipc_bytes arguments, void (*next)(struct job *));
/* The content of a tool. */
struct subject {
	bool command;
	struct ipc_bytes code; /* Python source, or a command's spec */
	struct ipc_bytes executable;
	/* TLV list whose VERSION_MODULE fields are mounted, as for a call */
	struct ipc_bytes modules;
	/* Takes the job over if the code is broken; NULL: the job ends as
	 * BAD_CODE. */
	void (*broken)(struct job *, const char *why);
};
/* Inspects the subject in a runner (seal, hold, run, check). next gets the TLV
 * that answers CHECK_INSPECTION. Broken code ends the job as BAD_CODE with line
 * and column. The run is recorded as an execution of its own. */
void job_inspect(struct job *, const struct subject *, const char *name,
    void (*next)(struct job *, struct ipc_bytes fields));

/* Ends the job with its result, one JSON object that the tool wrote to
 * &job->json (already opened with jsonw_obj; job_done closes it). The object
 * becomes structuredContent and, as text, content[0]. */
void job_done(struct job *);
/* Takes a whole object, as PostgreSQL made it, as the job's JSON object. */
void job_out(struct job *, struct ipc_bytes object);
/* Does what job_done does, after a change to the lists that clients see:
 * answers once every connected gateway dropped its cache, or after 200 ms. */
void job_done_changed(struct job *);
/* Writes the result's member "message". */
void json_kv_message(struct job *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the job with an isError result, or with REFUSED for a failure of the
 * platform. May be called at any step. */
void job_fail(struct job *, enum failure, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
