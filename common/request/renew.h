/*
 * Values that are stored under a master key, on their way between admind and
 * the vault while the key is rotated (RENEW_ROWS, RENEW_STORE).
 */
#ifndef RENEW_H
#define RENEW_H

enum {
	/* Rows of one piece. A stop between two pieces costs at most this much
	 * repeated work, and the database's locks are short. */
	RENEW_MAX = 256,
	/* If rows are large, admind sends fewer of them than RENEW_MAX: a
	 * renewed piece carries each value twice and must fit one message. */
	RENEW_BYTES_MAX = 1024 * 1024
};

/* Fields of one row, in this order; each row begins with its ID. */
enum renew_tag {
	RENEW_ID = 1,     /* of the row, and the order of passes */
	RENEW_PLACE = 2,  /* ROWS: row of stored.h; or anchor's row number */
	RENEW_COLUMN = 3, /* ROWS: column of stored.h; or anchor's head, hex */
	RENEW_VALUE = 4,  /* the value as it is stored */
	RENEW_RENEWED = 5 /* STORE: the value under the newest key */
};

#endif
