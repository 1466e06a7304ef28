/* Management tools that make a version or try one. */
#ifndef VERSIONS_H
#define VERSIONS_H

#include "job.h"

struct draft;

void manage_create(struct job *);
void manage_update(struct job *);
void manage_import_openapi(struct job *);
/* trial_run.c */
void manage_test_code(struct job *);
/* manage_signature.c: calls next with the inspection's fields, unless an
 * input_schema in the arguments contradicts them. */
void manage_signature(struct job *, struct ipc_bytes inspected,
    void (*next)(struct job *, struct ipc_bytes));

/* manage_http.c: returns the error if the fields of a version of kind http are
 * wrong. Else returns NULL, and *spec gets the specification from the fields or
 * from the version before. */
const char *manage_http_wrong(
    struct job *, const struct draft *, struct ipc_bytes *spec);
/* Checks like job_check_http(). confirm comes from the job's arguments. */
void manage_http_check(struct job *, struct ipc_bytes spec,
    void (*next)(struct job *, struct ipc_bytes));

#endif
