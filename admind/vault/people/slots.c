#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <argon2.h>
#include <event2/event.h>

#include "ids.h"
#include "slots.h"

enum { SALT_LEN = 16, HASH_LEN = 32, LANES = 1 };

struct queue {
	struct slots_job *head, **tail;
	size_t n;
};

struct slots {
	uint32_t memory_kib, passes;
	char decoy[SLOTS_ENCODED_MAX];
	int wake; /* eventfd: a thread finished a job */
	struct event *ev;
	pthread_t thread[SLOTS_THREADS];
	size_t nthreads;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t work;
	struct queue todo, strangers, done;
	size_t busy; /* threads that work on a stranger's job */
	bool stop;
};

static void
push(struct queue *q, struct slots_job *j)
{
	j->next = NULL;
	*q->tail = j;
	q->tail = &j->next;
	q->n++;
}

static struct slots_job *
pop(struct queue *q)
{
	struct slots_job *j = q->head;

	if (j == NULL)
		return NULL;
	if ((q->head = j->next) == NULL)
		q->tail = &q->head;
	q->n--;
	return j;
}

/* Hashes with Argon2id, our parameters and a fresh salt into a PHC string. 0 or
 * -1. */
static int
hash(const struct slots *s, const char *password, size_t n,
    char out[SLOTS_ENCODED_MAX])
{
	uint8_t salt[SALT_LEN];

	random_bytes(salt, sizeof(salt));
	return argon2id_hash_encoded(s->passes, s->memory_kib, LANES, password,
		   n, salt, sizeof(salt), HASH_LEN, out,
		   SLOTS_ENCODED_MAX) == ARGON2_OK
	    ? 0
	    : -1;
}

static void
work(const struct slots *s, struct slots_job *j)
{
	int rc;

	if (j->what == SLOTS_HASH) {
		j->failed =
		    hash(s, j->password, j->password_len, j->encoded) == -1;
		return;
	}
	rc = argon2id_verify(j->encoded, j->password, j->password_len);
	j->match = rc == ARGON2_OK;
	j->failed = rc != ARGON2_OK && rc != ARGON2_VERIFY_MISMATCH;
}

/* Returns a job that a thread may take, or NULL. The caller holds the lock. */
static struct slots_job *
take(struct slots *s)
{
	struct slots_job *j = pop(&s->todo);

	if (j == NULL && s->busy < SLOTS_THREADS - 1 &&
	    (j = pop(&s->strangers)) != NULL)
		s->busy++;
	return j;
}

