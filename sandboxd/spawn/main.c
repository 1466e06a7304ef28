/*
 * mcpbox-sandboxd-spawn: the only process of the suite that keeps a capability
 * of the host: CAP_SETUID and CAP_SETGID, to write one id map.
 *
 * It listens for sandboxd alone (SO_PEERCRED) and serves one request,
 * POOL_START. The request's content is one number, which the answer repeats.
 * spawn's configuration decides everything else. So an attacker who has taken
 * over sandboxd can only start a pool again, and chooses no path, no id and no
 * map.
 *
 * There is at most one pool. It ends when sandboxd's connection closes, when
 * another POOL_START comes, and when spawn ends. However spawn ends, the kernel
 * closes the liveness socket, which pool-init watches.
 */
#include <linux/capability.h>

#include <event2/event.h>

#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "confine.h"
#include "deny.h"
#include "ipc_peer.h"
#include "layer.h"
#include "log.h"
#include "nspool.h"
#include "proc.h"
#include "service.h"

struct spawn {
	struct proc proc;
	struct nspool_map map;
	struct nspool pool;
	struct event *ended;    /* the pool's pidfd is readable */
	struct ipc_peer *owner; /* the connection the pool belongs to */
	/* A POOL_START that waits for the old pool's end. */
	struct ipc_peer *asker;
	uint64_t asker_request, asker_generation;
	int cgroup; /* this unit's, or -1: see cgroup.h */
};

static void start_pool(struct spawn *, struct ipc_peer *, uint64_t, uint64_t);

/* Reaps pool-init, which has ended, and serves a POOL_START that waits. */
static void
on_pool_ended(evutil_socket_t fd, short what, void *arg)
{
	struct spawn *s = arg;
	struct ipc_peer *asker = s->asker;

	event_free(s->ended);
	s->ended = NULL;
	nspool_reap(&s->pool);
	log_event(LOG_LV_INFO, "pool_ended", "the pool ended");
	service_status("no pool, waiting for sandboxd");
	s->owner = s->asker = NULL;
	if (asker != NULL)
		start_pool(s, asker, s->asker_request, s->asker_generation);
}

static void
start_pool(
    struct spawn *s, struct ipc_peer *p, uint64_t request, uint64_t generation)
{
	struct ipc_pool_started m = {.generation = generation};
	const struct nspool_paths paths = {
	    .libexec = conf_str(s->proc.conf, "libexec_dir"),
	    .modules = conf_str(s->proc.conf, "module_dir"),
	    .commands = conf_str(s->proc.conf, "commands"),
	};
	const char *layer = "cgroup";
	struct err e;
	int group = -1, rc = 0;

	/*
	 * Without its cgroup the pool would run without the limits that were
	 * promised at start. So POOL_START is refused, and sandboxd tries
	 * again.
	 */
	if (s->cgroup >= 0 && (group = cgroup_renew(s->cgroup, &e)) < 0)
		rc = -1;
	if (rc == 0) {
		layer = "pool_namespaces";
		rc = nspool_start(
		    &s->pool, &s->map, &paths, group, &m.channel, &e);
	}
	if (group >= 0)
		close(group);
	if (rc != 0) {
		log_event(LOG_LV_ERR, "pool_start", "%s. %s", e.text,
		    layer_fix(layer, strlen(layer)));
		(void)ipc_refuse(
		    p, request, FAILURE_SANDBOX_UNAVAILABLE, e.text, 1000);
		return;
	}
	s->ended =
	    event_new(s->proc.base, s->pool.pidfd, EV_READ, on_pool_ended, s);
	if (s->ended == NULL || event_add(s->ended, NULL) != 0) {
		if (s->ended != NULL)
			event_free(s->ended);
		s->ended = NULL;
		nspool_kill(&s->pool);
		nspool_reap(&s->pool);
		close(m.channel);
		(void)ipc_refuse(
		    p, request, FAILURE_SANDBOX_UNAVAILABLE, "no memory", 1000);
		return;
	}
	s->owner = p;
	m.uids = s->map.count;
	log_event(LOG_LV_INFO, "pool_started", "pool-init is pid %d",
	    (int)s->pool.pid);
	service_status("pool-init is pid %d", (int)s->pool.pid);
	(void)ipc_answer(p, request, IPC_POOL_STARTED, &m);
	close(m.channel);
}

