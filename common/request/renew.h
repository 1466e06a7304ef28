/*
 * Values that rest under a master key, on their way between admind and the
 * vault while it is rotated (RENEW_ROWS, RENEW_STORE).
 */
#ifndef RENEW_H
#define RENEW_H

enum {
	/* Rows of one piece: a stop between two costs at most this much
	 * repeated work, and the database's locks are short. */
	RENEW_MAX = 256,
	/* admind sends fewer when they are larger: a renewed piece carries each
	 * value twice and must fit one message. */
	RENEW_BYTES_MAX = 1024 * 1024
};

/* Fields of one row, in this order; each row begins with its ID. */
enum renew_tag {
	RENEW_ID = 1,     /* of the row, and the order of passes */
	RENEW_PLACE = 2,  /* ROWS: its place for the vault (stored.h) ... */
	RENEW_COLUMN = 3, /* ROWS: ... an anchor's row number and head in hex */
	RENEW_VALUE = 4,  /* as it rests */
	RENEW_RENEWED = 5 /* STORE: the same under the newest key */
};

#endif
