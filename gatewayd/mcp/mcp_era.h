/* Finds the era of a message and checks the rules of that era that come before
 * its parameters: steps 5 to 9 of the ladder (mcp_request.h). Internal to
 * mcp_request.c. */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include "mcp_request.h"

/* True if the message names a protocol version in params._meta. */
bool mcp_era_claimed(struct ipc_bytes member);
/* Runs steps 5 to 9 of the ladder. Sets era, revision and envelope fields. 0,
 * or -1 with m->error. */
int mcp_era_check(
    const struct mcp_headers *, const char *method, struct mcp_message *m);

/* Runs step 12 on the parameters of m->method; faults are in m->error. */
void mcp_params_read(struct mcp_message *m);

/* Adds a fault at the JSON pointer "within/name", with the text that corrects
 * it. name: decoded; NULL: the pointer is `within` alone. More faults may
 * follow. Returns -1. */
int mcp_fault(struct mcp_message *, enum failure, const char *within,
    const char *name, const char *fix);
/* Adds a fault for each member of this object that the message's method and
 * revision don't have. within: "" if the object is params, else the object's
 * name in params. */
void mcp_member_check(
    struct mcp_message *, const char *within, struct ipc_bytes object);

/* Notes the failure of a step of the ladder, after which no faults are
 * collected. Keeps only the first failure. Returns -1. */
int mcp_fault_set(
    struct mcp_error *, enum failure, int status, const char *message);
/* Reads clientInfo's name and version into m->client. 0 or -1. */
int mcp_params_client(struct ipc_bytes info, struct mcp_message *m);
/* Returns the capabilities that a client's capabilities object declares: a mask
 * of enum client_capability. The object may be empty (n = 0). */
uint32_t mcp_params_declared(struct ipc_bytes capabilities);
/* Reads a log level from a JSON string: 0 debug to 7 emergency, or -1. */
int mcp_params_log_level(struct ipc_bytes json);

/* Decodes a header value that may be in the form =?base64?...?=. 0 and a
 * NUL-terminated text without NUL inside, or -1. */
int mcp_header_decode(const char *, char *out, size_t size);

#endif
