/* Requests that wait, as one notification. No I/O and no clock. */
#ifndef NOTIFY_TEXT_H
#define NOTIFY_TEXT_H

#include "buf.h"
#include "bytes.h"
#include "db_rows.h"

enum {
	/* Requests that a notification names; the others are a number. A page
	 * of a phone shows about so many. */
	NOTIFY_LINES_MAX = 10
};

/* The columns of notification_take() (sql/migrations/0020_figures.sql). */
enum notify_column {
	NOTIFY_C_TARGET,
	NOTIFY_C_ID,
	NOTIFY_C_LINE,
	NOTIFY_C_ITEM,
	NOTIFY_C_TOTAL,
	NOTIFY_C_SECRET,
	NOTIFY_C_NOTIFICATION
};

/* Writes the arguments of the run (mcpbox_notify.py): {"id", "at", "title",
 * "text", "link", "data"}. id: of the notification. at_us: Unix time. panel:
 * the panel's URL without a slash at its end; empty: no link. rows: NULL: the
 * text of a test. Without memory out fails. */
void notify_text_put(const struct ipc_id *id, uint64_t at_us,
    struct ipc_bytes panel, const struct pg_result *rows, struct buf *out);

#endif
