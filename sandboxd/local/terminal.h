/*
 * The user's terminal, while the program has one of its own: input and output
 * are passed on, the size follows.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <termios.h>

#include <stdbool.h>
#include <stddef.h>

enum { TERMINAL_BYTES = 16384 };

struct terminal {
	int master;   /* owned; -1: the program has no terminal of its own */
	bool raw;     /* the user's terminal is in raw mode */
	bool hung_up; /* the user's terminal is gone */
	struct termios saved;
	char input[TERMINAL_BYTES]; /* not yet written to the master */
	size_t ninput;
};

/* Takes the master over: copies mode and size of the user's terminal to it. */
void terminal_open(struct terminal *, int master);
/* Sets the user's terminal to raw mode, and back. */
void terminal_raw(struct terminal *);
void terminal_restore(struct terminal *);
/* Copies the size. The kernel then signals SIGWINCH inside. */
void terminal_size(const struct terminal *);
/* Passes on the bytes that can be read without waiting. terminal_output returns
 * whether some came. */
void terminal_input(struct terminal *);
void terminal_flush(struct terminal *);
bool terminal_output(struct terminal *);
/* Passes on all output that is left, restores the terminal and closes. */
void terminal_close(struct terminal *);

#endif
