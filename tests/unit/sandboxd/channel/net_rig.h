/*
 * Calls that may connect, with a scripted egress beside rig.h's pool and
 * runner. Every call declares api.example and is granted it at port 443; its
 * limits are 9 connections, 5000 bytes, 6000 a minute.
 */
#ifndef NET_RIG_H
#define NET_RIG_H

#include "rig.h"

extern int net_rig_egress;                 /* our end of egress' connection */
extern const struct ipc_id net_rig_server; /* of every call; granted by 7 */

int net_rig_setup(void **state);
int net_rig_teardown(void **state);
void net_rig_egress_up(void);
void net_rig_egress_down(void);

struct held *net_rig_connecting(uint64_t timeout_ms);
/* RUN of one. */
struct ipc_id net_rig_run(uint64_t timeout_ms);
/* Its runner is forked, with the network, and ready. */
void net_rig_forked(void);
/* NET_OPEN of the present runner, with these grants; its request. */
uint64_t net_rig_take_open(const char *grants);
void net_rig_answer_ok(uint64_t request);
/* From RUN to a tool that runs. */
void net_rig_to_running(void);
/* NET_EVENT of the present runner. */
void net_rig_tell(
    uint8_t kind, const char *host, uint16_t port, const char *text);
/* Takes NET_CLOSE and reports this: 3 connections, 1 refused, 77 bytes. */
void net_rig_report(const char *json);
/* The tool's error, and its runner's end. */
void net_rig_say_error(enum failure);
void net_rig_end_runner(void);

/* What gateway and admind get. text: in the body, which has nothing of the
 * network if it is NULL. */
void net_rig_take_result(enum outcome, enum failure, const char *text);
void net_rig_take_warning(const char *text);
/* connections 0: without a report. */
void net_rig_take_record(struct ipc_id, enum outcome, enum failure,
    const char *network, uint32_t connections);

#endif
