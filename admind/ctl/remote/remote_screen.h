/*
 * The screen of `remote check`.
 */
#ifndef REMOTE_SCREEN_H
#define REMOTE_SCREEN_H

#include "remote_judge.h"

struct remote_screen {
	const char *name;
	const struct remote_way *way;
	const struct remote_row *rows;
	size_t n;
	bool right; /* every step was looked at that could be, and is right */
};

/* Prints a row for each step, in the terminal's width, and a last sentence. A
 * step that is wrong has its remedy below it. */
enum ctl_status remote_screen_show(const struct remote_screen *);

/* Prints the same as one JSON object. */
enum ctl_status remote_screen_json(const struct remote_screen *);

#endif
