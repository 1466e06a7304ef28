/*
 * mcpboxctl's options: one table of them, read from the command line, refused
 * where a command takes none such, and told by help.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdio.h>

#include "ctl.h"

struct command;

struct options {
	const char *file;   /* -f, or NULL */
	bool help, version; /* were asked for */
	bool wrong;         /* an option was: it was said */
	uint64_t given;     /* a bit each, for options_refused */
};

/* Reads all options into *ctl and *options, and leaves the words in *ctl. */
void options_read(struct ctl *, struct options *, int argc, char **argv);

/* Is an option among them that the command does not take? Says which one. */
bool options_refused(const struct options *, const struct command *);

/* Prints the options that a command takes, a line each. */
void options_help(FILE *, const struct command *);

#endif
