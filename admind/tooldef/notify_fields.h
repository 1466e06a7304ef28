/*
 * Fields that admind-check makes of the member "notifications" of an access
 * document (docs/decisions/0112). TLV, as in access_fields.h. Only check/
 * writes them.
 */
#ifndef NOTIFY_FIELDS_H
#define NOTIFY_FIELDS_H

enum {
	/* Targets of one document. Each is told of each request by a run. */
	NOTIFY_TARGETS_MAX = 8
};

/* ACCESS_NOTIFY: a target. */
enum notify_field {
	NOTIFY_NAME = 1,
	NOTIFY_TEXT = 2,   /* as target.h reads it */
	NOTIFY_SERVER = 3, /* of its secret, if it has one */
	NOTIFY_KEY = 4     /* the secret's name, if it has one */
};

#endif
