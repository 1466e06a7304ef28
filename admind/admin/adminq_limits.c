/*
 * Questions about rate limits and circuit breakers (adminq.h).
 */
#include "adminq.h"
#include "limits.h"

/* clang-format off */
static const struct question_form rate_limits[] = {
    {0, {0},
	{"adminq_rate_limits",
	    "SELECT mcpbox.rate_limit_json(l.scope, l.subject),"
	    " l.scope || ' ' || l.subject FROM mcpbox.rate_limits l"
	    " WHERE (l.scope, l.subject) > (split_part($1::text, ' ', 1),"
	    " substr($1::text, strpos($1::text, ' ') + 1))"
	    " ORDER BY l.scope, l.subject LIMIT $2::int8",
	    DB_FAST}},
    {0}};

/* breakers of the node that is asked, and the database's counts for all
 * nodes */
static const struct question_form breakers[] = {
    {0, {0},
	{"adminq_breakers",
	    "SELECT json_build_object('rate_limits',"
	    " (SELECT count(*) FROM mcpbox.rate_limits), 'rate_buckets',"
	    " (SELECT count(*) FROM mcpbox.rate_buckets))::text",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_limits_questions[] = {
    {"rate_limits", QUESTION_LIST, ADMIN_VIEWER, rate_limits, NULL},
    {"breakers", QUESTION_SINGLE, ADMIN_VIEWER, breakers, limits_breakers_json},
    {0},
};
