/* mcpboxctl's options. One table lists them. They are read from the command
 * line, refused if a command does not take them, and shown by help. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdio.h>

#include "ctl.h"

struct command;

struct options {
	const char *file;   /* -f, or NULL */
	bool help, version; /* were asked for */
	bool wrong;         /* an option was wrong, and stderr said so */
	uint64_t given;     /* one bit for each given option */
};

/* Reads all options into *ctl and *options, and the other words into *ctl. */
void options_read(struct ctl *, struct options *, int argc, char **argv);

/* Tells whether an option was given that the command does not take. Names each
 * such option on stderr. */
bool options_refused(const struct options *, const struct command *);

/* Prints the options that a command takes (NULL: all options), one per line. */
void options_help(FILE *, const struct command *);

#endif
