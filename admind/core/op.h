/* Connections, and requests whose answer comes later. */
#ifndef ADMIND_OP_H
#define ADMIND_OP_H

#include "admin_action.h"
#include "admind.h"
#include "buf.h"
#include "tlv.h"

struct token;

/* One connection. Requests in work hold a reference, since the peer may go
 * before they are answered. After the peer has gone, peer is NULL. */
struct link {
	struct admind *a;
	struct ipc_peer *peer;
	enum ipc_role role;
	enum listener listener; /* of a gateway, else 0 */
	unsigned refs;
};

struct link *link_ref(struct link *);
void link_unref(struct link *);
/* The functions link_*() below answer a request. They do nothing when the peer
 * is gone. */
void link_answer(
    struct link *, uint64_t request, enum ipc_type, const void *msg);
void link_ok(struct link *, uint64_t request);
void link_refuse(
    struct link *, uint64_t request, enum failure, const char *message);
/* Refuses like link_refuse(). retry_ms: after that time the client may try
 * again; 0: the default of this failure. data: further members of the JSON-RPC
 * error's data. */
void link_refuse_later(struct link *, uint64_t request, enum failure,
    const char *message, uint64_t retry_ms, const char *data);

/* Refuses a request whose token lacks a scope (lack.h). */
struct lack;
void link_refuse_lack(struct link *, uint64_t request, const struct lack *);

/* A request in work that is not a job. */
struct op {
	struct admind *a;
	struct link *link;
	uint64_t request;
	struct token *token;       /* that counts the request, or NULL */
	void (*then)(struct op *); /* the continuation */
	struct ipc_id id;
	struct ipc_hash hash;
	char text[EXPOSED_NAME_MAX + 1];
	struct buf buf; /* kept between steps */
	uint64_t number;
	/* For login_check(): the least role, and the scope with which a
	 * script's key may ask; a request that sets none is refused to keys. */
	enum admin_role least;
	enum script_scope scope;
	enum admin_role role;          /* the requester's; by login_check() */
	char actor[PRINCIPAL_MAX + 1]; /* the requester; by login_check() */
};
/* Makes an op. Returns NULL without memory or if OPS_MAX ops are in work: the
 * request was refused as busy. */
struct op *op_new(struct link *, uint64_t request);
void op_free(struct op *);
/* Counts the request against a token (NULL: none). Returns 0, or -1 with err if
 * too many requests of the token are in work. */
int op_count(struct op *, struct token *, struct err *);
/* Each of these functions answers the request and frees the op. */
void op_answer(struct op *, enum ipc_type, const void *msg);
void op_ok(struct op *);
void op_refuse(struct op *, enum failure, const char *message);
void op_refuse_err(struct op *, const struct err *);
void op_refuse_lack(struct op *, const struct lack *);
/* A db_cb for statements: answers OK, or refuses with the statement's error. */
void op_db_ok(void *op, const struct pg_result *, const struct err *);

/* Sends a request to another process. 0, or -1 with err if the connection is
 * down; cb then never runs. */
int ask(struct ipc_client *, enum ipc_type, const void *msg, ipc_answer_cb *cb,
    void *arg, struct err *);
/* Sets err from an answer that is not the expected frame. A REFUSED gives its
 * own failure and message. NULL, which means silence or the end of the
 * connection, gives `gone`. Any other frame gives FAILURE_INTERNAL. */
void answer_err(struct ipc_frame *, enum failure gone, struct err *);

#endif
