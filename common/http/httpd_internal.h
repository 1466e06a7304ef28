/*
 * Functions that the files httpd*.c share. No other file includes this.
 */
#ifndef HTTPD_INTERNAL_H
#define HTTPD_INTERNAL_H

#include "httpd_conn.h"
#include "httpd_stream.h"

/* httpd_answer.c */
void httpd_stream_quiet(struct httpd_req *); /* nothing was sent for quiet_ms */
void httpd_answer_refusal(struct httpd_req *, int status, const char *why);

/* httpd_listen.c. Return a bound, non-blocking socket, or -1 with err. */
int httpd_listen_unix(const char *path, struct err *);
int httpd_listen_tcp(const char *host, uint16_t port, char *address_out,
    size_t len, struct err *);
/* Checks that HTTP can be served on fd, a socket on which another process
 * listens. Makes fd non-blocking. 0, or -1 with err. */
int httpd_listen_inherited(
    int fd, bool *unix_socket, char *address_out, size_t len, struct err *);
void httpd_listen_source(
    const struct sockaddr *, char text[HTTPD_SOURCE_MAX], uint8_t key[16]);

/* httpd_admit.c. Takes a new connection of the source `key` if there is room,
 * or if room can be made. true: the connection is counted until
 * httpd_admit_leave. false: why (at least 128 bytes) names the limit that is
 * reached. key NULL: the connection counts for no source. For example, all
 * connections of a unix socket come from one proxy, which counts clients. */
bool httpd_admit(struct httpd *, struct httpd_req *, const uint8_t key[16],
    char *why, size_t len);
/* Counts a connection, which was admitted with key NULL, for the source `key`.
 * Result and why as for httpd_admit. */
bool httpd_admit_source(
    struct httpd_req *, const uint8_t key[16], char *why, size_t len);
void httpd_admit_leave(struct httpd_req *);
/* Notes whether the connection is idle from now on. */
void httpd_admit_idle(struct httpd_req *, bool);

/* httpd_read.c */
void httpd_read_cb(evutil_socket_t, short what, void *);
void httpd_read_waiting(struct httpd_req *); /* feeds the kept bytes */
/* Throws away the input that waits. true: the connection's total exceeds
 * HTTPD_LINGER_MAX. */
bool httpd_read_discard(struct httpd_req *);

/* httpd_proxy.c. Takes the PROXY header from the front of r->in, if all of it
 * is there, and clears r->proxied. Refuses the connection if the header is
 * wrong. */
void httpd_proxy_take(struct httpd_req *);

/* httpd_drain.c */
/* Returns the idle time ms, or less if the drain leaves less time. */
uint64_t httpd_drain_idle_ms(const struct httpd *, uint64_t ms);
/* Tells whether the connection's socket has input. */
bool httpd_drain_has_input(const struct httpd_req *);
void httpd_drain_left(struct httpd *); /* a connection ended or became lean */

/* httpd.c */
uint64_t httpd_now_ms(void); /* CLOCK_MONOTONIC */
void httpd_accept(struct httpd *, int fd, const struct sockaddr *);
/* Sets the timer to ms from now; 0: never. */
void httpd_set_timer(struct httpd_req *, uint64_t ms);
/* Counts the present size of the connection's body in httpd.held. false: all
 * bodies together exceed bodies_max. */
bool httpd_count_body(struct httpd_req *);
void httpd_kill_now(struct httpd_req *);
void httpd_stream_timer(struct httpd_req *);   /* restarts quiet_ms */
void httpd_forget_request(struct httpd_req *); /* frees parser and its bytes */
void httpd_set_state(struct httpd_req *, enum httpd_state);
void httpd_kill_later(struct httpd_req *); /* ends it from the loop */

#endif
