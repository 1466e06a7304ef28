/*
 * Functions that the files httpd*.c share. No other file includes this.
 */
#ifndef HTTPD_INTERNAL_H
#define HTTPD_INTERNAL_H

#include "httpd_conn.h"
#include "httpd_stream.h"

/* httpd_answer.c */
void httpd_stream_quiet(struct httpd_req *); /* nothing was said for quiet_ms */
void httpd_answer_refusal(struct httpd_req *, int status, const char *why);

/* httpd_listen.c: bound, non-blocking sockets; -1 with err. */
int httpd_listen_unix(const char *path, struct err *);
int httpd_listen_tcp(const char *host, uint16_t port, char *address_out,
    size_t len, struct err *);
/* Checks a socket that another process bound and listens on: can HTTP be served
 * on it? Makes it non-blocking. 0, or -1 with err. */
int httpd_listen_inherited(
    int fd, bool *unix_socket, char *address_out, size_t len, struct err *);
void httpd_listen_source(
    const struct sockaddr *, char text[HTTPD_SOURCE_MAX], uint8_t key[16]);

/* httpd_admit.c. Is there room for one more of this source, or can room be
 * made? If so, the connection is counted until it leaves; else why names the
 * limit that is reached (at least 128 bytes). A unix socket's clients are one
 * proxy, which does its own counting. */
bool httpd_admit(struct httpd *, struct httpd_req *, const uint8_t key[16],
    char *why, size_t len);
/* The same for its source alone, of a connection that was admitted without one
 * (key NULL). */
bool httpd_admit_source(
    struct httpd_req *, const uint8_t key[16], char *why, size_t len);
void httpd_admit_leave(struct httpd_req *);
/* Notes that it is idle from now on, or no longer. */
void httpd_admit_idle(struct httpd_req *, bool);

/* httpd_read.c */
void httpd_read_cb(evutil_socket_t, short what, void *);
void httpd_read_waiting(struct httpd_req *); /* feeds the kept bytes */
/* Throws its input away; true: more than any client needs to send. */
bool httpd_read_discard(struct httpd_req *);

/* httpd_proxy.c: takes the header that r->in begins with, if all of it is
 * there. Afterwards the connection is no longer `proxied`, or it is refused. */
void httpd_proxy_take(struct httpd_req *);

/* httpd_drain.c */
/* Shortens ms, an idle time, to the time that draining leaves. */
uint64_t httpd_drain_idle_ms(const struct httpd *, uint64_t ms);
/* Is there something to read? */
bool httpd_drain_has_input(const struct httpd_req *);
void httpd_drain_left(struct httpd *); /* a connection is gone */

/* httpd.c */
uint64_t httpd_now_ms(void); /* CLOCK_MONOTONIC */
void httpd_accept(struct httpd *, int fd, const struct sockaddr *);
/* Sets the timer to ms from now; 0: never. */
void httpd_set_timer(struct httpd_req *, uint64_t ms);
/* Counts the body as it grows and goes. false: all bodies together are too
 * much. */
bool httpd_count_body(struct httpd_req *);
void httpd_kill_now(struct httpd_req *);
void httpd_stream_timer(struct httpd_req *);   /* restarts quiet_ms */
void httpd_forget_request(struct httpd_req *); /* frees parser and its bytes */
void httpd_set_state(struct httpd_req *, enum httpd_state);
void httpd_kill_later(struct httpd_req *); /* gone, from the loop */

#endif
