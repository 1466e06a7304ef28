/* The content of a request, and functions that the commands of the approval
 * queue share. */
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

/* Fetches the content of a request or, with base, of the serving version that
 * the request would replace. The pre-image is empty if no version serves. After
 * CTL_DONE call approvals_free. */
enum ctl_status approvals_fetch(
    const struct ctl *, const struct ipc_id *, bool base, struct content *out);
void approvals_free(struct content *);
/* Prints a request with its whole content and the hash, for people. */
enum ctl_status approvals_print(
    const struct ctl *, const struct content *, const char *id);

/* Appends the points that deserve a second look: earlier rejections and missing
 * secrets, as admind reports them, and the marks that we find in the
 * content. */
void approvals_beside(const struct content *, struct buf *);

/* Appends how earlier requests for the same tool or name ended, as admind
 * reports it. A model whose request was rejected may ask again until a reviewer
 * is tired. */
void rejected_text(struct json_object *circumstances, struct buf *);

/* Appends a line for each secret that a version names and that its server
 * lacks, as admind reports it. Calls fail until the secret is set. */
void lacking_text(struct json_object *circumstances, struct buf *);

/* wheels.c: appends lines with admind's facts about a requested module. */
void wheels_text(struct json_object *circumstances, struct buf *);

/* review.c */
/* Asks the vault whether this content (with its seal) was ever approved.
 * CTL_DONE: *says is SEAL_SAYS, free it. CTL_REFUSED: the content was not
 * approved. */
enum ctl_status review_verify(
    const struct ctl *, const struct content *, struct ipc_frame *says);
/* Approves the content with this hash (id, hash), or rejects the request (id,
 * reason). CTL_DONE: *state is the request's state. */
enum ctl_status review_decide(const struct ctl *, int fd, bool approve,
    const struct ipc_id *, const struct ipc_hash *, const char *reason,
    const char **state);
/* Prints how the content differs from the version that serves. Prints nothing
 * if the content is no version, or (quiet) if no version serves. */
enum ctl_status review_diff(const struct ctl *, const struct ipc_id *,
    const struct content *, bool quiet);
/* Tells whether review_command runs this verb: diff, revoke, bulk, comments or
 * comment. */
bool review_has(const char *verb);
enum ctl_status review_command(const struct ctl *);
/* Prints an object of version_diff.h: for people, or unchanged with --json. */
enum ctl_status review_print(const struct ctl *, const struct buf *json);

/* queue.c: approvals list, approvals review */
enum ctl_status queue_list(const struct ctl *);
enum ctl_status queue_command(const struct ctl *);

/* mcpboxctl approvals; policies */
enum ctl_status approvals_command(const struct ctl *);
enum ctl_status policies_command(const struct ctl *);

#endif
