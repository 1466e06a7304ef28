/*
 * Sending ADMIN_ACTION to admind.
 */
#ifndef CALL_H
#define CALL_H

#include "ctl.h"

/* Does an action. id is "" if the action takes no id, seen is NULL if no hash
 * is sent, and body is JSON text. *answer gets the JSON answer. This function
 * initialises *answer; the caller frees it in any case. */
enum ctl_status call_action(const struct ctl *, const char *action,
    const char *id, const struct ipc_hash *seen, const char *body,
    struct buf *answer);
/* Does an action whose body has n members, given as words name=value. */
enum ctl_status call_words(const struct ctl *, const char *action,
    const char *id, const struct ipc_hash *seen, char *const *words, int n,
    struct buf *answer);
/* Runs mcpboxctl call. */
enum ctl_status call_command(const struct ctl *);

#endif
