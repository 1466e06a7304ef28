/* Tools, prompts, resources and templates. */
#ifndef OBJECT_H
#define OBJECT_H

#include <stdbool.h>
#include "buf.h"
#include "failure.h"
#include "ipc.h"

/* Is this object (its name in the database) what the method calls? */
bool object_fits(struct ipc_bytes object, enum call_method);
/* The failure of a name that the method does not have, and its sentence. */
enum failure object_unknown(enum call_method, const char **sentence);
/* `"requiredCapabilities":{...}`, MCP's ClientCapabilities: for the data of a
 * -32021 error. mask: of enum client_capability. The text ends in a NUL. */
void object_required(uint32_t mask, struct buf *out);

#endif
