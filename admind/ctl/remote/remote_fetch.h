/*
 * One HTTP request of `remote check`, made and read by a process without
 * rights.
 */
#ifndef REMOTE_FETCH_H
#define REMOTE_FETCH_H

#include "buf.h"
#include "err.h"
#include "remote_read.h"

enum {
	REMOTE_FETCH_S = 30,         /* until a request is given up */
	REMOTE_FETCH_CONNECT_S = 10, /* of that, until it is connected */
	REMOTE_ADDRESS_MAX = 63
};

struct remote_ask {
	const char *url;
	/* HOST:PORT to connect to instead of the URL's; NULL: the URL's. Names
	 * in the request and in TLS stay those of the URL. */
	const char *to;
	int fd;           /* a connected socket to use, or -1 */
	const char *post; /* a JSON body, or NULL: GET */
	const char *bearer, *session, *version; /* header fields, or NULL */
	bool end;                               /* DELETE, to end a session */
	const struct buf *ca; /* PEM: certificates that are trusted; or NULL */
};

/* The last stage that a request reached. */
enum remote_reached {
	REMOTE_NO_NAME,   /* the name does not resolve */
	REMOTE_NO_ROUTE,  /* nothing accepts the connection */
	REMOTE_NO_TLS,    /* the certificate or the handshake is bad */
	REMOTE_NO_ANSWER, /* connected, but no HTTP answer came */
	REMOTE_ANSWERED
};

/* All texts end with NUL, and have printable ASCII alone. */
struct remote_answer {
	uint32_t reached;              /* enum remote_reached */
	uint32_t status;               /* of HTTP, 100 to 999 */
	int64_t date, ends;            /* Unix time; 0: not known. ends: of the
					* certificate, also of a bad one */
	char why[REMOTE_TEXT_MAX + 1]; /* libcurl's words for a failure */
	char location[REMOTE_URL_MAX + 1];
	char session[REMOTE_WORD_MAX + 1];
	char address[REMOTE_ADDRESS_MAX + 1]; /* that was connected to */
	struct remote_said said;
};

/* Makes the request. 0 with *answer, also if nothing answered; -1 with err if
 * the process could not be started or gave no result. */
int remote_fetch(
    const struct remote_ask *, struct remote_answer *answer, struct err *);

#endif
