/* The member "notifications" of an access document. No I/O. */
#ifndef NOTIFICATIONS_H
#define NOTIFICATIONS_H

#include "access_read.h"

/* Reads the member, reports its faults, and adds ACCESS_PANEL and a record
 * ACCESS_NOTIFY for each target to the fields. Absent: adds nothing. */
void notifications_read(struct access_doc *, const struct access_at *);

#endif
