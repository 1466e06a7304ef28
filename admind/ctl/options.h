/* mcpboxctl's options: one table of them, read from the command line, refused
 * if a command does not take them, and shown by help. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdio.h>

#include "ctl.h"

struct command;

struct options {
	const char *file;   /* -f, or NULL */
	bool help, version; /* were asked for */
	bool wrong;         /* an option was wrong, and stderr said so */
	uint64_t given;     /* a bit each, for options_refused */
};

/* Reads all options into *ctl and *options, and leaves the words in *ctl. */
void options_read(struct ctl *, struct options *, int argc, char **argv);

/* True if one of them is an option that the command does not take; says which
 * one. */
bool options_refused(const struct options *, const struct command *);

/* Prints the options that a command takes, a line each. */
void options_help(FILE *, const struct command *);

#endif
