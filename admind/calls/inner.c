/* See inner.h. */
#include <stdlib.h>
#include <string.h>

#include <sys/queue.h>

#include "admin_action.h"
#include "call.h"
#include "hold.h"
#include "inner.h"
#include "jobs.h"
#include "log.h"
#include "op.h"
#include "own_run.h"

enum {
	/* Time for the longest possible call, with its queue and its answer.
	 * sandboxd ends the call earlier, at the call's own limit. */
	WAIT_MS = QUEUE_MS + 600 * 1000 + 10 * 1000
};

struct inner {
	TAILQ_ENTRY(inner) entry; /* INNER_PERSON: in people */
	struct admind *a;
	struct job *job; /* NULL: sandboxd has the call */
	struct ipc_hash login;
	enum inner_mode mode;
	struct ipc_id execution;
	struct ipc_hash version;
	struct ipc_hash seen; /* zero: none was given */
	inner_cb *cb;
	void *arg;
};

/* The calls of administrators that are under way. */
static TAILQ_HEAD(, inner) people = TAILQ_HEAD_INITIALIZER(people);

bool
inner_may_lack_secrets(const struct job *j)
{
	return j->inner != NULL && j->inner->mode == INNER_TOKENS;
}

bool
inner_is_person(const struct job *j)
{
	return j->inner != NULL && j->inner->mode == INNER_PERSON;
}

const struct ipc_hash *
inner_seen(const struct job *j)
{
	static const struct ipc_hash none;

	return j->inner != NULL &&
		memcmp(&j->inner->seen, &none, sizeof(none)) != 0
	    ? &j->inner->seen
	    : NULL;
}

const char *
inner_change_source(const struct job *j)
{
	return inner_is_person(j) ? "manual" : "llm";
}

static void
end(struct inner *in, enum failure f, const char *text, struct ipc_bytes body)
{
	struct inner_end e = {.failure = f,
	    .text = text,
	    .body = body,
	    .execution = in->execution,
	    .version = in->version};
	inner_cb *cb = in->cb;
	void *arg = in->arg;

	if (in->mode == INNER_PERSON)
		TAILQ_REMOVE(&people, in, entry);
	free(in);
	cb(arg, &e);
}

static void
ran(void *arg, const struct own_end *e)
{
	end(arg, e->failure, e->text, e->body);
}

