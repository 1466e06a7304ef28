/*
 * Questions about the audit log (adminq.h).
 */
#include "adminq.h"

/* clang-format off */
/* row: the bytes that were hashed behind prev_hash, for verification */
static const struct question_form audit[] = {
    {0, {Q_TAKE(ACTION), Q_TAKE(ACTOR)},
	{"adminq_audit",
	    "SELECT json_build_object('seq', l.seq, 'at', " ADMINQ_TIME(
		"l.at") ","
			" 'actor', l.actor, 'action', l.action, 'subject', "
			"l.subject,"
			" 'detail', l.detail::json, 'prev_hash', "
			"encode(l.prev, 'hex'),"
			" 'hash', encode(l.hash, 'hex'), 'row', "
			"encode(mcpbox.audit_row("
			"l.seq, l.at, l.actor, l.action, l.subject, l.detail), "
			"'hex'),"
			" 'signature', encode(x.signature, 'hex'))::text, "
			"l.seq::text"
			" FROM mcpbox.audit_log l"
			" LEFT JOIN mcpbox.audit_anchors x ON x.seq = l.seq"
			" WHERE ($1::text = '' OR l.action = $1::text)"
			" AND ($2::text = '' OR l.actor = $2::text)"
			" AND ($3::text = '' OR l.seq < $3::text::int8)"
			" ORDER BY l.seq DESC LIMIT $4::int8",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_audit_questions[] = {
    {"audit", QUESTION_LIST, ADMIN_REVIEWER, audit, NULL},
    {0},
};
