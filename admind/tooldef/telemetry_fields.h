/*
 * Fields that admind-check makes of the member "telemetry" of an access
 * document and of the answer of a run that sent telemetry
 * (docs/decisions/0107). TLV, as in access_fields.h. Only check/ writes them.
 */
#ifndef TELEMETRY_FIELDS_H
#define TELEMETRY_FIELDS_H

enum {
	TELEMETRY_HOSTS_MAX = 8, /* beside the collector's own */
	/* Seconds between two runs. Each has a record of its own, and graphs
	 * want a value in each minute or two. */
	TELEMETRY_EVERY_MIN_S = 10,
	TELEMETRY_EVERY_MAX_S = 300,
	TELEMETRY_EVERY_USUAL_S = 30
};

/* ACCESS_TELEMETRY. */
enum telemetry_field {
	TELEMETRY_URL = 1,        /* without a slash at its end */
	TELEMETRY_HOST = 2,       /* a further host, as the document has it */
	TELEMETRY_SPANS = 3,      /* u8, 0 or 1 */
	TELEMETRY_METRICS = 4,    /* u8, 0 or 1 */
	TELEMETRY_PRINCIPALS = 5, /* u8, 0 or 1: spans name principals */
	TELEMETRY_EVERY_S = 6     /* u64 */
};

/* CHECK_SENT. */
enum sent_field {
	SENT_COUNT = 1,    /* u64: requests that the collector took, of those
			    * that the run had */
	SENT_STATUS = 2,   /* u64: HTTP status of the last answer; 0: none */
	SENT_RETRY_S = 3,  /* u64: its Retry-After; 0: none */
	SENT_REJECTED = 4, /* u64: spans and points that it says it left out */
	SENT_WHY = 5       /* text of a fault; absent: none */
};

#endif
