/* The sockets that calls come by. */
#ifndef LISTENER_H
#define LISTENER_H

/* The side that may RUN a held context (sandboxd/held/held.h): admind or a
 * gateway. The socket to which a gateway connected tells its listener. */
enum listener {
	LISTENER_NONE = 0, /* not a gateway's socket */
	LISTENER_LOCAL = 1,
	LISTENER_TUNNEL = 2,
	LISTENER_ADMIND = 3 /* inspections and test runs */
};

/* Returns the listener of this name (local, tunnel, admind), or
 * LISTENER_NONE. */
enum listener listener_of(const char *name);

/* Returns the name of a listener in the database, in configurations and for
 * people: "local", "tunnel" or "admind". Returns "" for any other number. */
const char *listener_name(unsigned);

#endif
