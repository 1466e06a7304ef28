/*
 * Messages about telemetry (docs/decisions/0107): the word of a run of ours
 * that sent spans and metrics.
 */
#ifndef IPC_MESSAGES_TELEMETRY_H
#define IPC_MESSAGES_TELEMETRY_H

/* clang-format off */
#define IPC_MESSAGES_TELEMETRY(M) \
M(320, CHECK_SENT, check_sent, REQ, ADMIND, CHECK, OPEN, RESULT_MAX, "what did the collector say to this run? CHECK_OK carries enum sent_field; CHECK_ERRORS says what went wrong")

#define IPC_FIELDS_check_sent(F, S) F(S, blob, result, "what the runner answered (foreign JSON)")
/* clang-format on */

#endif
