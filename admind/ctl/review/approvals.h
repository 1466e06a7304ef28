/* Shared by the approval queue's commands: a request's content. */
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

/* Fetches a request's content or, with base, that of the version that serves
 * instead of it; its pre-image is empty if there is none. CTL_DONE: free it. */
enum ctl_status approvals_fetch(
    const struct ctl *, const struct ipc_id *, bool base, struct content *out);
void approvals_free(struct content *);
/* Prints a request with its whole content and the hash, for people. */
enum ctl_status approvals_print(
    const struct ctl *, const struct content *, const char *id);

/* Appends the points to look at twice: earlier rejections and missing secrets,
 * by admind's word, and the marks that we find in the content. */
void approvals_beside(const struct content *, struct buf *);

/* Appends how requests for the same tool or name ended before, by admind's
 * word: a model whose request was rejected may ask again until a reviewer is
 * tired. */
void rejected_text(struct json_object *circumstances, struct buf *);

/* Appends a line for each secret that a version names and that its server
 * lacks, by admind's word: calls fail until it is set. */
void lacking_text(struct json_object *circumstances, struct buf *);

/* wheels.c: appends the facts beside a request for a module, as lines. */
void wheels_text(struct json_object *circumstances, struct buf *);

/* review.c */
/* Asks the vault whether this content (with its seal) was approved once.
 * CTL_DONE: SEAL_SAYS, free it; CTL_REFUSED: it was not. */
enum ctl_status review_verify(
    const struct ctl *, const struct content *, struct ipc_frame *says);
/* Approves the content with this hash (id, hash), or rejects the request (id,
 * reason). CTL_DONE: *state is the request's state. */
enum ctl_status review_decide(const struct ctl *, int fd, bool approve,
    const struct ipc_id *, const struct ipc_hash *, const char *reason,
    const char **state);
/* Prints how the content differs from the version that serves; nothing if it is
 * no version or (quiet) none serves. */
enum ctl_status review_diff(const struct ctl *, const struct ipc_id *,
    const struct content *, bool quiet);
/* diff, revoke, bulk, comments, comment */
bool review_has(const char *verb);
enum ctl_status review_command(const struct ctl *);
/* Prints version_diff.h's object, for people or with --json as it is. */
enum ctl_status review_print(const struct ctl *, const struct buf *json);

/* queue.c: approvals list, approvals review */
enum ctl_status queue_list(const struct ctl *);
enum ctl_status queue_command(const struct ctl *);

/* mcpboxctl approvals; policies */
enum ctl_status approvals_command(const struct ctl *);
enum ctl_status policies_command(const struct ctl *);

#endif
