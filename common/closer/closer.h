/*
 * The closer: a process that closes sockets for the process that started it,
 * whatever the close costs (rights.h). The closer has no other descriptor but
 * standard error, no capability and a filter of its own. It ends with the
 * process that started it.
 */
#ifndef CLOSER_H
#define CLOSER_H

#include "err.h"

/*
 * If the kernel can't refuse descriptors, starts the closer and gives its
 * socket to rights.c. Else does nothing. Called once, after proc_start and
 * before confine_self. 1: started; 0: not needed; -1 with err.
 */
int closer_start(struct err *);

#endif
