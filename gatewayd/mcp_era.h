/* Finds the era of a message and checks the rules of that era that come before
 * its parameters: steps 5 to 9 of the ladder. Internal to mcp_request.c. */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include "mcp_request.h"

/* True if the message claims an era by the protocol version in params._meta. */
bool mcp_era_claimed(struct ipc_bytes member);
/* Runs steps 5 to 9; sets era, revision and envelope fields. 0, or -1 with
 * m->error. */
int mcp_era_check(
    const struct mcp_headers *, const char *method, struct mcp_message *m);

/* Runs step 12 on the parameters of m->method; faults are in m->error. */
void mcp_params_read(struct mcp_message *m);

/* Adds a fault at the JSON pointer within/name (name: decoded, NULL: within
 * itself), with the text that corrects it. More faults may follow. Always
 * -1. */
int mcp_fault(struct mcp_message *, enum failure, const char *within,
    const char *name, const char *fix);
/* Adds a fault for each member of this object that the message's method and
 * revision don't have. within: "" for params, or the member of params that the
 * object is. */
void mcp_member_check(
    struct mcp_message *, const char *within, struct ipc_bytes object);

/* Shared by these files: slices and their types. */
int mcp_era_fail(
    struct mcp_error *, enum failure, int status, const char *message);
bool mcp_era_get(
    struct ipc_bytes object, const char *name, struct ipc_bytes *out);
/* The same, but null counts as absent: several clients write null for an
 * optional member that they have no value for (mcp.el, Go clients with a nil
 * pointer). */
bool mcp_era_given(
    struct ipc_bytes object, const char *name, struct ipc_bytes *out);
bool mcp_era_is_null(struct ipc_bytes); /* or absent */
bool mcp_era_is_object(struct ipc_bytes);
bool mcp_era_is_id(struct ipc_bytes);
/* Reads clientInfo's name and version into m->client. 0 or -1. */
int mcp_era_client(struct ipc_bytes info, struct mcp_message *m);

#endif
