/*
 * A process that closes sockets for the process that started it, whatever the
 * close costs (rights.h). It has no other descriptor, no capability and a
 * filter of its own; it ends with the process that started it.
 */
#ifndef CLOSER_H
#define CLOSER_H

#include "err.h"

/*
 * Called once, after proc_start and before confine_self. Where the kernel can't
 * refuse descriptors, starts that process and tells rights.c; elsewhere does
 * nothing. 1: started; 0: not needed; -1 with err.
 */
int closer_start(struct err *);

#endif
