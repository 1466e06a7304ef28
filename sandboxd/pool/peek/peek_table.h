/*
 * The state of mcpbox-peek: the listeners that runners handed over, and for
 * each the connects that wait for their answer. Plain data; it does no input or
 * output but closing descriptors that it owns.
 *
 * All of it is bounded, and by listener: connects that wait for one call take
 * nothing from another's.
 */
#ifndef PEEK_TABLE_H
#define PEEK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slots.h"

enum {
	/* A slot's next runner may be here before the end of its last one was
	 * seen. */
	PEEK_LISTENERS_MAX = 2 * SLOTS_MAX,
	/* Connects of one call under way at once; others wait in the kernel,
	 * each with the thread that called. */
	PEEK_WAITS_MAX = 32,
	/* struct sockaddr_storage: connect(2) takes no more. */
	PEEK_ADDRESS_MAX = 128,
	/* Options carried over from the runner's socket (peek_look.c). */
	PEEK_OPTIONS_MAX = 10,
	PEEK_OPTION_BYTES = 16, /* struct timeval */
	/* Answers a call gets at once, and a second. A tool's loop of connects
	 * costs no CPU time of its own while peek answers; this bounds the time
	 * it takes from the others. */
	PEEK_BURST = 256,
	PEEK_PER_SECOND = 1000,
	/* A look takes some 20 us, but a tool can make one long: its memory's
	 * lock may be held, or the last reference to something large be ours. A
	 * look longer than this is followed by a pause of so many times its
	 * length, in which only the runner that caused it waits. */
	PEEK_SLOW_MS = 10,
	PEEK_SLOW_PAUSE = 20
};

enum peek_state {
	PEEK_FREE,
	PEEK_ASKING, /* egress is to be asked */
	PEEK_ASKED,  /* it was; request is its number */
	PEEK_PUTTING /* it answered: socket still to be put in place */
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
	int fd; /* the runner's number of its socket */
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
	uint64_t paused_ms;  /* not read from before: its looks were slow */
	uint64_t stalled_ms; /* put nothing in place before */
	unsigned stall_ms;   /* how long the last stall was */
	struct peek_wait wait[PEEK_WAITS_MAX];
};

struct peek_table {
	unsigned end; /* no listener at or above it is in use */
	uint64_t serial;
	struct peek_listener listener[PEEK_LISTENERS_MAX];
};

void peek_table_init(struct peek_table *);
/* Takes the descriptor. NULL, and it stays the caller's, if all places are in
 * use or this net has a listener: no net has two. */
struct peek_listener *peek_table_add(
    struct peek_table *, uint64_t net, int fd, uint64_t now_ms);
/* Closes the listener of a runner that ended, and its waiting sockets. */
void peek_table_remove(struct peek_table *, struct peek_listener *);

/* Returns a free wait of this listener, or NULL. It is ASKING until
 * deadline_ms. */
struct peek_wait *peek_table_wait(struct peek_listener *, uint64_t deadline_ms);
/* Frees a wait that was answered, or whose caller is gone: closes its socket,
 * if it has one. */
void peek_table_done(struct peek_listener *, struct peek_wait *);
/* Returns a new number for a question to egress; it says where the wait is. */
uint64_t peek_table_request(struct peek_table *, const struct peek_listener *,
    const struct peek_wait *);
/* Returns the wait that was asked about under this number, and its listener;
 * NULL if there is none any more. */
struct peek_wait *peek_table_asked(
    struct peek_table *, uint64_t request, struct peek_listener **);

/* May this listener be read from now? Counts tokens again, takes none. If not,
 * and only time helps, *wait_ms is lowered to the time left (-1 means
 * never). */
bool peek_table_may_read(struct peek_listener *, uint64_t now_ms, int *wait_ms);
/* Takes the token of one answer. */
void peek_table_spend(struct peek_listener *);
/* Notes how long a look at this listener's caller lasted, from the first time
 * to the second: after a slow look the listener is not read from for a
 * while. */
void peek_table_took(struct peek_listener *, uint64_t from_ms, uint64_t now_ms);

#endif
