/*
 * Commands that list, show and change what administrators keep.
 */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "ctl.h"

enum ctl_status secret_command(const struct ctl *);
enum ctl_status limits_command(const struct ctl *);
enum ctl_status openapi_command(const struct ctl *);
enum ctl_status lives_command(const struct ctl *);
enum ctl_status modules_command(const struct ctl *);
enum ctl_status settings_command(const struct ctl *);
enum ctl_status rates_command(const struct ctl *);
enum ctl_status breakers_command(const struct ctl *);
enum ctl_status audit_command(const struct ctl *);
enum ctl_status administrators_command(const struct ctl *);
enum ctl_status passkeys_command(const struct ctl *);
enum ctl_status executions_command(const struct ctl *);
enum ctl_status activity_command(const struct ctl *);
enum ctl_status tokens_command(const struct ctl *);
enum ctl_status script_keys_command(const struct ctl *);
enum ctl_status access_command(const struct ctl *);
enum ctl_status identities_command(const struct ctl *);
enum ctl_status notifications_command(const struct ctl *);
enum ctl_status export_command(const struct ctl *);
enum ctl_status import_command(const struct ctl *);
enum ctl_status transfer_key_command(const struct ctl *);

/* Prints all items of the list `what` that pass the filters, in the columns of
 * the list `layout`. With --json each whole item is one line. */
enum ctl_status audit_export(const struct ctl *, const char *what,
    const char *layout, struct ipc_bytes filters);

/* Runs mcpboxctl audit verify. */
enum ctl_status verify_run(const struct ctl *);

/* Appends a whole file (`-`: standard input) to *out. CTL_DONE; otherwise
 * stderr says why: the file can't be read, or *out can't hold it. */
enum ctl_status transfer_read(const char *path, struct buf *out);

#endif
