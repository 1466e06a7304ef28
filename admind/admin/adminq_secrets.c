/*
 * Questions about secrets (adminq.h): names, history and usage. No question
 * asks for a value or its ciphertext.
 */
#include "adminq.h"

/* All secrets of one server: 256 at most (secret_create), so no pages. */
static const struct question_form secrets[] = {
    {0, {0},
	{"adminq_secrets",
	    "SELECT json_build_object('items', coalesce((SELECT json_agg("
	    "mcpbox.secret_item(x) ORDER BY x.key) FROM mcpbox.server_secrets x"
	    " WHERE x.server_id = s.id), '[]'), 'next_cursor', null)::text"
	    " FROM mcpbox.servers s WHERE s.name = $1::text",
	    DB_FAST}},
    {0}};

static const struct question_form secret[] = {
    {0, {0},
	{"adminq_secret",
	    "SELECT j FROM mcpbox.secret_json(split_part($1::text, '/', 1),"
	    " split_part($1::text, '/', 2)) j WHERE j IS NOT NULL",
	    DB_FAST}},
    {0}};

/* The secrets of all servers, by the names of server and secret, which are the
 * cursor. A name has no slash. */
#define PLACE(n) "split_part($1::text, '/', " n ")"
static const struct question_form all[] = {
    {0, {0},
	{"adminq_all_secrets",
	    "SELECT mcpbox.secret_item(x)::text, s.name || '/' || x.key"
	    " FROM mcpbox.servers s JOIN mcpbox.server_secrets x"
	    " ON x.server_id = s.id WHERE s.deleted_at IS NULL"
	    " AND s.name >= " PLACE("1") " AND (s.name > " PLACE(
		"1") " OR x.key > " PLACE("2") ") ORDER BY s.name, x.key"
					       " LIMIT $2::int8",
	    DB_FAST}},
    {0}};

const struct question adminq_secrets_questions[] = {
    {"secrets", QUESTION_NAMED, ADMIN_VIEWER, secrets, NULL},
    {"secret", QUESTION_NAMED, ADMIN_VIEWER, secret, NULL},
    {"all_secrets", QUESTION_LIST, ADMIN_VIEWER, all, NULL},
    {0},
};
