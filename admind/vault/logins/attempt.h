/*
 * One request that needs a password hash: a login, or a change of a password or
 * an administrator. It goes in steps. Each step takes the function to run after
 * success. A step that fails refuses the request and frees the attempt.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "devices.h"
#include "vault.h"

enum {
	ATTEMPT_PASSWORD_MIN = 12, /* characters */
	ATTEMPT_PASSWORD_MAX = 128,
	/* Strangers' attempts that wait for an answer: fewer than
	 * VAULT_OPS_MAX, so that strangers never take all places. */
	ATTEMPT_STRANGERS_MAX = 64
};

struct passkey_op;

struct attempt {
	struct vault *v;
	struct vault_ref ref;
	void (*then)(struct attempt *);
	void (*after)(struct attempt *); /* passkey_find() */
	struct passkey_op *passkey;      /* owned; see passkey.h */
	/* The person whose password is judged, and the results of
	 * attempt_find. */
	char username[SESSIONS_USER_MAX + 1];
	char role[SESSIONS_ROLE_MAX + 1];
	bool known;         /* job.encoded is the user's, not the decoy */
	uint64_t sealed_us; /* time in that verifier */
	/* The handle of the person's passkeys, from that verifier (zero: the
	 * password is enough), and the sealed set that admind brought, until
	 * `then` returns. */
	struct ipc_id handle;
	struct ipc_bytes sealed_set;
	struct session_origin from;
	struct ipc_hash
	    token; /* of the login that asks; zero for LOGIN and root */
	/* The bucket that a wrong password counts against. */
	bool stranger;
	enum throttle_what counted;
	struct ipc_id number; /* of the device or the login */
	/* The change to make once the password was right; see admins.c. */
	const char *change;
	char actor[SESSIONS_USER_MAX + 1];
	char target[SESSIONS_USER_MAX + 1];
	char target_role[SESSIONS_ROLE_MAX + 1];
	char new_password[SLOTS_PASSWORD_MAX];
	size_t new_len;
	uint64_t stored_us; /* time in the verifier being stored */
	struct slots_job job;
};

/* Begins an attempt. NULL: the request was refused as busy. */
struct attempt *attempt_new(struct port *, struct ipc_peer *, uint64_t request);
void attempt_free(struct attempt *);
/* The next two functions answer the request and free the attempt. */
void attempt_refuse(struct attempt *, enum failure, const char *message);
void attempt_ok(struct attempt *);

/* Tells whether the name matches ^[a-zA-Z][a-zA-Z0-9_]{2,49}$. */
bool attempt_username_ok(struct ipc_bytes);
bool attempt_password_ok(struct ipc_bytes);
bool attempt_role_ok(struct ipc_bytes);
/* Copies text, NUL-terminated; cut if it does not fit. */
void attempt_copy(char *to, size_t size, struct ipc_bytes from);

/*
 * Counts the attempt before the password is checked, in the buckets of
 * strangers (number NULL) or in the bucket of a device or of a login (number).
 * attempt_right() takes the count back. 0, or -1: the attempt was refused with
 * RATE_LIMITED or BUSY, and freed.
 */
int attempt_count(
    struct attempt *, enum throttle_what, const struct ipc_id *number);
void attempt_right(struct attempt *);

/* Asks admind for the verifier of username: sets known, role and job.encoded
 * (the decoy for a person who does not exist). */
void attempt_find(struct attempt *, void (*then)(struct attempt *));
/* Sets the password for the next step that hashes; at most SLOTS_PASSWORD_MAX
 * bytes. */
void attempt_put(struct attempt *, struct ipc_bytes);
/* Compares the password of attempt_put() with job.encoded; the result is in
 * job.match. */
void attempt_verify(struct attempt *, void (*then)(struct attempt *));
/* Hashes the password of attempt_put() into job.encoded. */
void attempt_hash(struct attempt *, void (*then)(struct attempt *));
/* Seals job.encoded for target and target_role, or nothing if change is
 * "delete". Then has admind commit the change. */
void attempt_store(struct attempt *, void (*then)(struct attempt *));
/* Sends an audit event about subject, with the detail {"source": ...}; cb may
 * be NULL. 0, or -1: admind is not connected. */
int attempt_audit(struct attempt *, const char *actor, const char *action,
    const char *subject, ipc_answer_cb *);

#endif
