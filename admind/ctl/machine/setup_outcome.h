/*
 * The outcomes of a step of setup, and the longest path that a step shows.
 */
#ifndef SETUP_OUTCOME_H
#define SETUP_OUTCOME_H

enum { SETUP_PATH_MAX = 1024 };

/* SETUP_FAILED: the err says why, and what to do. */
enum setup_outcome { SETUP_DONE, SETUP_ALREADY, SETUP_FAILED };

#endif
