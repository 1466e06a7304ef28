/*
 * One request that needs a password hash: a login, a password, another
 * administrator. It goes in steps; each takes the function to run when it
 * succeeded, and ends the attempt with a refusal when it failed.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "devices.h"
#include "vault.h"

enum {
	ATTEMPT_PASSWORD_MIN = 12, /* characters */
	ATTEMPT_PASSWORD_MAX = 128,
	/* Strangers' attempts between first frame and answer: they never take
	 * all of VAULT_OPS_MAX. */
	ATTEMPT_STRANGERS_MAX = 64
};

struct attempt {
	struct vault *v;
	struct vault_ref ref;
	void (*then)(struct attempt *);
	/* The person whose password is judged, and the results of
	 * attempt_find. */
	char username[SESSIONS_USER_MAX + 1];
	char role[SESSIONS_ROLE_MAX + 1];
	bool known;         /* job.encoded is the user's, not the decoy */
	uint64_t sealed_us; /* of that verifier */
	struct session_origin from;
	struct ipc_hash
	    token; /* the login that asks; zero for LOGIN and root */
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

/* NULL: answered as busy. */
struct attempt *attempt_new(struct port *, struct ipc_peer *, uint64_t request);
void attempt_free(struct attempt *);
/* These answer and free. */
void attempt_refuse(struct attempt *, enum failure, const char *message);
void attempt_ok(struct attempt *);

/* ^[a-zA-Z][a-zA-Z0-9_]{2,49}$ */
bool attempt_username_ok(struct ipc_bytes);
bool attempt_password_ok(struct ipc_bytes);
bool attempt_role_ok(struct ipc_bytes);
/* Copies text, NUL-terminated; cut if it does not fit. */
void attempt_copy(char *to, size_t size, struct ipc_bytes from);

/*
 * Counts the attempt against a bucket before it is judged: of strangers (number
 * NULL), of a device or of a login. After attempt_right() it costs nothing. 0,
 * or -1: refused with RATE_LIMITED and freed.
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
/* Compares that password with job.encoded: then() sees job.match. */
void attempt_verify(struct attempt *, void (*then)(struct attempt *));
/* Hashes it into job.encoded. */
void attempt_hash(struct attempt *, void (*then)(struct attempt *));
/* Seals job.encoded for target and target_role (change "delete": nothing) and
 * has admind commit the change. */
void attempt_store(struct attempt *, void (*then)(struct attempt *));
/* Sends an audit event about subject with {"source": ...}; cb may be NULL. 0,
 * or -1: admind is not connected. */
int attempt_audit(struct attempt *, const char *actor, const char *action,
    const char *subject, ipc_answer_cb *);

#endif
