/* Peers that the test plays. */
#include <sys/queue.h>

#include "fake_peer.h"
#include "unit.h"

enum { PEERS_MAX = 16, SERVER_PEERS_MAX = 4 };

struct ipc_peer {
	enum ipc_role role;
	void *data;
	size_t queued;
	struct message *question; /* taken, not answered */
};

struct ipc_client {
	struct ipc_peer *peer;
	bool up;
};

struct ipc_server {
	struct ipc_peer *peer[SERVER_PEERS_MAX];
	size_t n;
};

struct message {
	TAILQ_ENTRY(message) entry;
	struct ipc_peer *to;
	struct ipc_frame frame;
	ipc_answer_cb *cb; /* of a request */
	void *arg;
	bool taken;
};

static TAILQ_HEAD(, message) messages = TAILQ_HEAD_INITIALIZER(messages);
static void *made[3 * PEERS_MAX];
static size_t nmade;
static uint64_t requests;

static void *
make(size_t n)
{
	void *p = calloc(1, n);

	assert_non_null(p);
	assert_true(nmade < sizeof(made) / sizeof(made[0]));
	made[nmade++] = p;
	return p;
}

struct ipc_peer *
fake_peer(enum ipc_role role)
{
	struct ipc_peer *p = make(sizeof(*p));

	p->role = role;
	return p;
}

struct ipc_client *
fake_client(enum ipc_role role)
{
	struct ipc_client *c = make(sizeof(*c));

	c->peer = fake_peer(role);
	c->up = true;
	return c;
}

void
fake_client_up(struct ipc_client *c, bool up)
{
	c->up = up;
}

struct ipc_server *
fake_server(struct ipc_peer *const *peers, size_t n)
{
	struct ipc_server *s = make(sizeof(*s));

	assert_true(n <= SERVER_PEERS_MAX);
	for (size_t i = 0; i < n; i++)
		s->peer[i] = peers[i];
	s->n = n;
	return s;
}

void
fake_peers_free(void)
{
	struct message *m;

	while ((m = TAILQ_FIRST(&messages)) != NULL) {
		TAILQ_REMOVE(&messages, m, entry);
		ipc_frame_free(&m->frame);
		free(m);
	}
	while (nmade > 0)
		free(made[--nmade]);
}

void
fake_peer_queue(struct ipc_peer *p, size_t bytes)
{
	p->queued = bytes;
}

/* ---- messages ---- */

/* As a frame that arrived: the codec writes it, and reads it back. */
static struct message *
message(
    struct ipc_peer *to, enum ipc_type type, uint64_t request, const void *msg)
{
	struct message *m = calloc(1, sizeof(*m));
	struct ipc_bytes spill;
	struct buf b;
	struct err err;
	int fd;

	assert_non_null(m);
	buf_init(&b, IPC_FRAME_MAX);
	if (ipc_encode(type, request, msg, &b, &spill, &fd, &err) == -1)
		fail_msg("%s: %s", ipc_name(type), err.text);
	assert_int_equal(ipc_decode_header(b.p, b.len, &m->frame, &err), 0);
	m->frame.payload_len = b.len - IPC_HEADER_LEN;
	m->frame.payload = malloc(b.len);
	assert_non_null(m->frame.payload);
	memcpy(m->frame.payload, b.p + IPC_HEADER_LEN, m->frame.payload_len);
	m->frame.fd = -1;
	if (spill.p != NULL) {
		m->frame.flags |= IPC_FLAG_MEMFD;
		m->frame.blob = malloc(spill.n);
		assert_non_null(m->frame.blob);
		memcpy(m->frame.blob, spill.p, spill.n);
		m->frame.blob_len = spill.n;
	}
	buf_free(&b);
	m->to = to;
	TAILQ_INSERT_TAIL(&messages, m, entry);
	return m;
}

struct ipc_frame *
fake_frame(enum ipc_type type, uint64_t request, const void *msg)
{
	return &message(NULL, type, request, msg)->frame;
}

unsigned
fake_peer_waits(const struct ipc_peer *p)
{
	struct message *m;
	unsigned n = 0;

	TAILQ_FOREACH(m, &messages, entry)
		n += m->to == p && !m->taken;
	return n;
}

