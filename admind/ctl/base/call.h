/*
 * ADMIN_ACTION.
 */
#ifndef CALL_H
#define CALL_H

#include "ctl.h"

/* Does an action; id: "" for none, seen: NULL for none, body: JSON text. The
 * JSON answer is in *answer (initialised by this; free it). */
enum ctl_status call_action(const struct ctl *, const char *action,
    const char *id, const struct ipc_hash *seen, const char *body,
    struct buf *answer);
/* Does the same with the body's members as n words name=value. */
enum ctl_status call_words(const struct ctl *, const char *action,
    const char *id, const struct ipc_hash *seen, char *const *words, int n,
    struct buf *answer);
/* mcpboxctl call */
enum ctl_status call_command(const struct ctl *);

#endif
