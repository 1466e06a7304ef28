/* Connections, and requests whose answer comes later. */
#ifndef ADMIND_OP_H
#define ADMIND_OP_H

#include "admin_action.h"
#include "admind.h"
#include "buf.h"
#include "tlv.h"

struct token;

/* One connection. Requests in work hold a reference, since the peer may go
 * before the answer is there; peer is NULL from then on. */
struct link {
	struct admind *a;
	struct ipc_peer *peer;
	enum ipc_role role;
	enum listener listener; /* of a gateway, else 0 */
	unsigned refs;
};

struct link *link_ref(struct link *);
void link_unref(struct link *);
/* These do nothing when the peer is gone. */
void link_answer(
    struct link *, uint64_t request, enum ipc_type, const void *msg);
void link_ok(struct link *, uint64_t request);
void link_refuse(
    struct link *, uint64_t request, enum failure, const char *message);
/* The same; retry_ms: when to come again, 0: as usual with this failure; data:
 * further members of the JSON-RPC error's data. */
void link_refuse_later(struct link *, uint64_t request, enum failure,
    const char *message, uint64_t retry_ms, const char *data);

/* A request in work that is not a job. */
struct op {
	struct admind *a;
	struct link *link;
	uint64_t request;
	struct token *token;       /* of a gateway's client: it counts there */
	void (*then)(struct op *); /* for continuations */
	struct ipc_id id;
	struct ipc_hash hash;
	char text[EXPOSED_NAME_MAX + 1];
	struct buf buf; /* kept between steps */
	uint64_t number;
	enum admin_role least;         /* for login_check: who may this */
	enum admin_role role;          /* by login_check: of who asks */
	char actor[PRINCIPAL_MAX + 1]; /* by login_check: who asks */
};
/* NULL when OPS_MAX are in work: already refused as busy. */
struct op *op_new(struct link *, uint64_t request);
void op_free(struct op *);
/* It is of this token's client (NULL: of none). -1: too many are in work. */
int op_count(struct op *, struct token *, struct err *);
/* Answer and free. */
void op_answer(struct op *, enum ipc_type, const void *msg);
void op_ok(struct op *);
void op_refuse(struct op *, enum failure, const char *message);
void op_refuse_err(struct op *, const struct err *);
/* A db_cb for statements whose success is OK and nothing more. */
void op_db_ok(void *op, const struct pg_result *, const struct err *);

/* Sends a request to a client connection. 0; -1 when it is down (cb never
 * runs), with err naming the failure. */
int ask(struct ipc_client *, enum ipc_type, const void *msg, ipc_answer_cb *cb,
    void *arg, struct err *);
/* What an unexpected answer means: a REFUSED's own failure and message, the
 * connection's end or silence as `gone`, anything else INTERNAL. */
void answer_err(struct ipc_frame *, enum failure gone, struct err *);

#endif
