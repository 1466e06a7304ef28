/*
 * One log line for each event, to standard error: text with a `<N>` priority
 * prefix (sd-daemon(3)) or JSONL. Where standard error is the journal's, the
 * line goes to journald itself, with fields. Only daemon code logs; libraries
 * return errors.
 *
 * Untrusted text is escaped here: control characters, DEL, and invalid UTF-8
 * become \xNN, so that a line is always one line and no terminal is driven.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_LV_ERR = 3,
	LOG_LV_WARN = 4,
	LOG_LV_INFO = 6,
	LOG_LV_DEBUG = 7
}; /* syslog(3) severities */

enum log_format { LOG_TEXT, LOG_JSON };

/* Sets up the log. proc: shown in every line; borrowed for ever. */
void log_init(const char *proc, enum log_format, enum log_level max);

/* Sends lines from now on to journald's socket at `path` (JOURNAL_SOCKET) as
 * entries: MESSAGE (the line without <N>), PRIORITY, SYSLOG_IDENTIFIER
 * mcpbox-PROC, MCPBOX_EVENT, MCPBOX_EXECUTION_ID, MCPBOX_PRINCIPAL. A line goes
 * to standard error when the socket does not take it. Does nothing if
 * JOURNAL_STREAM does not name our standard error. Call it before
 * confinement. */
void log_journal(const char *path);

/* Escapes foreign text for one line of a terminal or a log, in the same way as
 * log lines. Writes at most len bytes to out, its NUL included. */
void log_escape(char *out, size_t len, const char *s, size_t n);

/* Logs an event. event: a stable snake_case name. The message is escaped as a
 * whole. */
void log_event(enum log_level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Logs an event of one execution and principal (each may be NULL). */
void log_call(enum log_level, const char *event, const char *execution_id,
    const char *principal, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Logs at ERR and exits 1. For start-up only. */
_Noreturn void log_fatal(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
