/* doctor's look at an installation: rows like those of layers, for the process
 * "installation". */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "ctl.h"

struct json_object;

struct doctor {
	const struct ctl *c;
	struct json_object *rows; /* an array; appended to */
	bool missing;             /* a row is missing */
};

/* OFF: switched off on purpose. The other states are those of a process's
 * layers. */
enum doctor_state { DOCTOR_HOLDS, DOCTOR_DEGRADED, DOCTOR_MISSING, DOCTOR_OFF };

/* Adds a row. detail may hold foreign words. fix tells the remedy if the row
 * does not hold; it is left out if the row holds. */
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