void
inner_run(struct job *j)
{
	struct inner *in = j->inner;

	in->execution = j->execution;
	in->version = j->version_hash;
	if (own_run_held(j->a, &j->execution,
		ipc_bytes(j->arguments.p, j->arguments.len), "call", WAIT_MS,
		ran, in) == -1) {
		job_refuse(j, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
		return;
	}
	j->inner = NULL;
	in->job = NULL;
	(void)job_enter(j, JOB_DONE);
	job_free(j);
}

void
inner_refused(struct job *j, enum failure f, const char *text)
{
	struct inner *in = j->inner;

	if (in == NULL)
		return;
	j->inner = NULL;
	in->execution = j->execution;
	end(in, f == FAILURE_NONE ? FAILURE_INTERNAL : f, text,
	    ipc_bytes(NULL, 0));
}

void
inner_answered(struct job *j)
{
	struct inner *in = j->inner;

	if (!inner_is_person(j))
		return;
	j->inner = NULL;
	in->execution = j->execution;
	end(in, j->is_error ? j->failure : FAILURE_NONE, "",
	    ipc_bytes(j->body.p, j->body.len));
}

static void
make(struct admind *a, const char *name, const char *principal,
    enum inner_mode mode, struct ipc_bytes arguments,
    const struct ipc_hash *seen, const struct ipc_hash *login, inner_cb *cb,
    void *arg)
{
	struct inner *in = calloc(1, sizeof(*in));
	struct inner_end e = {.failure = FAILURE_BUSY};
	struct job *j;
	struct err err;

	j = in == NULL ? NULL : job_inner(a, name, principal, arguments, &err);
	if (j == NULL) {
		e.text = in == NULL ? "out of memory" : err.text;
		free(in);
		cb(arg, &e);
		return;
	}
	in->a = a;
	in->job = j;
	in->mode = mode;
	in->seen = *seen;
	in->login = *login;
	if (mode == INNER_PERSON)
		TAILQ_INSERT_TAIL(&people, in, entry);
	in->cb = cb;
	in->arg = arg;
	j->inner = in;
	/* A run that renews tokens must not wait for a renewal of these
	 * tokens. */
	j->fresh_tokens = mode == INNER_TOKENS;
	call_inner(j);
}

void
inner_call(struct admind *a, const char *name, const char *principal,
    enum inner_mode mode, struct ipc_bytes arguments, inner_cb *cb, void *arg)
{
	static const struct ipc_hash none;

	make(a, name, principal, mode, arguments, &none, &none, cb, arg);
}

void
inner_person(struct admind *a, const char *name, const char *principal,
    struct ipc_bytes arguments, const struct ipc_hash *seen,
    const struct ipc_hash *login, inner_cb *cb, void *arg)
{
	make(a, name, principal, INNER_PERSON, arguments, seen, login, cb, arg);
}

/* ---- the end of a login ----
 *
 * A call needs a live login of an administrator. A call can run for minutes. If
 * it outlived its login, a stolen login would have an effect after its end, and
 * so would a removed administrator. The calls of a revoked token end likewise.
 *
 * Only the vault knows logins. It tells this process of each change of people
 * and logins, because this process stores or audits the change. So after each
 * such message this process asks the vault about the logins that have calls
 * under way. The vault ends the login before it reads the question, because
 * both go over one connection, in this order.
 *
 * Nothing is ended without the vault's word. If the vault is away, calls end by
 * their own limits. A question counts as use of the login, as a request does.
 */

/* One question to the vault. */
struct question {
	struct admind *a;
	struct ipc_hash login;
};

static unsigned asked;   /* questions under way */
static bool judge_again; /* something changed after the questions */

static bool
same(const struct ipc_hash *x, const struct ipc_hash *y)
{
	return memcmp(x, y, sizeof(*x)) == 0;
}

/* Ends the calls of one login: as those of a revoked token (ended.c). */
static void
end_login(struct admind *a, const struct ipc_hash *login)
{
	struct inner *in;
	unsigned n = 0;

	TAILQ_FOREACH(in, &people, entry)
		if (same(&in->login, login)) {
			n++;
			if (in->job != NULL) {
				in->job->revoked = true;
				in->job->revoked_why = FAILURE_KILLED;
			} else {
				hold_cancel(a, &in->execution, FAILURE_KILLED);
			}
		}
	if (n > 0)
		log_event(LOG_LV_INFO, "login_ended",
		    "%u calls of the login end with it", n);
}

/* Tells whether the vault's answer takes the right to call. */
static bool
lost(struct ipc_frame *f)
{
	struct ipc_session_info info;
	struct ipc_refused refused;
	enum admin_role role;
	struct err err;

	if (f == NULL)
		return false;
	if (f->type == IPC_SESSION_INFO)
		return ipc_decode(f, &info, &err) == 0 &&
		    admin_action_role(info.role, &role) == 0 &&
		    role < ADMIN_ADMINISTRATOR;
	return f->type == IPC_REFUSED && ipc_decode(f, &refused, &err) == 0 &&
	    refused.failure == FAILURE_UNAUTHENTICATED;
}

static void
judged(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct question *q = arg;
	struct admind *a = q->a;

	(void)gone;
	if (lost(f))
		end_login(a, &q->login);
	free(q);
	if (--asked == 0 && judge_again) {
		judge_again = false;
		inner_judge(a);
	}
}

/* Tells whether an earlier call has the same login. */
static bool
repeated(const struct inner *in)
{
	const struct inner *before;

	TAILQ_FOREACH(before, &people, entry)
		if (before == in)
			return false;
		else if (same(&before->login, &in->login))
			return true;
	return false;
}

void
inner_judge(struct admind *a)
{
	struct ipc_session_lookup m;
	struct question *q;
	struct inner *in;
	struct err err;

	if (asked > 0) {
		judge_again = true;
		return;
	}
	TAILQ_FOREACH(in, &people, entry) {
		if (repeated(in) || (q = calloc(1, sizeof(*q))) == NULL)
			continue;
		q->a = a;
		q->login = in->login;
		m.token = in->login;
		if (ask(a->vault, IPC_SESSION_LOOKUP, &m, judged, q, &err) == 0)
			asked++;
		else
			free(q);
	}
}
