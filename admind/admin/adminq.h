/*
 * ADMIN_QUERY: the tables of questions, one file per area (adminq_*.c). This
 * header is the interface for writing a question.
 *
 * A question's statement gives JSON made by PostgreSQL; nothing here changes
 * anything. Its parameters are, in this order:
 *    LIST    the form's filters as text ('' if not given), the cursor as text
 *            ('' for the first page), the limit as int8 (one more than the
 *            page: a last row that is not shown says that a page follows).
 *            Rows of (json text, cursor of this row).
 *    OBJECT  the id as uuid, then the form's filters. At most one row (json).
 *    NAMED   the id as text (two path parts, joined by /), then the filters.
 *    SINGLE  the filters alone. No row means not_found.
 *
 * A list may have several forms. A question uses the first form that takes all
 * given filters and whose `must` filters are all given. So each leading filter
 * has a statement of its own, and with it an index. If no form fits, the
 * question is refused with invalid_params.
 */
#ifndef ADMINQ_H
#define ADMINQ_H

#include "admin_filter.h"
#include "op.h"

enum { QUESTION_FILTERS_MAX = 12 };

enum question_shape {
	QUESTION_LIST,
	QUESTION_OBJECT,
	QUESTION_NAMED,
	QUESTION_SINGLE
};

/* The values in `must` and in `takes`. */
#define Q_MUST(FILTER) (1U << ADMIN_FILTER_##FILTER)
#define Q_TAKE(FILTER) (ADMIN_FILTER_##FILTER + 1)

struct question_form {
	unsigned must;
	/* parameters in order, ended by 0 */
	uint8_t takes[QUESTION_FILTERS_MAX + 1];
	struct db_stmt stmt;
	enum admin_role least; /* if higher than the question's */
};

struct question {
	const char *what; /* NULL ends a table */
	enum question_shape shape;
	enum admin_role least;
	const struct question_form *forms; /* the last has no statement */
	/* SINGLE: admind writes members of its own into an open object. The
	 * database's row follows as the member "counts", which is null without
	 * a database. */
	void (*around)(struct admind *, struct jsonw *);
	/* OBJECT, NAMED: writes members made from the row into an open object,
	 * instead of the row's JSON. 0 or -1. */
	int (*make)(const struct pg_result *, struct jsonw *, struct err *);
	/* LIST: the statement has a bool after the limit: whether the asker
	 * may read the arguments of calls (ADMIN_REVIEWER). */
	bool reads;
	/* SINGLE: writes members of admind's own into an open object, after
	 * those of the row's JSON object. */
	void (*beside)(
	    struct admind *, const struct pg_result *, struct jsonw *);
	/* The scope with which a script's key may ask. If it is not said here:
	 * SCRIPT_READ where a viewer may ask, else SCRIPT_NEVER. */
	enum script_scope scope;
};

/* Formats a timestamp column in a statement. */
#define ADMINQ_TIME(column)                      \
	"to_char(" column " AT TIME ZONE 'UTC'," \
	" 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"

/* Returns table i of all tables of questions, from 0; NULL after the last. */
const struct question *adminq_table(size_t i);

/* Each file has one table. A new table is also named in adminq.c. */
extern const struct question adminq_servers_questions[];
extern const struct question adminq_approvals_questions[];
extern const struct question adminq_records_questions[];
extern const struct question adminq_audit_questions[];
extern const struct question adminq_admin_questions[];
extern const struct question adminq_tokens_questions[];
extern const struct question adminq_secrets_questions[];
extern const struct question adminq_limits_questions[];
extern const struct question adminq_access_questions[];

#endif
