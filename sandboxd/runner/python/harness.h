/* The Python part of the runner as text (harness/ *.py, made by embed.py). */
#ifndef HARNESS_H
#define HARNESS_H

struct harness_module {
	const char *name;          /* as it is imported */
	const unsigned char *text; /* UTF-8, NUL-terminated */
};

/* Ends with a NULL name. A module comes after the modules that it imports. */
extern const struct harness_module harness_modules[];

#endif
