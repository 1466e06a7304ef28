/*
 * The table of mcpboxctl's commands: dispatch, usage errors, help and the
 * completions of shells come from it.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdio.h>

#include "ctl.h"

struct command {
	const char *word;
	int min, max; /* number of words, with the command itself */
	enum ctl_status (*run)(const struct ctl *);
	const char *options; /* names with blanks between; "*": all options of
			      * lists */
	const char *line;    /* one line for help */
	const char *usage;   /* one form per line, without the program's name */
};

/* Returns the command, or NULL if there is none. */
const struct command *commands_find(const char *word);

/* Prints the usage of a command: the forms whose second word is `verb`, or all
 * if no form has it (or verb is NULL). */
void commands_usage(FILE *, const struct command *, const char *verb);

/* Prints the usage of every command. */
void commands_all(FILE *);

/* Prints help about one command, or (NULL) a line about each command. */
void commands_help(const struct command *);

/* Says on standard error that there is no such command, and names a command
 * with a similar name, if there is one. */
void commands_unknown(const char *word);

/* If `verb` is similar to a verb of the command, says on standard error that
 * the command has no verb `verb`, and names the similar one. */
void commands_unknown_verb(const struct command *, const char *verb);

#endif