static void *
thread(void *arg)
{
	static const uint64_t one = 1;
	struct slots *s = arg;
	struct slots_job *j;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		j = NULL;
		while (!s->stop && (j = take(s)) == NULL)
			pthread_cond_wait(&s->work, &s->lock);
		if (j == NULL)
			break;
		pthread_mutex_unlock(&s->lock);
		work(s, j);
		pthread_mutex_lock(&s->lock);
		if (j->stranger)
			s->busy--;
		push(&s->done, j);
		/* The write fails only if the counter would overflow; then the
		 * loop is woken anyway. */
		(void)!write(s->wake, &one, sizeof(one));
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void
woken(evutil_socket_t fd, short what, void *arg)
{
	struct slots *s = arg;
	struct slots_job *j;
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
	for (;;) {
		pthread_mutex_lock(&s->lock);
		j = pop(&s->done);
		pthread_mutex_unlock(&s->lock);
		if (j == NULL)
			return;
		j->done(j, j->arg);
	}
}

/*
 * Writes the decoy: a PHC string (RFC 9106 parameters, standard base64 without
 * padding) with random salt and hash. No password is known to fit the decoy,
 * and a check against it costs as much as against a real verifier. The hash is
 * not computed from a password, because the start must not wait for that.
 */
static void
make_decoy(struct slots *s)
{
	uint8_t raw[HASH_LEN];
	char salt[44], tag[44];

	random_bytes(raw, sizeof(raw));
	b64url_encode(raw, SALT_LEN, salt);
	random_bytes(raw, sizeof(raw));
	b64url_encode(raw, HASH_LEN, tag);
	snprintf(s->decoy, sizeof(s->decoy),
	    "$argon2id$v=%d$m=%u,t=%u,p=%d$%s$%s", ARGON2_VERSION_13,
	    s->memory_kib, s->passes, LANES, salt, tag);
	for (char *p = strchr(s->decoy + 1, ',') + 1; *p != '\0'; p++)
		*p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
}

struct slots *
slots_new(struct event_base *base, uint32_t memory_kib, uint32_t passes,
    struct err *err)
{
	struct slots *s;

	if ((s = calloc(1, sizeof(*s))) == NULL) {
		err_set(err, FAILURE_INTERNAL, "out of memory");
		return NULL;
	}
	s->memory_kib = memory_kib;
	s->passes = passes;
	s->todo.tail = &s->todo.head;
	s->strangers.tail = &s->strangers.head;
	s->done.tail = &s->done.head;
	s->wake = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	make_decoy(s);
	if ((s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) == -1) {
		err_sys(err, FAILURE_INTERNAL, "eventfd");
		goto fail;
	}
	s->ev = event_new(base, s->wake, EV_READ | EV_PERSIST, woken, s);
	if (s->ev == NULL || event_add(s->ev, NULL) == -1) {
		err_set(err, FAILURE_INTERNAL, "out of memory");
		goto fail;
	}
	return s;
fail:
	slots_free(s);
	return NULL;
}

/*
 * Adds a second filter to that of confine_self, for all threads (TSYNC). It
 * answers EPERM to any call that makes a thread, a process, another program or
 * another filter, and leaves the rest to the first filter. The first filter had
 * to allow clone and clone3 to start the threads, and a filter cannot look into
 * clone3's structure; so the right to make threads ends here, after its use.
 */
static int
close_door(struct err *err)
{
#define DENY(nr)                                         \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
	struct sock_filter code[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    DENY(SYS_clone),
	    DENY(SYS_clone3),
	    DENY(SYS_fork),
	    DENY(SYS_vfork),
	    DENY(SYS_execve),
	    DENY(SYS_execveat),
	    DENY(SYS_seccomp),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
#undef DENY
	/* Builds with AddressSanitizer have no filter, here and in confine.c:
	 * LeakSanitizer clones a tracer at exit. Such builds are never
	 * installed. */
#ifdef __SANITIZE_ADDRESS__
	return 0;
#endif
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};
	long rc;

	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (rc == -1)
		return err_sys(err, FAILURE_INTERNAL, "second seccomp filter");
	if (rc != 0)
		return err_set(err, FAILURE_INTERNAL,
		    "thread %ld does not take the second seccomp filter", rc);
	return 0;
}

/* Signals stay with the loop's thread: the workers block all of them. */
int
slots_start(struct slots *s, struct err *err)
{
	sigset_t all, old;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (s->nthreads < SLOTS_THREADS) {
		rc = pthread_create(&s->thread[s->nthreads], NULL, thread, s);
		if (rc != 0)
			break;
		s->nthreads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		errno = rc;
		return err_sys(err, FAILURE_INTERNAL, "thread for passwords");
	}
	return close_door(err);
}

void
slots_free(struct slots *s)
{
	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < s->nthreads; i++)
		pthread_join(s->thread[i], NULL);
	if (s->ev != NULL)
		event_free(s->ev);
	if (s->wake != -1)
		close(s->wake);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->work);
	free(s);
}

int
slots_submit(struct slots *s, struct slots_job *j)
{
	struct queue *q = j->stranger ? &s->strangers : &s->todo;
	int rc = -1;

	pthread_mutex_lock(&s->lock);
	if (s->nthreads > 0 && q->n < SLOTS_QUEUE) {
		push(q, j);
		/* wakes all threads: a single woken thread could be one that
		 * may not take this job */
		pthread_cond_broadcast(&s->work);
		rc = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

const char *
slots_decoy(const struct slots *s)
{
	return s->decoy;
}
