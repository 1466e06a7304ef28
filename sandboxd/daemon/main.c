/*
 * mcpbox-sandboxd: the broker between admind, which authorises a call,
 * gatewayd, which wants it run, and the pool that runs it.
 *
 * The socket alone decides which messages a peer may send: HELD only from
 * admind's socket, RUN from each listener's gateway for that listener's
 * contexts, CANCEL from the connection that ran a call or from admind. So a
 * taken-over gatewayd can run the calls authorised for it, once, with the
 * authorised arguments, and end these. It sees results, never code, secrets or
 * another listener's calls.
 */
#include <event2/event.h>

#include <seccomp.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "closer.h"
#include "confine.h"
#include "doctor.h"
#include "drain.h"
#include "early.h"
#include "heap.h"
#include "ids.h"
#include "log.h"
#include "proc.h"
#include "service.h"
#include "settings.h"
#include "vault_key.h"
#include "withdrawn.h"

enum {
	SWEEP_MS = 250, /* expiry of contexts, deadlines after a sleep */
};

struct sandboxd {
	struct proc proc;
	struct held_set held;
	struct calls *calls;
	struct records *records;
	struct pool *pool;
	struct vault_key key;
	struct ipc_peer *admind; /* the newest connection, or NULL */
	struct drain drain;
	struct event *sweep;
	size_t records_max;
	struct heap heap;
	struct withdrawn withdrawn;
	struct buf layers;
};

/* One of the sockets by which a RUN may come. */
struct door {
	struct sandboxd *s;
	uint8_t listener;
};

/* --- admind: contexts in, records out. --------------------------------- */

struct naming {
	struct ipc_peer *peer;
	uint8_t state; /* of EPOCH_ITEM */
	uint32_t count;
};

static void
name_one(struct table_node *n, void *arg)
{
	struct naming *x = arg;
	struct ipc_epoch_item m = {
	    .execution = *(const struct ipc_id *)n->key, .state = x->state};

	(void)ipc_send(x->peer, IPC_EPOCH_ITEM, &m);
	x->count++;
}

/* Tells admind which executions this process still answers for. Only after that
 * may admind's sweep close all other executions as lost. */
static void
name_all(struct sandboxd *s, struct ipc_peer *p)
{
	struct ipc_epoch_begin b = {.epoch = *ipc_hello_epoch()};
	struct naming x = {.peer = p, .state = 1};
	struct ipc_epoch_end e;

	(void)ipc_send(p, IPC_EPOCH_BEGIN, &b);
	table_each(&s->held.by_id, name_one, &x);
	x.state = 2;
	calls_each(s->calls, name_one, &x);
	x.state = 3;
	records_each(s->records, name_one, &x);
	e.count = x.count;
	(void)ipc_send(p, IPC_EPOCH_END, &e);
}

/* Takes admind's new connection. Records of an earlier process are sent before
 * our executions are named: the naming lets admind end that process's calls. */
static void
on_admind_up(struct ipc_peer *p, void *arg)
{
	struct sandboxd *s = ((struct door *)arg)->s;

	if (records_inherited(s->records) == 0)
		name_all(s, p);
	s->admind = p;
	records_peer(s->records, p);
	calls_admind(s->calls, p);
}

/* Names our executions once admind has all records of the earlier process. */
static void
on_settled(void *arg)
{
	struct sandboxd *s = arg;

	if (s->admind != NULL)
		name_all(s, s->admind);
}

