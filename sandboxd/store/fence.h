/* The store writer's Landlock domain. */
#ifndef FENCE_H
#define FENCE_H

#include <stdbool.h>

/*
 * Lets this process, from now on, make directories in the store, and below
 * incoming (a directory of it) files too, and remove them there; it changes and
 * removes nothing else, anywhere. Sets no_new_privs. false: this kernel has no
 * Landlock that can do it (before Linux 5.19).
 */
bool fence_enter(int store, int incoming);

#endif
