/* Starts management tools, and declares the tools that make no version. */
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

/* A function that serves several tools distinguishes them by j->tool. */
void manage_list_servers(struct job *);
void manage_create_server(struct job *);
void manage_start_server(struct job *);
void manage_stop_server(struct job *);
void manage_list_objects(struct job *);
void manage_delete(struct job *);
void manage_search_tools(struct job *);
/* manage_named.c: turns names in the arguments into ids, then calls
 * manage_judge, which asks whether the token may name these objects and runs
 * the tool. */
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
/* Writes the comparison of two versions as members of an open object. The
 * result's row has id and name, then number and pre-image of each version. 0,
 * or -1 with err. */
int manage_diff_make(const struct pg_result *, struct jsonw *, struct err *);
void manage_validate_code(struct job *);
void manage_call_tool(struct job *);

#endif
