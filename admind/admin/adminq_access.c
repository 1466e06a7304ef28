/*
 * Questions about the access document, and about people with signed tokens
 * (adminq.h; docs/decisions/0090).
 */
#include <string.h>

#include "access.h"
#include "adminq.h"

/* Writes whether the document that the row shows is the one in force. The
 * second column is that document's SHA-256, or null. */
static void
in_force(struct admind *a, const struct pg_result *rows, struct jsonw *w)
{
	struct ipc_bytes digest = db_bytes(rows, 0, 1);
	struct ipc_hash sha256;

	if (db_null(rows, 0, 1) || digest.n != sizeof(sha256.b)) {
		document_json(a, NULL, w);
		return;
	}
	memcpy(sha256.b, digest.p, digest.n);
	document_json(a, &sha256, w);
}

/* clang-format off */
/*
 * Gives people by state, withdrawn ones by an index of their own: a few
 * withdrawn ones are found among many others. Each statement has two parts, and
 * the state ($1) leaves one part without rows. `only` is a further
 * condition.
 */
#define PART(state, condition, only, cursor, limit)                     \
	"(SELECT mcpbox.identity_json(i), i.principal AS p"             \
	" FROM mcpbox.identities i WHERE $1::text " state " AND i.withdrawn_at " \
	condition only " AND i.principal > $" cursor "::text"           \
	" ORDER BY i.principal LIMIT $" limit "::int8)"
#define BY_STATE(only, cursor, limit)                                \
	"SELECT * FROM ("                                            \
	PART("= 'withdrawn'", "IS NOT NULL", only, cursor, limit)    \
	" UNION ALL "                                                \
	PART("= 'active'", "IS NULL", only, cursor, limit)           \
	") x ORDER BY p LIMIT $" limit "::int8"
#define ITEM "SELECT mcpbox.identity_json(i), i.principal FROM mcpbox.identities i"

static const struct question_form access[] = {
    {0, {0},
	{"adminq_access",
	    "SELECT mcpbox.access_json(),"
	    " (SELECT n.sha256 FROM mcpbox.access_now n)",
	    DB_FAST}},
    {0}};

static const struct question_form identities[] = {
    {Q_MUST(ISSUER) | Q_MUST(STATE), {Q_TAKE(STATE), Q_TAKE(ISSUER), 0},
	{"adminq_identities_issuer_state",
	    BY_STATE(" AND i.issuer = $2::text", "3", "4"),
	    DB_FAST}},
    {Q_MUST(ISSUER), {Q_TAKE(ISSUER), 0},
	{"adminq_identities_issuer",
	    ITEM " WHERE i.issuer = $1::text AND i.principal > $2::text"
	    " ORDER BY i.principal LIMIT $3::int8",
	    DB_FAST}},
    {Q_MUST(STATE), {Q_TAKE(STATE), 0},
	{"adminq_identities_state", BY_STATE("", "2", "3"), DB_FAST}},
    {0, {0},
	{"adminq_identities",
	    ITEM " WHERE i.principal > $1::text"
	    " ORDER BY i.principal LIMIT $2::int8",
	    DB_FAST}},
    {0}};

/* The greatest number of names of a kind that an endpoint's row lists. */
#define NAMES "200"

static const struct question_form endpoints[] = {
    {0, {0},
	{"adminq_endpoints",
	    "SELECT item, name FROM mcpbox.endpoint_rows(NULL, NULL, " NAMES ")"
	    " WHERE name COLLATE \"C\" > $1::text"
	    " ORDER BY name COLLATE \"C\" LIMIT $2::int8",
	    DB_FAST}},
    {0}};

/* The text of a target is in the document. */
static const struct question_form notifications[] = {
    {0, {0},
	{"adminq_notifications",
	    "SELECT json_build_object('target', t.name, 'waiting', (SELECT count(*)"
	    " FROM mcpbox.notification_queue q WHERE q.target = t.name),"
	    " 'sent', t.sent, 'sent_at', " ADMINQ_TIME("t.sent_at") ","
	    " 'next_at', CASE WHEN t.due_at > clock_timestamp() THEN "
	    ADMINQ_TIME("t.due_at") " END, 'error', nullif(t.error, ''))::text,"
	    " t.name FROM mcpbox.notification_targets t"
	    " WHERE t.name > $1::text ORDER BY t.name LIMIT $2::int8",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_access_questions[] = {
    {"access", QUESTION_SINGLE, ADMIN_VIEWER, access, .beside = in_force},
    {"identities", QUESTION_LIST, ADMIN_VIEWER, identities, NULL},
    {"endpoints", QUESTION_LIST, ADMIN_VIEWER, endpoints, NULL},
    {"notifications", QUESTION_LIST, ADMIN_VIEWER, notifications, NULL},
    {0},
};
