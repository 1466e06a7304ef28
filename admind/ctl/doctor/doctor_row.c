#include <json-c/json_object.h>
#include <stdarg.h>
#include <stdio.h>

#include "doctor.h"

void
doctor_row(struct doctor *d, const char *name, enum doctor_state state,
    const char *fix, const char *fmt, ...)
{
	static const char *const words[] = {
	    "enforced", "degraded", "missing", "off"};
	struct json_object *row = json_object_new_object();
	char detail[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	json_object_object_add(
	    row, "process", json_object_new_string("installation"));
	json_object_object_add(row, "layer", json_object_new_string(name));
	json_object_object_add(
	    row, "state", json_object_new_string(words[state]));
	json_object_object_add(row, "detail", json_object_new_string(detail));
	json_object_object_add(row, "fix",
	    json_object_new_string(state == DOCTOR_HOLDS ? "" : fix));
	json_object_array_add(d->rows, row);
	if (state == DOCTOR_MISSING)
		d->missing = true;
}
