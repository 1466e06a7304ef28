/*
 * The daemons: one request, one answer.
 */
#ifndef CALLS_H
#define CALLS_H

#include "ctl.h"

/* Connects to RUN_DIR/process/ctl.sock. fd, or -1 (stderr says why). */
int calls_open(const struct ctl *, const char *process, enum ipc_role);
/* Sends one request to one daemon. CTL_DONE: *answer is filled, of type `want`
 * (free it). Otherwise a sentence was printed on stderr and nothing is to be
 * freed. */
enum ctl_status calls_ask(const struct ctl *, const char *process,
    enum ipc_role, enum ipc_type, const void *msg, enum ipc_type want,
    struct ipc_frame *answer);
/* Does the same over calls_open's descriptor: for several requests. */
enum ctl_status calls_on(int fd, const char *process, enum ipc_role,
    enum ipc_type, const void *msg, enum ipc_type want,
    struct ipc_frame *answer);
/* Sends admind a request that is answered by ADMIN_JSON. *text gets the JSON
 * (initialised by this; free it in any case). */
enum ctl_status calls_json(
    const struct ctl *, enum ipc_type, const void *msg, struct buf *text);
/* Sends ADMIN_QUERY. *text gets the JSON (initialised by this; free it). */
enum ctl_status calls_query(
    const struct ctl *, const char *what, const char *id, struct buf *text);

/* Does the same with filters (TLV, admin_filter.h) and a cursor, or NULL. */
enum ctl_status calls_list(const struct ctl *, const char *what, const char *id,
    struct ipc_bytes filters, const char *cursor, struct buf *text);
/* Reads words of the form name=value as filters. 0, or -1 with a word on
 * stderr. */
int calls_filters(char **words, int n, struct buf *out);

#endif
