/* The store writer's Landlock domain. */
#ifndef FENCE_H
#define FENCE_H

#include <stdbool.h>

/*
 * Restricts this process from now on. It may make directories in the store.
 * Below incoming, a directory of the store, it may also make and remove files.
 * It can change and remove nothing else, anywhere. Sets no_new_privs. Returns
 * false if this kernel has no Landlock that can do this (before Linux 5.19).
 */
bool fence_enter(int store, int incoming);

#endif
