/* Turns the error of a failed statement into a failure mode. */
#include <string.h>

#include <libpq-fe.h>

#include "db_internal.h"
#include "log.h"

/*
 * Turns an SQLSTATE into a failure mode. Errors that pass by themselves become
 * STORAGE_UNAVAILABLE: class 08 connection, 53 resources, 57 operator
 * intervention (shutdown, statement timeout), 40 rollback, 55P03 lock timeout,
 * 25006 a standby.
 */
void
db_error(const PGresult *r, struct err *err)
{
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
	const char *constraint = PQresultErrorField(r, PG_DIAG_CONSTRAINT_NAME);
	const char *colon;
	char name[32];

	if (state == NULL)
		state = "08006";
	if (text == NULL)
		text = "connection lost";
	if (strcmp(state, "MB001") == 0 &&
	    (colon = strstr(text, ": ")) != NULL &&
	    (size_t)(colon - text) < sizeof(name)) {
		memcpy(name, text, (size_t)(colon - text));
		name[colon - text] = '\0';
		err_set(err, failure_by_name(name), "%s", colon + 2);
	} else if (strncmp(state, "08", 2) == 0 ||
	    strncmp(state, "53", 2) == 0 || strncmp(state, "57", 2) == 0 ||
	    strncmp(state, "40", 2) == 0 || strcmp(state, "55P03") == 0 ||
	    strcmp(state, "25006") == 0) {
		err_set(err, FAILURE_STORAGE_UNAVAILABLE,
		    "the database could not serve this (%s)", state);
	} else if (strcmp(state, "23505") == 0) {
		err_set(err, FAILURE_CONFLICT, "this exists already (%s)",
		    constraint != NULL ? constraint : "unique");
	} else if (strncmp(state, "23", 2) == 0 ||
	    strncmp(state, "22", 2) == 0) {
		err_set(err, FAILURE_INVALID_PARAMS,
		    "a value is not allowed (%s)",
		    constraint != NULL ? constraint : state);
	} else {
		log_event(LOG_LV_ERR, "db_error", "%s %s", state, text);
		err_set(
		    err, FAILURE_INTERNAL, "the database refused (%s)", state);
	}
}
