/* doctor's checks of an installation. They add rows like those of the daemons'
 * layers, with the process "installation". */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "ctl.h"

struct json_object;

struct doctor {
	const struct ctl *c;
	struct json_object *rows; /* a JSON array, to which rows are appended */
	bool missing;             /* some row has the state DOCTOR_MISSING */
};

/* OFF: switched off on purpose. The other states are those of a process's
 * layers. */
enum doctor_state { DOCTOR_HOLDS, DOCTOR_DEGRADED, DOCTOR_MISSING, DOCTOR_OFF };

/* Adds a row. fmt makes its detail, which may hold words of strangers. fix is
 * the remedy; it is left out if the state is DOCTOR_HOLDS. */
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
