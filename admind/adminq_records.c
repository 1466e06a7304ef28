/*
 * Questions about executions (adminq.h).
 */
#include "adminq.h"

#define EXECUTION_HEAD                                                                              \
	"'id', e.id, 'kind', e.kind, 'state', e.state, 'outcome', e.outcome,"                       \
	" 'failure_mode', e.failure, 'delivered', e.delivered,"                                     \
	" 'tool', e.tool, 'version_id', e.version_id,"                                              \
	" 'hash', encode(e.version_hash, 'hex'), 'principal', e.principal,"                         \
	" 'listener', e.listener, 'client', e.client, 'protocol', e.protocol,"                      \
	" 'created_at', " ADMINQ_TIME(                                                              \
	    "e.created_at") ","                                                                     \
			    " 'deadline', " ADMINQ_TIME(                                            \
				"e.deadline") ","                                                   \
					      " 'started_at', " ADMINQ_TIME(                        \
						  "e.started_at") ","                               \
								  " 'ended_"                        \
								  "at',"                            \
								  " " ADMINQ_TIME(                  \
								      "e."                          \
								      "ended_"                      \
								      "at") ", 'cpu_us', e.cpu_us," \
									    " 'restored', e.restored"

/* clang-format off */
static const struct question_form executions[] = {
    {0, {Q_TAKE(KIND), Q_TAKE(STATE)},
	{"adminq_executions",
	    "SELECT json_build_object(" EXECUTION_HEAD ")::text,"
	    " (extract(epoch FROM e.created_at) * 1000000)::int8::text"
	    " || '.' || e.id::text FROM mcpbox.executions e"
	    " WHERE ($1::text = '' OR e.kind = $1::text)"
	    " AND ($2::text = '' OR e.state = $2::text"
	    " OR e.outcome = $2::text)"
	    " AND ($3::text = '' OR (e.created_at, e.id) <"
	    " (to_timestamp(0) + split_part($3::text, '.', 1)::int8"
	    " * interval '1 microsecond',"
	    " nullif(split_part($3::text, '.', 2), '')::uuid))"
	    " ORDER BY e.created_at DESC, e.id DESC LIMIT $4::int8",
	    DB_FAST}},
    {0}};

static const struct question_form execution[] = {
    {0, {0},
	{"adminq_execution",
	    "SELECT json_build_object(" EXECUTION_HEAD ","
	    " 'arguments', e.arguments,"
	    " 'args_sha256', encode(e.args_sha256, 'hex'),"
	    " 'stdout', e.stdout, 'result', e.result)::text"
	    " FROM mcpbox.executions e WHERE e.id = $1::uuid",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_records_questions[] = {
    {"executions", QUESTION_LIST, ADMIN_VIEWER, executions, NULL},
    {"execution", QUESTION_OBJECT, ADMIN_REVIEWER, execution, NULL},
    {0},
};