static int
on_held(struct sandboxd *s, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_held m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	if (s->proc.stopping) {
		(void)ipc_refuse(p, m.request, FAILURE_UPGRADING,
		    "the sandbox is being restarted", CALL_RETRY_MS);
		return 0;
	}
	/* Each accepted context ends in a record. Without room for all records,
	 * admind would never learn how some calls ended. */
	if (s->held.by_id.count + calls_count(s->calls) +
		records_count(s->records) >=
	    s->records_max) {
		(void)ipc_refuse(p, m.request, FAILURE_BUSY,
		    "too many calls are open or unrecorded",
		    calls_retry_ms(s->calls));
		return 0;
	}
	if (calls_has(s->calls, &m.execution) ||
	    records_has(s->records, &m.execution)) {
		(void)ipc_refuse(p, m.request, FAILURE_CONFLICT,
		    "this execution id was used", 0);
		return 0;
	}
	if (held_add(&s->held, &m.execution, m.listener, m.context,
		now_boot_ms(), &e) != 0 ||
	    held_arguments(&s->held, &m.execution, m.arguments, &e) != 0) {
		log_event(LOG_LV_WARN, "held_refused", "%s", e.text);
		(void)ipc_refuse(p, m.request, e.failure, e.text,
		    e.failure == FAILURE_BUSY ? calls_retry_ms(s->calls)
					      : CALL_RETRY_MS);
		return 0;
	}
	(void)ipc_answer_ok(p, m.request);
	early_begin(s->calls, held_find(&s->held, &m.execution));
	return 0;
}

/*
 * Takes a server's new grants: a host was added or withdrawn. The vault sealed
 * them (held_regrant), so admind can only pass them on.
 */
static int
on_regrant(struct sandboxd *s, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_regrant m;
	struct regrant r;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	if (held_regrant(&s->held, &m.server, m.context, &r, &e) == 0) {
		held_grant_all(&s->held, &r);
		calls_regrant(s->calls, &r);
		(void)ipc_answer_ok(p, m.request);
	} else {
		log_event(LOG_LV_WARN, "regrant_refused", "%s", e.text);
		(void)ipc_refuse(
		    p, m.request, e.failure, e.text, CALL_RETRY_MS);
	}
	held_regrant_free(&r);
	return 0;
}

/* --- RUN and CANCEL. ---------------------------------------------------- */

static int
on_run(struct door *d, struct ipc_peer *p, struct ipc_frame *f)
{
	struct sandboxd *s = d->s;
	struct held *h = NULL;
	enum failure why;
	struct ipc_run m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	switch (
	    held_take(&s->held, &m.execution, d->listener, m.arguments, &h)) {
	case HELD_OK: /* a refusal is recorded before the answer */
		if (calls_run(s->calls, p, m.request, h, m.arguments) == 0)
			return 0;
		calls_refuse_held(s->calls, h, OUTCOME_REFUSED, FAILURE_BUSY);
		(void)ipc_refuse(
		    p, m.request, FAILURE_BUSY, "no memory", CALL_RETRY_MS);
		return 0;
	case HELD_UNKNOWN:
		/* An honest gateway gets here, too, after our restart or the
		 * end of the context's time. Nothing ran. */
		if ((why = withdrawn_why(&s->withdrawn, &m.execution)) !=
		    FAILURE_NONE)
			(void)ipc_refuse(p, m.request, why,
			    why == FAILURE_REVOKED
				? "the tool's approval was withdrawn"
				: "the tool's server was stopped, or the tool "
				  "disabled",
			    0);
		else if (s->proc.stopping && !calls_has(s->calls, &m.execution))
			(void)ipc_refuse(p, m.request, FAILURE_UPGRADING,
			    "the sandbox is being restarted", CALL_RETRY_MS);
		else if (calls_has(s->calls, &m.execution) ||
		    records_has(s->records, &m.execution))
			(void)ipc_refuse(p, m.request, FAILURE_CONFLICT,
			    "this execution id was used", 0);
		else
			(void)ipc_refuse(p, m.request,
			    FAILURE_SANDBOX_UNAVAILABLE,
			    "this sandbox holds no such call", CALL_RETRY_MS);
		return 0;
	case HELD_WRONG_LISTENER:
		log_event(LOG_LV_WARN, "run_refused",
		    "%s: the call belongs to another listener",
		    ipc_peer_name(p));
		calls_refuse_held(
		    s->calls, h, OUTCOME_REFUSED, FAILURE_FORBIDDEN);
		(void)ipc_refuse(p, m.request, FAILURE_FORBIDDEN,
		    "this call belongs to another listener", 0);
		return 0;
	case HELD_WRONG_DIGEST:
		log_event(LOG_LV_WARN, "run_refused",
		    "%s: the arguments are not the authorised ones",
		    ipc_peer_name(p));
		calls_refuse_held(
		    s->calls, h, OUTCOME_REFUSED, FAILURE_FORBIDDEN);
		(void)ipc_refuse(p, m.request, FAILURE_FORBIDDEN,
		    "the arguments are not those that were authorised", 0);
		return 0;
	}
	return -1;
}

