/*
 * Fields that admind-check makes of the endpoints of an access document
 * (docs/decisions/0102), as access_fields.h has those of the rest.
 */
#ifndef ENDPOINT_FIELDS_H
#define ENDPOINT_FIELDS_H

enum {
	ENDPOINT_RENAMES_MAX = 64,
	/* Bytes of a renamed tool's description. Models read each. */
	ENDPOINT_DESCRIPTION_MAX = 1024
};

enum endpoint_field {
	ENDPOINT_NAME = 1,
	ENDPOINT_ALLOW = 2, /* patterns, one each, as API tokens have them */
	ENDPOINT_DENY = 3,
	ENDPOINT_RENAME = 4,       /* record of enum rename_field */
	ENDPOINT_INSTRUCTIONS = 5, /* absent: the usual ones */
	ENDPOINT_SEARCH = 6,       /* u8: 1 mode "search" */
	ENDPOINT_SET = 7,          /* a set's name; absent: none narrows */
	ENDPOINT_LISTENERS = 8     /* u8, 1 << enum listener */
};

enum rename_field {
	RENAME_TOOL = 1,       /* the name that its version has */
	RENAME_AS = 2,         /* its name at this endpoint */
	RENAME_DESCRIPTION = 3 /* absent: the version's own */
};

#endif
