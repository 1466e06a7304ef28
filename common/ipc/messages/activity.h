/* Messages by which admind reports its work: live tail and metrics. */
#ifndef IPC_MESSAGES_ACTIVITY_H
#define IPC_MESSAGES_ACTIVITY_H

/* clang-format off */
#define IPC_MESSAGES_ACTIVITY(M) \
M(210, ACTIVITY_FOLLOW, activity_follow, REQ, WEB|CTL, ADMIND, OPEN, 0, "be told what happens from now on; OK ends it, after a while: then ask again") \
M(211, ACTIVITY_LINES, activity_lines, PART, ADMIND, WEB|CTL, OPEN, 0, "what happened since the last") \
M(212, ACTIVITY_LEAVE, activity_leave, EVT, WEB|CTL, ADMIND, OPEN, 0, "nobody listens any more") \
M(213, METRICS_GET, metrics_get, REQ, WEB, ADMIND, OPEN, 0, "counters and gauges of this node, and of the database") \
M(214, METRICS, metrics, ANS, ADMIND, WEB, OPEN, IPC_BLOB_MAX, "them, in Prometheus' text format")

#define IPC_FIELDS_activity_follow(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url, or key: and that of a script's key; empty from CTL") \
F(S, u64, stream, "the asker's number for it, not used by another of its streams") \
F(S, u8, calls, "1: also each call's end; 0: the activity log alone")

#define IPC_FIELDS_activity_lines(F, S) \
F(S, u64, dropped, "so many before these were too many") \
F(S, bytes, lines, "JSON objects, a line feed behind each")

#define IPC_FIELDS_activity_leave(F, S) F(S, u64, stream, "as ACTIVITY_FOLLOW said")

#define IPC_FIELDS_metrics_get(F, S)

#define IPC_FIELDS_metrics(F, S) F(S, blob, text, "text/plain; version=0.0.4")
/* clang-format on */

#endif
