/*
 * Shared by the vault's files: the process's state, answers to requests that
 * had to wait for other work, and requests to admind.
 */
#ifndef VAULT_H
#define VAULT_H

#include "access.h"
#include "buf.h"
#include "ceremony.h"
#include "challenges.h"
#include "contexts.h"
#include "ipc.h"
#include "ipc_peer.h"
#include "keys.h"
#include "policy.h"
#include "proc.h"
#include "sessions.h"
#include "slots.h"
#include "throttle.h"
#include "tickets.h"
#include "verifiers.h"

enum {
	/* Time for an answer of admind, which reads or commits one row. */
	VAULT_ASK_MS = 5000,
	/* Requests of all peers that wait for an answer. */
	VAULT_OPS_MAX = 256,
	/* Further requests, which only root may make, so that a flood of logins
	 * can't lock root out. */
	VAULT_OPS_ROOT = 16
};

struct vault;
struct attempt;
struct caller;
struct rotate;

/* One listening socket; the socket decides its peers' role. */
struct port {
	struct vault *v;
	enum ipc_role role;
	struct ipc_server *server;
};

struct vault {
	struct proc proc;
	struct keys *keys;   /* the newest; keys->also: the older one */
	bool key_credential; /* the key did not come from key_file */
	struct rotate *rotate;
	struct contexts *contexts;
	struct sessions *sessions;
	struct slots *slots;
	struct throttle *throttle;
	struct verifiers *verifiers;
	/* The newest set of passkeys that we saw, of each name. */
	struct verifiers *passkey_times;
	struct challenges *challenges;
	/* of passkeys: see ceremony.h; empty: passkeys are off */
	const char *rp_id, *origins;
	struct tickets tickets;
	size_t strangers; /* at most ATTEMPT_STRANGERS_MAX */
	/* The change of an administrator that is under way, or NULL. */
	const struct attempt *changing;
	struct port admind, web, ctl, sandboxd;
	struct caller *callers; /* connected peers, newest first */
	uint64_t next_caller;
	size_t ops;           /* requests that wait; see VAULT_OPS_MAX */
	struct policy policy; /* the newest policy that we saw or made */
	bool policy_storing;  /* admind was asked to store another one */
	struct access access; /* the newest access document, likewise */
	char *layers;         /* "name=state" lines, for doctor */
	uint64_t audit_seq;   /* row number of the last signed audit head */
	struct ipc_hash audit_head;
};

/* The caller that waits for an answer. It is named by a number, not by a
 * pointer, because the peer may be gone when the answer comes. */
struct vault_ref {
	uint64_t caller;
	uint64_t request;
	enum ipc_role role;
};

/* callers.c */
int callers_add(struct port *, struct ipc_peer *);
void callers_remove(struct vault *, struct ipc_peer *);
void callers_free(struct vault *);
struct vault_ref callers_ref(
    const struct port *, struct ipc_peer *, uint64_t request);
/* Returns whether one more request may begin (VAULT_OPS_MAX). */
bool callers_room(const struct port *);
/* The next five functions do nothing when the caller is gone. */
void callers_answer(
    struct vault *, struct vault_ref, enum ipc_type, const void *msg);
void callers_ok(struct vault *, struct vault_ref);
void callers_refuse(
    struct vault *, struct vault_ref, enum failure, const char *message);
/* Does what callers_refuse does, and tells the caller after which time to try
 * again. */
void callers_refuse_later(struct vault *, struct vault_ref, enum failure,
    const char *message, uint64_t retry_ms);
/* Refuses the request because of admind's answer f. Passes a REFUSED on;
 * answers INTERNAL for any other frame, and the failure `gone` if f is NULL. */
void callers_refuse_as(
    struct vault *, struct vault_ref, struct ipc_frame *, enum failure gone);
/* Sends a request to the newest connection of admind. -1: admind is not
 * connected (cb will not run). */
int callers_ask(struct vault *, enum ipc_type, const void *msg,
    ipc_answer_cb *cb, void *arg);

/* audit.c: sends an event for admind's audit log. With cb NULL no caller waits,
 * and a failure is only logged. -1: admind is not connected (logged). */
int audit_event(struct vault *, const char *actor, const char *action,
    const char *subject, const char *detail_json, ipc_answer_cb *, void *arg);
/* Handles one message about the audit log. -1 closes the peer (malformed). */
int audit_message(struct port *, struct ipc_peer *, struct ipc_frame *);

#endif
