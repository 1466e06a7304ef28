/*
 * doctor's look at an installation: rows like those of layers, of the process
 * "installation".
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "ctl.h"

struct json_object;

struct doctor {
	const struct ctl *c;
	struct json_object *rows; /* an array; appended to */
	bool missing;             /* one of them is */
};

/* OFF: somebody wants it so. What layers of a process have, and that. */
enum doctor_state { DOCTOR_HOLDS, DOCTOR_DEGRADED, DOCTOR_MISSING, DOCTOR_OFF };

/* One row. detail may hold others' words; fix is what to do if it does not
 * hold, and left out if it does. */
void doctor_row(struct doctor *, const char *name, enum doctor_state,
    const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* doctor.c: mcpboxctl doctor */
enum ctl_status doctor_command(const struct ctl *);

/* doctor_units.c: units, their processes, listeners, programs and files. */
void doctor_units(struct doctor *);
/* doctor_machine.c: kernel, disk, clock, logs, accounts. */
void doctor_machine(struct doctor *);
/* doctor_data.c: database, schema, key, backups. */
void doctor_data(struct doctor *);

#endif
