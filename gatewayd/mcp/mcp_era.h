/*
 * The steps of the ladder below mcp_request.c: the era of a message and its
 * rules (5 to 9), parameters (12), faults. Internal to the files mcp_*.c.
 */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include "mcp_request.h"

/* Does the message claim an era by params._meta's protocol version? */
bool mcp_era_claimed(struct ipc_bytes member);
/* Steps 5 to 9; sets era, revision and envelope fields. 0, or -1: m->error. */
int mcp_era_check(
    const struct mcp_headers *, const char *method, struct mcp_message *m);

/* Step 12: the parameters of m->method; m->error tells what is wrong. */
void mcp_params_read(struct mcp_message *m);

/* A fault at the JSON pointer within/name (name: decoded, NULL: within itself),
 * with what to write instead; more of them may follow. Always -1. */
int mcp_fault(struct mcp_message *, enum failure, const char *within,
    const char *name, const char *fix);
/* A fault for each member of this object that the message's method and revision
 * don't have. within: "" for params, or its member that the object is. */
void mcp_member_check(
    struct mcp_message *, const char *within, struct ipc_bytes object);

/* A step of the ladder is broken, and no other fault is looked for. Keeps the
 * first one. Always -1. */
int mcp_fault_set(
    struct mcp_error *, enum failure, int status, const char *message);
/* clientInfo's name and version into m->client. 0 or -1. */
int mcp_params_client(struct ipc_bytes info, struct mcp_message *m);
/* Which capabilities a client's object declares: mask of enum
 * client_capability. The object may be empty (n = 0). */
uint32_t mcp_params_declared(struct ipc_bytes capabilities);
/* 0 debug to 7 emergency by a JSON string; -1: none of them. */
int mcp_params_log_level(struct ipc_bytes json);

/* Decodes a header value that may be in the form =?base64?...?=. 0 and a
 * NUL-terminated text without NUL inside, or -1. */
int mcp_header_decode(const char *, char *out, size_t size);

#endif
