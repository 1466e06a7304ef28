/*
 * Requests to the daemons. Each request has one answer.
 */
#ifndef CALLS_H
#define CALLS_H

#include "ctl.h"

/* Connects to RUN_DIR/process/ctl.sock. fd, or -1 (stderr says why). */
int calls_open(const struct ctl *, const char *process, enum ipc_role);
/*
 * Sends one request to one daemon. On CTL_DONE *answer holds the answer, which
 * the caller frees. The answer has the type `want`, or IPC_HALF_APPROVED if
 * `want` is IPC_OK. Otherwise a sentence was printed on stderr and nothing is
 * to be freed.
 */
enum ctl_status calls_ask(const struct ctl *, const char *process,
    enum ipc_role, enum ipc_type, const void *msg, enum ipc_type want,
    struct ipc_frame *answer);
/* Does as calls_ask() over a descriptor of calls_open(), so that several
 * requests can use one connection. */
enum ctl_status calls_on(int fd, const char *process, enum ipc_role,
    enum ipc_type, const void *msg, enum ipc_type want,
    struct ipc_frame *answer);
/* Prints on stderr why a daemon refused, and the next step. Returns
 * CTL_REFUSED. */
enum ctl_status calls_refused(const struct ipc_refused *);
/* Sends admind a request that is answered by ADMIN_JSON. *text gets the JSON
 * (initialised by this; free it in any case). */
enum ctl_status calls_json(
    const struct ctl *, enum ipc_type, const void *msg, struct buf *text);
/* Sends ADMIN_QUERY with the filters and the cursor of the command line. *text
 * gets the JSON (initialised by this; free it in any case). */
enum ctl_status calls_query(
    const struct ctl *, const char *what, const char *id, struct buf *text);

/* Does as calls_query() with these filters (TLV, admin_filter.h) and this
 * cursor (NULL: the first page). */
enum ctl_status calls_list(const struct ctl *, const char *what, const char *id,
    struct ipc_bytes filters, const char *cursor, struct buf *text);
/* Reads n words of the form name=value as filters, and appends them to *out. 0,
 * or -1 (stderr says why). */
int calls_filters(char **words, int n, struct buf *out);

#endif
