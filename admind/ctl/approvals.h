/*
 * What the approval queue's commands share: a request's content.
 */
#ifndef APPROVALS_H
#define APPROVALS_H

#include "ctl.h"
#include "ids.h"

struct content {
	struct ipc_frame frame;
	struct ipc_approval_content m; /* borrowed from the frame */
	struct ipc_hash hash;          /* of the pre-image, computed here */
	char hex[HEX32_LEN + 1];
	struct json_object *circumstances; /* NULL if they are no JSON */
};

/* A request's content, or (base) that of the version that serves instead of it;
 * its pre-image is empty if there is none. CTL_DONE: free it. */
enum ctl_status approvals_fetch(
    const struct ctl *, const struct ipc_id *, bool base, struct content *out);
void approvals_free(struct content *);

/*
 * Appends how requests for the same tool or name ended before, by admind's
 * word: a model that was told no once may ask again until somebody is tired.
 */
void rejected_text(struct json_object *circumstances, struct buf *);

/* wheels.c: what is told beside a request for a module, as lines. */
void wheels_text(struct json_object *circumstances, struct buf *);

/* review.c */
/* Does the vault say that this content (with its seal) was approved once?
 * CTL_DONE: SEAL_SAYS, free it; CTL_REFUSED: it was not. */
enum ctl_status review_verify(
    const struct ctl *, const struct content *, struct ipc_frame *says);
/* diff, revoke, bulk, comments, comment */
bool review_has(const char *verb);
enum ctl_status review_command(const struct ctl *);
/* version_diff.h's object, for people or with --json as it is. */
enum ctl_status review_print(const struct ctl *, const struct buf *json);

#endif
