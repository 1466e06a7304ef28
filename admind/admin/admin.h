/* Questions and actions of administrators. */
#ifndef ADMIN_H
#define ADMIN_H

#include "jsonw.h"
#include "op.h"

int adminq_message(struct link *, struct ipc_frame *);   /* ADMIN_QUERY */
int adminact_message(struct link *, struct ipc_frame *); /* ADMIN_ACTION */
int transfer_message(struct link *, struct ipc_frame *); /* EXPORT, IMPORT */
int doctor_message(struct link *, struct ipc_frame *);
void doctor_json(struct admind *, struct jsonw *); /* of GET /api/health */
void doctor_status_json(struct admind *, struct jsonw *);
/* token_set.c: TOKEN_CREATE, TOKEN_REVOKE */
int token_set_message(struct link *, struct ipc_frame *);
/* script_keys.c: SCRIPT_KEY_CREATE, SCRIPT_KEY_CHECK */
int script_keys_message(struct link *, struct ipc_frame *);
/* person_call.c: PERSON_CALL */
int person_call_message(struct link *, struct ipc_frame *);
/* SOURCE_RUN and OAUTH_CALLBACK */
int adminsources_message(struct link *, struct ipc_frame *);
/* adminkeys.c: ACCESS_REFRESH */
int adminkeys_message(struct link *, struct ipc_frame *);
/* adminnotify.c: NOTIFY_TEST */
int adminnotify_message(struct link *, struct ipc_frame *);

#endif
