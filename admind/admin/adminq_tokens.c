/*
 * Questions about API tokens and scripts' keys (adminq.h). Neither is stored
 * itself: the database has its SHA-256, and that is not shown either.
 */
#include "adminq.h"

#define STATE                                                   \
	"CASE $1::text WHEN 'active' THEN t.revoked_at IS NULL" \
	" AND (t.expires_at IS NULL OR t.expires_at > now())"   \
	" WHEN 'expired' THEN t.revoked_at IS NULL"             \
	" AND t.expires_at <= now()"                            \
	" WHEN 'revoked' THEN t.revoked_at IS NOT NULL END"

/* clang-format off */
static const struct question_form tokens[] = {
    {Q_MUST(STATE), {Q_TAKE(STATE), 0},
	{"adminq_tokens_state",
	    "SELECT mcpbox.token_json(t), t.name FROM mcpbox.api_tokens t"
	    " WHERE t.name > $2::text AND " STATE
	    " ORDER BY t.name LIMIT $3::int8",
	    DB_FAST}},
    {0, {0},
	{"adminq_tokens",
	    "SELECT mcpbox.token_json(t), t.name FROM mcpbox.api_tokens t"
	    " WHERE t.name > $1::text ORDER BY t.name LIMIT $2::int8",
	    DB_FAST}},
    {0}};

static const struct question_form token[] = {
    {0, {0},
	{"adminq_token",
	    "SELECT mcpbox.token_json(t) FROM mcpbox.api_tokens t"
	    " WHERE t.id = $1::uuid",
	    DB_FAST}},
    {0}};

static const struct question_form token_named[] = {
    {0, {0},
	{"adminq_token_named",
	    "SELECT mcpbox.token_json(t) FROM mcpbox.api_tokens t"
	    " WHERE t.name = $1::text OR t.id = CASE WHEN $1::text ~"
	    " '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'"
	    " THEN $1::text::uuid END",
	    DB_FAST}},
    {0}};
static const struct question_form keys[] = {
    {0, {0},
	{"adminq_keys",
	    "SELECT mcpbox.script_key_json(k), k.name FROM mcpbox.script_keys k"
	    " WHERE k.name > $1::text ORDER BY k.name LIMIT $2::int8",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_tokens_questions[] = {
    {"tokens", QUESTION_LIST, ADMIN_VIEWER, tokens, NULL},
    {"token", QUESTION_OBJECT, ADMIN_VIEWER, token, NULL},
    {"token_named", QUESTION_NAMED, ADMIN_VIEWER, token_named, NULL},
    {"keys", QUESTION_LIST, ADMIN_VIEWER, keys, NULL},
    {0},
};