/*
 * Cancels a call. A gateway ends calls that run for its own connection, and
 * contexts held for its own listener: a client that left between authorisation
 * and RUN must not keep a place in the set of held contexts. Any other id is
 * unknown to a gateway. admind may end any call or context.
 */
static int
on_cancel(struct door *d, struct ipc_peer *p, struct ipc_frame *f)
{
	bool admind = d->listener == LISTENER_ADMIND;
	enum failure failure = FAILURE_KILLED;
	struct ipc_cancel m;
	struct held *h;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	if (admind &&
	    (m.failure == FAILURE_REVOKED || m.failure == FAILURE_STOPPED))
		failure = (enum failure)m.failure;
	if ((h = held_remove(&d->s->held, &m.execution,
		 admind ? 0 : (uint8_t)d->listener)) == NULL) {
		(void)calls_cancel(
		    d->s->calls, &m.execution, admind ? NULL : p, failure);
		return 0;
	}
	/* Without a failure, admind has no row that a record could close. */
	if (admind && m.failure == FAILURE_NONE) {
		early_drop(d->s->calls, h);
		held_free(h);
		return 0;
	}
	if (failure != FAILURE_KILLED)
		withdrawn_add(&d->s->withdrawn, &m.execution, failure);
	calls_refuse_held(d->s->calls, h, OUTCOME_KILLED, failure);
	return 0;
}

/* Attaches admind to a task. Starts nothing, so ATTACH may come often. */
static int
on_attach(struct sandboxd *s, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_attach m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	if (!calls_attach(s->calls, &m.execution, p, m.request))
		(void)ipc_refuse(p, m.request, FAILURE_NOT_FOUND,
		    "no task of this id runs here; its record says how it "
		    "ended",
		    0);
	return 0;
}

/* Takes a client's answer, if the call's own peer sent it (park_answer). */
static int
on_call_answer(struct sandboxd *s, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_call_answer m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	park_answer(s->calls, &m.execution, p, m.number, m.json);
	return 0;
}

static int
on_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct door *d = arg;

	switch (f->type) {
	case IPC_RUN:
		return on_run(d, p, f);
	case IPC_CANCEL:
		return on_cancel(d, p, f);
	case IPC_ATTACH:
		return on_attach(d->s, p, f);
	case IPC_CALL_ANSWER:
		return on_call_answer(d->s, p, f);
	case IPC_HELD:
		return on_held(d->s, p, f);
	case IPC_REGRANT:
		return on_regrant(d->s, p, f);
	case IPC_STORE_ASK:
		return depot_ask(calls_depot(d->s->calls), p, f);
	default:
		return -1;
	}
}

static void
on_down(struct ipc_peer *p, void *arg)
{
	struct sandboxd *s = ((struct door *)arg)->s;

	calls_peer_gone(s->calls, p);
	depot_gone(calls_depot(s->calls), p);
	if (p == s->admind) {
		s->admind = NULL;
		records_peer(s->records, NULL);
		calls_admind(s->calls, NULL);
	}
}

/* --- mcpboxctl. --------------------------------------------------------- */