uint64_t
fake_took(struct ipc_peer *p, enum ipc_type type, void *msg)
{
	struct message *m;
	struct err err;

	TAILQ_FOREACH(m, &messages, entry)
		if (m->to == p && !m->taken)
			break;
	if (m == NULL)
		fail_msg("no %s was sent", ipc_name(type));
	if (m->frame.type != type)
		fail_msg("message %d was sent, not %s", m->frame.type,
		    ipc_name(type));
	m->taken = true;
	if (m->cb != NULL)
		p->question = m;
	if (ipc_decode(&m->frame, msg, &err) == -1)
		fail_msg("%s: %s", ipc_name(type), err.text);
	return m->frame.request;
}

static struct message *
question(struct ipc_peer *p)
{
	struct message *m = p->question;

	assert_non_null(m);
	p->question = NULL;
	return m;
}

/* A question has one answer. */
static void
answer(struct message *m, struct ipc_frame *f, enum failure gone)
{
	ipc_answer_cb *cb = m->cb;

	m->cb = NULL;
	cb(m->arg, f, gone);
}

void
fake_answers(struct ipc_peer *p, enum ipc_type type, const void *msg)
{
	struct message *m = question(p);

	answer(m, fake_frame(type, m->frame.request, msg), FAILURE_NONE);
}

void
fake_goes(struct ipc_peer *p, enum failure gone)
{
	answer(question(p), NULL, gone);
}

bool
fake_peers_go(void)
{
	struct message *m;

	TAILQ_FOREACH(m, &messages, entry)
		if (m->cb != NULL) {
			answer(m, NULL, FAILURE_UPGRADING);
			return true;
		}
	return false;
}

/* ---- ipc_peer.h ---- */

static struct message *
sent(struct ipc_peer *p, enum ipc_type type, uint64_t request, const void *msg)
{
	struct err err;

	if (ipc_permit(type, IPC_ROLE_ADMIND, p->role, IPC_STATE_OPEN, &err) ==
	    -1)
		fail_msg("%s", err.text);
	return message(p, type, request, msg);
}

int
ipc_send(struct ipc_peer *p, enum ipc_type type, const void *msg)
{
	(void)sent(p, type, 0, msg);
	return 0;
}

int
ipc_answer(
    struct ipc_peer *p, uint64_t request, enum ipc_type type, const void *msg)
{
	(void)sent(p, type, request, msg);
	return 0;
}

int
ipc_answer_ok(struct ipc_peer *p, uint64_t request)
{
	struct ipc_ok ok = {0};

	return ipc_answer(p, request, IPC_OK, &ok);
}

int
ipc_refuse(struct ipc_peer *p, uint64_t request, enum failure f,
    const char *text, uint64_t retry_after_ms)
{
	struct ipc_refused m = {.failure = (uint16_t)f,
	    .message = ipc_str(text),
	    .retry_after_ms = retry_after_ms};

	return ipc_answer(p, request, IPC_REFUSED, &m);
}

int
ipc_request(struct ipc_peer *p, enum ipc_type type, const void *msg,
    int timeout_ms, ipc_answer_cb *cb, void *arg, uint64_t *id)
{
	struct message *m = sent(p, type, ++requests, msg);

	m->cb = cb;
	m->arg = arg;
	*id = requests;
	return 0;
}

void
ipc_forget(struct ipc_peer *p, uint64_t id)
{
	fail_msg("nobody forgets a question");
}

void
ipc_peer_close(struct ipc_peer *p)
{
	fail_msg("the connection was given up");
}

size_t
ipc_peer_queued(const struct ipc_peer *p)
{
	return p->queued;
}

void *
ipc_peer_data(const struct ipc_peer *p)
{
	return p->data;
}

void
ipc_peer_set_data(struct ipc_peer *p, void *data)
{
	p->data = data;
}

struct ipc_peer *
ipc_client_peer(struct ipc_client *c)
{
	return c != NULL && c->up ? c->peer : NULL;
}

unsigned
ipc_client_role(const struct ipc_client *c)
{
	return c != NULL ? c->peer->role : 0;
}

bool
ipc_client_other_build(const struct ipc_client *c)
{
	return false;
}

void
ipc_server_each(
    struct ipc_server *s, void (*f)(struct ipc_peer *, void *), void *arg)
{
	for (size_t i = 0; s != NULL && i < s->n; i++)
		f(s->peer[i], arg);
}
