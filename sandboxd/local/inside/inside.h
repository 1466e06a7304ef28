/*
 * The part of a run that is in the new namespaces: pid 1, which builds the
 * root, starts the program and reaps, and the messages between pid 1 and the
 * process outside.
 *
 * The two talk over one SOCK_SEQPACKET pair. Only our code writes to it: the
 * program gets no copy, and can't open pid 1's descriptors, since pid 1 is not
 * dumpable.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "plan.h"

enum inside_kind {
	/* to the outside */
	INSIDE_FAILED = 1,   /* text: a step failed, nothing was run */
	INSIDE_TERMINAL = 2, /* descriptor: the master of the terminal */
	INSIDE_NOT_RUN = 3,  /* value: errno of execve */
	INSIDE_STOPPED = 4,  /* value: the signal that stopped the program */
	INSIDE_ENDED = 5,    /* value: the status, as wait(2) has it */
	/* descriptors for the network, if hosts are named */
	INSIDE_DNS = 6,      /* UDP, 127.0.0.1:53 */
	INSIDE_RELAY = 7,    /* TCP listener; value 0: IPv4, 1: IPv6 */
	INSIDE_LISTENER = 8, /* of the program's connect(2) */
	/* to pid 1 by its second pair: a port inside, or-ed 1 << 16 for IPv6;
	 * and the answer, with the connecting socket unless it failed */
	INSIDE_DIAL = 9,
	INSIDE_DIALLED = 10,
	/* to the inside */
	INSIDE_SIGNAL = 16, /* value: a signal for the program */
	INSIDE_GROUP = 17,  /* value: a signal for its process group */
};

struct inside_message {
	enum inside_kind kind;
	int value;
	char text[ERR_TEXT_MAX];
};

/* The descriptors and choices that pid 1 inherits. */
struct inside {
	const struct plan *plan;
	int channel; /* pid 1's end of the pair */
	int peer;    /* the other end, which pid 1 closes */
	int dialer;  /* pid 1's end of the second pair; -1: no port is published
		      */
	int dialer_peer;
	bool terminal; /* make a terminal for the program */
	bool tty[3];   /* which of 0, 1, 2 it replaces */
	void *sigmask; /* sigset_t of the program */
	bool cgroup;   /* a cgroup limits the memory already */
};

/* Sends a message; fd -1: without a descriptor. 0 or -1. */
int inside_send(
    int channel, enum inside_kind, int value, const char *text, int fd);
/* Receives a message; *fd is a descriptor or -1, owned by the caller. 1; 0: the
 * peer is gone; -1. */
int inside_receive(int channel, struct inside_message *, int *fd);

/* inside.c: pid 1, from the clone on. */
_Noreturn void inside_main(const struct inside *);

/* root.c: builds the root and enters it. 0, or -1 with err. */
int root_enter(const struct plan *, struct err *);
/* etc.c: fills /etc below the descriptor of the new root. The trees that are
 * mounted there are opened by etc_open, before the new root covers anything. */
enum { ETC_TREES = 16 };
struct etc_tree {
	const char *path;
	int fd; /* owned; -1: the machine has no such folder */
};
void etc_open(struct etc_tree[ETC_TREES]);
int etc_build(
    const struct plan *, int root, struct etc_tree[ETC_TREES], struct err *);
/* Clones the mounts at a path, which must not lead over a link. Returns a
 * descriptor for move_mount(2), or -1 with errno. */
int root_tree(const char *path, bool readonly);
/* Attaches a tree at a path of the new root, making the folders on the way; as
 * a file if `file`. Closes the tree. 0, or -1 with errno. */
int root_attach(int root, int tree, const char *path, bool file);

/* filter.c: loads the list of refused system calls. 0, or -1 with err. */
int filter_load(struct err *);
/* ways.c: opens the ways to the network helper, with pid 1's capabilities. 0,
 * or -1 with err. */
int ways_open(const struct inside *, struct err *);
/* Answers one request of the second pair; false: the pair is closed. */
bool ways_dial(int dialer);
/* Loads the filter by which the program's connect(2) waits for an answer, and
 * sends its listener outside. 0, or -1 with err. */
int ways_listen(const struct inside *, struct err *);

/* program.c: takes the last rights and runs the program. Returns the errno of
 * execve, or reports to `channel` and returns 0. */
int program_run(const struct inside *, const char *slave, struct err *);

/* limits.c: resource limits of the program; cgroup: memory is limited already.
 * 0, or -1 with err. */
int limits_set(const struct plan *, bool cgroup, struct err *);

#endif
