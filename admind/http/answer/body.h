/*
 * Request bodies: one JSON object with a closed set of string members.
 */
#ifndef BODY_H
#define BODY_H

#include "web.h"

struct json_object;

/* Parses the body, which must be a JSON object. 0 with *out, which the caller
 * releases with json_object_put; or -1, and the call is answered and gone. */
int body_object(struct call *, struct json_object **out);
/* Does what body_object does. Each member of the object must be one of names
 * (NULL-terminated). */
int body_parse(
    struct call *, const char *const *names, struct json_object **out);
/* Reads a required string member, borrowed from the object. 0, or -1 with
 * err. */
int body_str(
    struct json_object *, const char *name, struct ipc_bytes *, struct err *);

#endif
