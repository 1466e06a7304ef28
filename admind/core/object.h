/* Tools, prompts, resources and templates. */
#ifndef OBJECT_H
#define OBJECT_H

#include <stdbool.h>
#include "buf.h"
#include "failure.h"
#include "ipc.h"

/* Returns whether the method calls this kind of object. object: the kind's word
 * in the database ("tool", "prompt", ...). */
bool object_fits(struct ipc_bytes object, enum call_method);
/* Returns the failure for a name that no object of the method's kinds has.
 * *sentence, a static string, describes the failure. */
enum failure object_unknown(enum call_method, const char **sentence);
/* Writes `"requiredCapabilities":{...}` (MCP's ClientCapabilities), for the
 * data of a -32021 error. mask: of enum client_capability. The text ends in a
 * NUL. */
void object_required(uint32_t mask, struct buf *out);

#endif
