/*
 * egress' two listeners. sandboxd uses the first to open and close nets, peek
 * the second to ask for connections.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include "egress.h"

struct control;

/* Listens for sandboxd and for peek. Both connections must come from the user
 * `sandboxd`. NULL with why. */
struct control *control_open(struct egress *, uid_t sandboxd, struct err *);
void control_close(struct control *);

#endif
