/*
 * Messages about telemetry and notifications (docs/decisions/0107, 0112): the
 * word of a run of ours that sent something, and a test by an administrator.
 */
#ifndef IPC_MESSAGES_TELEMETRY_H
#define IPC_MESSAGES_TELEMETRY_H

/* clang-format off */
#define IPC_MESSAGES_TELEMETRY(M) \
M(320, CHECK_SENT, check_sent, REQ, ADMIND, CHECK, OPEN, RESULT_MAX, "what did the collector or the target say to this run? CHECK_OK carries enum sent_field; CHECK_ERRORS says what went wrong") \
M(321, NOTIFY_TEST, notify_test, REQ, WEB|CTL, ADMIND, OPEN, 0, "send a test to a target of notifications; answered by ADMIN_JSON when it was sent or not, or by REFUSED")

#define IPC_FIELDS_check_sent(F, S) F(S, blob, result, "what the runner answered (foreign JSON)")

#define IPC_FIELDS_notify_test(F, S) \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL") \
F(S, str, target, "its name in the access document")
/* clang-format on */

#endif
