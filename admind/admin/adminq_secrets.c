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

const struct question adminq_secrets_questions[] = {
    {"secrets", QUESTION_NAMED, ADMIN_VIEWER, secrets, NULL},
    {"secret", QUESTION_NAMED, ADMIN_VIEWER, secret, NULL}, {0}};
