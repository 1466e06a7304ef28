/*
 * Routes of the approval queue.
 */
#ifndef REVIEWS_H
#define REVIEWS_H

#include "web.h"

/* approvals.c */
void approval_get(struct call *);
void approve_post(struct call *);
void approval_diff_get(struct call *); /* diff.c */
void policies_get(struct call *);      /* review.c */
void policies_put(struct call *);
void bulk_post(struct call *); /* bulk.c */
void reject_post(struct call *);

#endif
