/*
 * A process that closes sockets for the one that started it, whatever it costs
 * (rights.h). It has no other descriptor, no capability and a filter of its
 * own; it ends with the one that started it.
 */
#ifndef CLOSER_H
#define CLOSER_H

#include "err.h"

/*
 * Once, after proc_start and before confine_self: where the kernel can't refuse
 * descriptors, starts that process and tells rights.c; elsewhere it does
 * nothing. 1: started; 0: not needed; -1 with err.
 */
int closer_start(struct err *);

#endif
