/*
 * Values that are stored under a master key, on their way between admind and
 * the vault while the key is rotated (RENEW_ROWS, RENEW_STORE).
 */
#ifndef RENEW_H
#define RENEW_H

enum {
	/* Rows of one message. If a rotation stops between two messages, at
	 * most this much work is repeated. Small messages also keep the
	 * database's locks short. */
	RENEW_MAX = 256,
	/* If rows are large, admind sends fewer of them than RENEW_MAX:
	 * RENEW_STORE carries each value twice and must fit one message. */
	RENEW_BYTES_MAX = 1024 * 1024
};

/* Fields of one row, in this order; each row begins with its ID. */
enum renew_tag {
	RENEW_ID = 1,     /* the row's id; a pass goes in the order of ids */
	RENEW_PLACE = 2,  /* ROWS: row of stored.h; or anchor's row number */
	RENEW_COLUMN = 3, /* ROWS: column of stored.h; or anchor's head, hex */
	RENEW_VALUE = 4,  /* the value as it is stored */
	RENEW_RENEWED = 5 /* STORE: the value under the newest key */
};

#endif
