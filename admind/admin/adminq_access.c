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

#define STATE                                                     \
	"CASE $1::text WHEN 'active' THEN i.withdrawn_at IS NULL" \
	" WHEN 'withdrawn' THEN i.withdrawn_at IS NOT NULL"       \
	" ELSE $1::text = '' END"
#define ITEM \
	"SELECT mcpbox.identity_json(i), i.principal FROM mcpbox.identities i"

/* clang-format off */
static const struct question_form access[] = {
    {0, {0},
	{"adminq_access",
	    "SELECT mcpbox.access_json(),"
	    " (SELECT n.sha256 FROM mcpbox.access_now n)",
	    DB_FAST}},
    {0}};

static const struct question_form identities[] = {
    {Q_MUST(ISSUER), {Q_TAKE(STATE), Q_TAKE(ISSUER), 0},
	{"adminq_identities_issuer",
	    ITEM " WHERE " STATE " AND i.issuer = $2::text"
	    " AND i.principal > $3::text"
	    " ORDER BY i.principal LIMIT $4::int8",
	    DB_FAST}},
    {Q_MUST(STATE), {Q_TAKE(STATE), 0},
	{"adminq_identities_state",
	    ITEM " WHERE " STATE " AND i.principal > $2::text"
	    " ORDER BY i.principal LIMIT $3::int8",
	    DB_FAST}},
    {0, {0},
	{"adminq_identities",
	    ITEM " WHERE i.principal > $1::text"
	    " ORDER BY i.principal LIMIT $2::int8",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_access_questions[] = {
    {"access", QUESTION_SINGLE, ADMIN_VIEWER, access, .beside = in_force},
    {"identities", QUESTION_LIST, ADMIN_VIEWER, identities, NULL},
    {0},
};
