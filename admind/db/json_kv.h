/* Functions that write ids, times and bytes as members of JSON objects. */
#ifndef JSON_KV_H
#define JSON_KV_H

#include "ipc.h"
#include "jsonw.h"

void json_kv_id(struct jsonw *, const char *name, const struct ipc_id *);
void json_kv_time(
    struct jsonw *, const char *name, uint64_t unix_us); /* 0: null */
void json_kv_bytes(struct jsonw *, const char *name, struct ipc_bytes);
void json_kv_hex(struct jsonw *, const char *name, struct ipc_bytes);

#endif