static int
on_ctl(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct sandboxd *s = arg;
	struct ipc_doctor_report m;
	struct ipc_doctor q;
	char memory[256];
	struct buf b, pool;
	struct err e;

	if (f->type != IPC_DOCTOR || ipc_decode(f, &q, &e) != 0)
		return -1;
	buf_init(&b, IPC_FRAME_MAX);
	buf_init(&pool, 4096);
	calls_memory_layer(s->calls, memory, sizeof(memory));
	calls_layers(s->calls, &pool);
	nets_layer(calls_nets(s->calls), &pool);
	buf_putc(&pool, '\0');
	doctor_report(&b, (const char *)s->layers.p, memory,
	    pool.failed ? "" : (const char *)pool.p, pool_spawn_layers(s->pool),
	    pool_layers(s->pool), nets_egress_layers(calls_nets(s->calls)),
	    depot_layers(calls_depot(s->calls)), s->held.have_key);
	buf_free(&pool);
	m.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		(void)ipc_refuse(p, q.request, FAILURE_BUSY, "no memory", 0);
	else
		(void)ipc_answer(p, q.request, IPC_DOCTOR_REPORT, &m);
	buf_free(&b);
	return 0;
}

/* --- Start. ------------------------------------------------------------- */

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct sandboxd *s = arg;
	uint64_t now = now_boot_ms();
	struct held *h;

	while ((h = held_expired(&s->held, now)) != NULL)
		calls_refuse_held(
		    s->calls, h, OUTCOME_REFUSED, FAILURE_TIMEOUT);
	calls_sweep(s->calls, now);
	runners_sweep(calls_runners(s->calls), now);
	if (calls_count(s->calls) == 0)
		heap_rest(&s->heap, calls_ended(s->calls));
}

static struct ipc_server *
listen_at(struct sandboxd *s, const char *name, enum ipc_role peer, uid_t user,
    const struct ipc_handlers *handlers, void *arg)
{
	struct ipc_server *server = NULL;
	char path[128];
	struct err e;

	if (proc_socket_path(
		&s->proc, "sandboxd", name, path, sizeof(path), &e) != 0 ||
	    (server = ipc_server_new(s->proc.base, path, name,
		 IPC_ROLE_SANDBOXD, peer, &user, 1, handlers, arg, &e)) == NULL)
		log_fatal("listen", "%s", e.text);
	return server;
}

static void
open_doors(struct sandboxd *s)
{
	static const struct ipc_handlers gateway = {
	    .message = on_message, .down = on_down};
	static const struct ipc_handlers admind = {
	    .up = on_admind_up, .message = on_message, .down = on_down};
	static const struct ipc_handlers ctl = {.message = on_ctl};
	static struct door local, tunnel, inner;
	const struct conf *c = s->proc.conf;

	local = (struct door){s, LISTENER_LOCAL};
	tunnel = (struct door){s, LISTENER_TUNNEL};
	inner = (struct door){s, LISTENER_ADMIND};
	s->drain.gateways[0] = listen_at(s, "gateway-local", IPC_ROLE_GATEWAY,
	    conf_user(c, "gateway_local_user"), &gateway, &local);
	s->drain.gateways[1] = listen_at(s, "gateway-tunnel", IPC_ROLE_GATEWAY,
	    conf_user(c, "gateway_tunnel_user"), &gateway, &tunnel);
	listen_at(s, "admind", IPC_ROLE_ADMIND, conf_user(c, "admind_user"),
	    &admind, &inner);
	listen_at(s, "ctl", IPC_ROLE_CTL, 0, &ctl, s);
}

static void
confine(struct sandboxd *s)
{
	/* One socketpair for each call: the runner's channel. */
	static const struct confine_rule rules[] = {
	    {.syscall = SCMP_SYS(socketpair), .arg = -1},
	};
	struct confine_spec spec = {
	    .process = "sandboxd",
	    .rules = rules,
	    .nrules = sizeof(rules) / sizeof(rules[0]),
	    .connect_unix = true,
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true,
	};
	struct err e;

	buf_init(&s->layers, 4096);
	if (confine_self(&spec, &s->layers, &e) != 0)
		log_fatal("confine", "%s", e.text);
	buf_putc(&s->layers, '\0');
	if (s->layers.failed)
		log_fatal("confine", "no memory");
	ipc_hello_set("mcpbox-sandboxd", (const char *)s->layers.p);
}

