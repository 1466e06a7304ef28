/*
 * The messages between a service manager and its daemon: sd_notify(3),
 * sd_listen_fds(3), sd_watchdog_enabled(3), without libsystemd
 * (docs/decisions/0054).
 *
 * Without a manager that sends these messages (runit, a shell) nothing is
 * passed and every call here does nothing. The variables are read once, in
 * service_start, and taken out of the environment, so that no child takes them
 * as its own.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include <stddef.h>

struct event_base;

/* Reads NOTIFY_SOCKET, LISTEN_* and WATCHDOG_* and connects to the manager.
 * Call this before confinement, and before any other code opens a descriptor.
 * Exits with a message if the manager promises descriptors that are not
 * there. */
void service_start(void);

/* Returns the inherited descriptor that the manager gave this name
 * (FileDescriptorName=), or -1 if none was passed: then listen yourself. The
 * descriptor is close-on-exec and belongs to the caller; a second call for this
 * name exits. httpd_new_inherited checks its kind. If descriptors were passed
 * under other names only, or two under this name, the unit would serve no one:
 * exits with a message. */
int service_listener(const char *name);

/* Sends READY=1 with STATUS=, and from then on WATCHDOG=1 from the loop, twice
 * in the time after which the manager kills us. Call it when the process can
 * serve. Exits with a message if a descriptor was passed that the process did
 * not take. */
void service_ready(struct event_base *, const char *status);

/* Sends STATUS=, if it differs from the last one. The text is one line for a
 * person. Control characters are escaped, so it may quote foreign text. */
void service_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Sets say, which writes the status line. say is called every few seconds after
 * service_ready. So a process whose state changes often only counts between two
 * calls of say. say writes at most len bytes with NUL. Without a manager say is
 * not called. */
void service_status_from(
    void (*say)(char *buf, size_t len, void *arg), void *arg);

/* Sends STOPPING=1 with a STATUS=, and no longer calls the function of
 * service_status_from. Harmless when repeated. */
void service_stopping(void);

#endif
