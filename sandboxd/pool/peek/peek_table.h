/*
 * The state of mcpbox-peek: the listeners that runners handed over, and for
 * each listener the connects that wait for an answer. The only I/O is closing
 * descriptors that the table owns.
 *
 * Each listener has bounds of its own, so that the waiting connects of one call
 * take nothing from another call.
 */
#ifndef PEEK_TABLE_H
#define PEEK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slots.h"

enum {
	/* Two for each slot: a slot's next runner may come before peek has seen
	 * that the former runner ended. */
	PEEK_LISTENERS_MAX = 2 * SLOTS_MAX,
	/* Connects of one call under way at once. More connects wait in the
	 * kernel, each with the thread that called. */
	PEEK_WAITS_MAX = 32,
	/* Bytes of struct sockaddr_storage: connect(2) takes no more. */
	PEEK_ADDRESS_MAX = 128,
	/* Options carried over from the runner's socket (peek_look.c). */
	PEEK_OPTIONS_MAX = 10,
	PEEK_OPTION_BYTES = 16, /* struct timeval */
	/* Answers that a call gets at once, and each second. While peek answers
	 * a tool's loop of connects, the tool uses no CPU time of its own. So
	 * this bounds the time that a tool takes from others. */
	PEEK_BURST = 256,
	PEEK_PER_SECOND = 1000,
	/* A look takes some 20 us, but a tool can make it long: the lock of its
	 * memory may be held, or peek may drop the last reference to something
	 * large. A look of PEEK_SLOW_MS or more is followed by a pause that is
	 * PEEK_SLOW_PAUSE times as long. Only the runner of the listener waits
	 * then. */
	PEEK_SLOW_MS = 10,
	PEEK_SLOW_PAUSE = 20
};

enum peek_state {
	PEEK_FREE,
	PEEK_ASKING, /* egress is to be asked */
	PEEK_ASKED,  /* egress was asked, under the number `request` */
	PEEK_PUTTING /* egress answered: socket is to be put in place */
};

/* An option of the runner's socket, with its value. */
struct peek_option {
	int level, option;
	unsigned n; /* bytes of value */
	unsigned char value[PEEK_OPTION_BYTES];
};

/* A connect(2), as it was when its notification came; none of it is read from
 * the runner a second time. */
struct peek_connect {
	uint64_t id; /* of the notification */
	uint32_t tid;
	int fd; /* the socket's number in the runner */
	uint16_t family, type;
	bool nonblocking, cloexec;
	unsigned noptions;
	struct peek_option option[PEEK_OPTIONS_MAX];
	size_t naddress;
	unsigned char address[PEEK_ADDRESS_MAX];
};

struct peek_wait {
	enum peek_state state;
	uint64_t request;     /* ASKED */
	uint64_t deadline_ms; /* of this state */
	int socket;           /* PUTTING: owned; else -1 */
	/* PUTTING: the result of connect(2), 0 or errno */
	int error;
	struct peek_connect connect;
};

struct peek_listener {
	int fd; /* -1: free; owned */
	uint64_t net;
	unsigned waiting;    /* waits that are not FREE */
	unsigned tokens;     /* answers left in this burst */
	uint64_t tokens_ms;  /* when they were counted */
	uint64_t paused_ms;  /* listener is not read until then (slow look) */
	uint64_t stalled_ms; /* no socket is put into the runner until then */
	unsigned stall_ms;   /* length of the last stall */
	struct peek_wait wait[PEEK_WAITS_MAX];
};

struct peek_table {
	unsigned end; /* no listener from this index on is in use */
	uint64_t serial;
	struct peek_listener listener[PEEK_LISTENERS_MAX];
};

void peek_table_init(struct peek_table *);
/* Adds a listener and takes over fd. NULL, and fd stays the caller's: all
 * places are in use, or this net has a listener (no net has two). */
struct peek_listener *peek_table_add(
    struct peek_table *, uint64_t net, int fd, uint64_t now_ms);
/* Closes the listener of a runner that ended, and its waiting sockets. */
void peek_table_remove(struct peek_table *, struct peek_listener *);

/* Takes a free wait of this listener and makes it ASKING until deadline_ms.
 * NULL: no wait is free. */
struct peek_wait *peek_table_wait(struct peek_listener *, uint64_t deadline_ms);
/* Frees a wait that was answered, or whose caller is gone: closes its socket,
 * if it has one. */
void peek_table_done(struct peek_listener *, struct peek_wait *);
/* Returns a new number for a question to egress. The number contains the wait's
 * place. */
uint64_t peek_table_request(struct peek_table *, const struct peek_listener *,
    const struct peek_wait *);
/* Returns the wait in PEEK_ASKED with this request number, and its listener;
 * NULL if there is none any more. */
struct peek_wait *peek_table_asked(
    struct peek_table *, uint64_t request, struct peek_listener **);

/* Tells whether this listener may be read from now. Adds the tokens of the time
 * that passed. If the listener may be read from at a later time, lowers
 * *wait_ms to the time left (*wait_ms may be -1: no limit). */
bool peek_table_may_read(struct peek_listener *, uint64_t now_ms, int *wait_ms);
/* Takes the token of one answer. */
void peek_table_spend(struct peek_listener *);
/* Notes that a look at this listener's caller lasted from from_ms to now_ms.
 * After a slow look the listener is not read from for a while. */
void peek_table_took(struct peek_listener *, uint64_t from_ms, uint64_t now_ms);

#endif
