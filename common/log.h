/*
 * One log line an event, to standard error: text with a `<N>` priority prefix
 * (sd-daemon(3)) or JSONL. Only daemon code logs; libraries return errors.
 *
 * Untrusted text is escaped here: control characters, DEL, and invalid UTF-8
 * become \xNN, so that a line is always one line and no terminal is driven.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

enum log_level {
	LOG_LV_ERR = 3,
	LOG_LV_WARN = 4,
	LOG_LV_INFO = 6,
	LOG_LV_DEBUG = 7
}; /* syslog(3) severities */

enum log_format { LOG_TEXT, LOG_JSON };

/* proc: shown in every line; borrowed for ever. */
void log_init(const char *proc, enum log_format, enum log_level max);

/* event: a stable snake_case name. The message is escaped as a whole. */
void log_event(enum log_level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, about one execution and principal (each may be NULL). */
void log_call(enum log_level, const char *event, const char *execution_id,
    const char *principal, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Logs at ERR and exits 1. For start-up only. */
_Noreturn void log_fatal(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
