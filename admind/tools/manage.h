/* Management tools: the way to one, and those that make no version. */
#ifndef MANAGE_H
#define MANAGE_H

#include "db.h"
#include "job.h"
#include "jsonw.h"
#include "step.h"

/* The tools, ended by a NULL name: manage_table.c. */
extern const struct manage_tool manage_tools[];
/* Takes over a job whose tool is a management tool. */
void manage_start(struct job *);

/* What serves several tools sees by the job's name which one it is. */
void manage_list_servers(struct job *);
void manage_create_server(struct job *);
void manage_start_server(struct job *);
void manage_stop_server(struct job *);
void manage_list_objects(struct job *);
void manage_delete(struct job *);
void manage_search_tools(struct job *);
/* manage_named.c: turns names in the arguments into ids, then manage_judge: may
 * the token name them? Then the tool runs. */
void manage_named(struct job *);
void manage_judge(struct job *);
void manage_request_publish(struct job *);
void manage_get_tool_status(struct job *);
void manage_list_pending_requests(struct job *);
void manage_request_module(struct job *);
void manage_request_network(struct job *);

void manage_discover(struct job *);
void manage_import_tools(struct job *);
void manage_guide(struct job *);
void manage_made(struct job *);
void manage_diff(struct job *);
/* Writes members of an object from a row of id, name, number, pre-image,
 * number, pre-image. 0 or -1. */
int manage_diff_make(const struct pg_result *, struct jsonw *, struct err *);
void manage_validate_code(struct job *);
void manage_call_tool(struct job *);

#endif