static int
on_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct spawn *s = arg;
	struct ipc_pool_start m;
	struct err e;

	if (f->type != IPC_POOL_START || ipc_decode(f, &m, &e) != 0)
		return -1;
	if (s->asker != NULL) /* a second one while the first waits */
		return -1;
	if (s->pool.pid != 0) {
		s->asker = p;
		s->asker_request = m.request;
		s->asker_generation = m.generation;
		nspool_kill(&s->pool);
		return 0;
	}
	start_pool(s, p, m.request, m.generation);
	return 0;
}

static void
on_down(struct ipc_peer *p, void *arg)
{
	struct spawn *s = arg;

	if (s->asker == p)
		s->asker = NULL;
	if (s->owner == p) {
		s->owner = NULL;
		nspool_kill(&s->pool);
	}
}

int
main(int argc, char **argv)
{
	static const int keep[] = {CAP_SETUID, CAP_SETGID, -1};
	static const struct ipc_handlers handlers = {
	    .message = on_message, .down = on_down};
	struct spawn s = {.pool = {.pidfd = -1, .liveness = -1}, .cgroup = -1};
	struct confine_spec spec = {
	    .process = "sandboxd-spawn", .keep_caps = keep};
	struct ipc_server *server;
	const char *carried;
	struct buf layers;
	char path[128];
	struct err e;
	uid_t user;
	int rc;

	proc_start(&s.proc, "sandboxd-spawn", argc, argv);
	s.map.uid = geteuid();
	s.map.gid = getegid();
	s.map.base = (uint32_t)conf_int(s.proc.conf, "runner_uid_base");
	s.map.count = (uint32_t)conf_int(s.proc.conf, "runner_uid_count");
	/* A range that holds our own uid would make a runner equal to the
	 * pool's root. */
	if (s.map.uid >= s.map.base && s.map.uid - s.map.base < s.map.count)
		log_fatal("config",
		    "the runners' range holds uid %u, which is "
		    "this process's",
		    (unsigned)s.map.uid);
	user = conf_user(s.proc.conf, "sandboxd_user");
	if (proc_socket_path(&s.proc, "sandboxd-spawn", "sandboxd", path,
		sizeof(path), &e) != 0 ||
	    (server = ipc_server_new(s.proc.base, path, "sandboxd",
		 IPC_ROLE_SPAWN, IPC_ROLE_SANDBOXD, &user, 1, &handlers, &s,
		 &e)) == NULL)
		log_fatal("listen", "%s", e.text);

	/*
	 * No Landlock, because a domain forbids mount, and children inherit the
	 * domain. No allow-list, because children inherit the list, too
	 * (deny.h).
	 */
	buf_init(&layers, 4096);
	if (confine_self(&spec, &layers, &e) != 0 || deny_load(&e) != 0)
		log_fatal("confine", "%s", e.text);
	buf_puts(&layers, "seccomp_deny_list=enforced\n");
	s.cgroup = cgroup_enter(&layers);
	buf_putc(&layers, '\0');
	if (layers.failed)
		log_fatal("confine", "no memory");
	ipc_hello_set("mcpbox-sandboxd-spawn", (const char *)layers.p);
	/* The line cgroup= names the mechanism for a call's limits. */
	carried = strstr((const char *)layers.p, "cgroup=");
	log_event(s.cgroup >= 0 ? LOG_LV_INFO : LOG_LV_WARN, "limits", "%.*s",
	    (int)strcspn(carried, "\n"), carried);
	log_event(LOG_LV_INFO, "ready", "runners are uids %u to %u", s.map.base,
	    s.map.base + s.map.count - 1);
	service_ready(s.proc.base, "no pool, waiting for sandboxd");
	rc = proc_run(&s.proc);
	nspool_kill(&s.pool);
	nspool_reap(&s.pool);
	if (s.ended != NULL)
		event_free(s.ended);
	if (s.cgroup >= 0)
		close(s.cgroup);
	ipc_server_free(server);
	buf_free(&layers);
	return rc;
}