/* Opens outgoing connections, after HELLO's content is known. */
static void
connect_out(struct sandboxd *s)
{
	char path[128], peek[128];
	struct err e;

	if (vault_key_connect(&s->key, &s->proc, &s->held, &e) != 0)
		log_fatal("vault", "%s", e.text);
	if (proc_socket_path(&s->proc, "sandboxd-spawn", "sandboxd", path,
		sizeof(path), &e) != 0 ||
	    (s->pool = pool_new(s->proc.base, path,
		 (unsigned)conf_int(s->proc.conf, "slots"),
		 &runners_pool_events, calls_runners(s->calls), &e)) == NULL)
		log_fatal("pool", "%s", e.text);
	if (proc_socket_path(
		&s->proc, "egress", "sandboxd", path, sizeof(path), &e) != 0 ||
	    proc_socket_path(
		&s->proc, "egress", "peek", peek, sizeof(peek), &e) != 0 ||
	    nets_connect(calls_nets(s->calls), path, peek, &e) != 0)
		log_fatal("egress", "%s", e.text);
	if (proc_socket_path(&s->proc, "sandboxd-store", "sandboxd", path,
		sizeof(path), &e) != 0 ||
	    depot_connect(calls_depot(s->calls), path, &e) != 0)
		log_fatal("store", "%s", e.text);
	calls_pool(s->calls, s->pool);
	pool_recycle_after(
	    s->pool, (uint64_t)conf_int(s->proc.conf, "zygote_forks"));
}

/* Writes the line of `systemctl status`. */
static void
say_status(char *buf, size_t len, void *arg)
{
	const struct sandboxd *s = arg;

	calls_status(s->calls, buf, len,
	    s->admind == NULL ? ", waiting for admind" : "");
}

int
main(int argc, char **argv)
{
	static const struct timeval tv = {.tv_usec = SWEEP_MS * 1000};
	static struct sandboxd s;
	struct calls_conf cc;
	const struct conf *c;
	struct err e;

	proc_check_with(settings_check);
	proc_start(&s.proc, "sandboxd", argc, argv);
	if (closer_start(&e) < 0)
		log_fatal("closer", "%s", e.text);
	heap_start();
	c = s.proc.conf;
	settings_calls(c, &cc);
	s.records_max = (size_t)conf_int(c, "records_max");
	s.records = records_new(s.proc.base, s.records_max, ipc_hello_epoch());
	s.sweep = event_new(s.proc.base, -1, EV_PERSIST, on_sweep, &s);
	if (s.records == NULL || s.sweep == NULL ||
	    event_add(s.sweep, &tv) != 0 ||
	    held_init(&s.held, (size_t)conf_int(c, "held_max"),
		ipc_hello_epoch()) != 0 ||
	    (s.calls = calls_new(s.proc.base, &cc, s.records)) == NULL ||
	    drain_init(&s.drain, &s.proc, &s.held, s.calls, s.records) != 0)
		log_fatal("start", "no memory");
	held_defaults(&s.held, cc.limit);
	s.held.installer = settings_installer(c);
	/* Called before confinement, after which no file can be opened. */
	if (records_ledger(
		s.records, conf_str(c, "run_dir"), on_settled, &s, &e) != 0)
		log_fatal("ledger", "%s", e.text);
	open_doors(&s);
	confine(&s);
	connect_out(&s);
	log_event(LOG_LV_INFO, "ready", "%d slots", (int)conf_int(c, "slots"));
	service_status_from(say_status, &s);
	service_ready(s.proc.base, "waiting for a pool");
	return proc_run(&s.proc);
}
