/* Answers with the object or list that was asked for. Each function but
 * reply_headers and reply_cookie ends the call. */
#ifndef REPLY_H
#define REPLY_H

#include "web.h"

/* Answers with admind's JSON as it is, if it is JSON; tagged: with its SHA-256
 * as ETag. */
void reply_admind(struct call *, struct ipc_frame *, bool tagged);
void reply_json(struct call *, int status, const struct buf *);
void reply_empty(struct call *, int status);
/* Sets the fields that every answer has. */
void reply_headers(struct httpd_req *);
/* Adds Set-Cookie for a cookie of ours. path: its path by http; at an https
 * origin the path is /. value: base64url, DEVICE_TEXT_MAX bytes at most. */
void reply_cookie(struct call *, const char *name, struct ipc_bytes value,
    const char *path, uint64_t seconds);

#endif
