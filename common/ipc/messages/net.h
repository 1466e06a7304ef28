/*
 * Connections of calls, between sandboxd-egress, sandboxd and peek. Also grants
 * that change while a call runs.
 */
#ifndef IPC_MESSAGES_NET_H
#define IPC_MESSAGES_NET_H

/* clang-format off */
#define IPC_MESSAGES_NET(M) \
M(240, NET_OPEN, net_open, REQ, SANDBOXD, EGRESS, OPEN, IPC_BLOB_MAX, "a runner begins a call that may connect; answered by OK or REFUSED") \
M(241, NET_GRANTS, net_grants, EVT, SANDBOXD, EGRESS, OPEN, IPC_BLOB_MAX, "what its server is granted from now on") \
M(242, NET_CLOSE, net_close, REQ, SANDBOXD, EGRESS, OPEN, 0, "the call is over: nothing of it connects any more") \
M(243, NET_REPORT, net_report, ANS, EGRESS, SANDBOXD, OPEN, 0, "answers NET_CLOSE: what it connected to") \
M(244, NET_EVENT, net_event, EVT, EGRESS, SANDBOXD, OPEN, 0, "a connection was refused, or a limit is used up") \
M(245, NET_CONNECT, net_connect, REQ, PEEK, EGRESS, OPEN, 0, "a runner called connect(2); answered by NET_CONNECTED or NET_FAILED") \
M(246, NET_CONNECTED, net_connected, ANS, EGRESS, PEEK, OPEN, 0, "the socket to put in place of the runner's") \
M(247, NET_FAILED, net_failed, ANS, EGRESS, PEEK, OPEN, 0, "connect(2) fails with this errno") \
M(248, PEEK_LINK, peek_link, EVT, SANDBOXD|POOL, POOL|PEEK, OPEN, 0, "peek's connection to egress, before its HELLO") \
M(249, PEEK_DOOR, peek_door, EVT, POOL, ZYGOTE|PEEK, OPEN, 0, "an end of the socket by which runners hand their listeners to peek; before all else") \
M(250, LISTENER, listener, EVT, RUNNER, PEEK, OPEN, 0, "a runner's seccomp listener, the only frame it ever sends there") \
M(251, REGRANT, regrant, REQ, ADMIND, SANDBOXD, OPEN, IPC_BLOB_MAX, "what a server is granted now, sealed by the vault: holds for the next connect of its running calls; answered by OK or REFUSED")

#define IPC_FIELDS_net_open(F, S) \
F(S, u64, net, "generation of the runner's slot: not used twice in a life of sandboxd") \
F(S, id, execution, "for the log") \
F(S, u32, connections, "limit: connections in all") \
F(S, u64, bytes, "limit: both directions together") \
F(S, u64, bytes_minute, "limit: likewise, in a minute") \
F(S, u32, requires_len, "bytes of the version's own list at the front of the blob") \
F(S, blob, hosts, "what the version declares, then what its server is granted: each a list of lines as common/request/netgrant.h spells them; both must cover a connection")

#define IPC_FIELDS_net_grants(F, S) \
F(S, u64, net, "as opened") \
F(S, blob, grants, "lines: replaces the second list of NET_OPEN")

#define IPC_FIELDS_net_close(F, S) F(S, u64, net, "as opened")

#define IPC_FIELDS_net_report(F, S) \
F(S, u64, net, "as opened") \
F(S, u64, bytes, "of all connections, both directions") \
F(S, u32, connections, "made or tried") \
F(S, u32, refused, "by policy") \
F(S, bytes, json, "array, NET_REPORT_MAX bytes at most: {host, address, port, protocol, verdict, reason, bytes_in, bytes_out, started_ms, duration_ms}")

#define IPC_FIELDS_net_event(F, S) \
F(S, u64, net, "as opened") \
F(S, u8, kind, "enum net_event") \
F(S, str, host, "name or address that was wanted, or empty") \
F(S, u16, port, "likewise, or 0") \
F(S, str, text, "one sentence: why, and what to do")

#define IPC_FIELDS_net_connect(F, S) \
F(S, u64, net, "of the listener it came by, never from the runner") \
F(S, u16, family, "of the runner's socket: AF_INET or AF_INET6") \
F(S, u16, type, "SOCK_STREAM or SOCK_DGRAM") \
F(S, u8, nonblocking, "1: do not wait until it is connected") \
F(S, bytes, address, "struct sockaddr as copied once, 128 bytes at most: foreign")

#define IPC_FIELDS_net_connected(F, S) \
F(S, u32, error, "0: connected; EINPROGRESS: it is connecting") \
F(S, fd, socket, "non-blocking; peek sets what the runner's had")

#define IPC_FIELDS_net_failed(F, S) F(S, u32, error, "errno")

#define IPC_FIELDS_peek_link(F, S) F(S, fd, link, "connected to egress")

#define IPC_FIELDS_peek_door(F, S) F(S, fd, door, "SOCK_SEQPACKET")

#define IPC_FIELDS_listener(F, S) \
F(S, u64, net, "generation, from FORK") \
F(S, fd, listener, "seccomp_unotify(2)")

#define IPC_FIELDS_regrant(F, S) \
F(S, id, server, "uuid; the execution of the binding") \
F(S, blob, context, "sealed, kind CONTEXT_GRANTS: CTX_GRANT lines")
/* clang-format on */

#endif
