/* See net.h. */
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "ids.h"
#include "ipc_io.h"
#include "json_scan.h"
#include "log.h"
#include "net.h"

/*
 *	WAITING	NET_OPEN was sent, or will be when egress is there
 *	OPEN	egress knows the net, or will know it after a restart
 *	CLOSING	NET_CLOSE was sent
 */
enum net_state { NET_WAITING, NET_IS_OPEN, NET_CLOSING };

struct net {
	TAILQ_ENTRY(net) link;
	struct nets *all;
	enum net_state state;
	uint64_t id;
	const struct held *held;
	const struct net_owner *owner; /* NULL: gone */
	void *arg;
	uint64_t request; /* that waits for an answer, or 0 */
	bool sent;        /* NET_OPEN was sent to this egress process */
	bool torn;        /* was open in an earlier egress process */
	/* NET_OPEN was sent when egress came up, and has no answer yet; peek is
	 * linked only after the answer */
	bool anew;
};

/* For doctor. */
struct counts {
	unsigned open;
	uint64_t opened, refused, restarts;
};

struct nets {
	struct event_base *base;
	struct ipc_client *client;
	struct ipc_peer *peer; /* egress, or NULL */
	uint64_t away_ms;      /* when peer became NULL */
	char *peek_path;
	struct pool *pool;
	struct event *link; /* the next attempt to link peek */
	bool link_due;      /* link peek when egress knows the running calls */
	TAILQ_HEAD(, net) list;
	struct counts told;
};

static void
link_peek(struct nets *ns)
{
	(void)evtimer_del(ns->link);
	event_active(ns->link, EV_TIMEOUT, 0);
}

/* Links peek when egress knows the calls again. peek sends the questions it
 * kept as soon as there is a link, and egress would refuse questions of calls
 * that it does not know. */
static void
link_when_known(struct nets *ns)
{
	struct net *n;

	if (!ns->link_due)
		return;
	TAILQ_FOREACH(n, &ns->list, link)
		if (n->anew)
			return;
	ns->link_due = false;
	link_peek(ns);
}

static void
release(struct net *n)
{
	struct nets *ns = n->all;

	TAILQ_REMOVE(&ns->list, n, link);
	ns->told.open--;
	free(n);
	link_when_known(ns);
}

/* --- Opening. ------------------------------------------------------------ */

/* Frees the net, and tells its owner why. */
static void
not_opened(struct net *n, enum failure f, const char *text)
{
	const struct net_owner *owner = n->owner;
	void *arg = n->arg;

	n->all->told.refused++;
	release(n);
	if (owner != NULL)
		owner->opened(arg, f, text);
}

static void
open_refused(struct net *n, struct ipc_frame *f)
{
	struct ipc_refused m;
	char *text = NULL;
	struct err e;

	if (f != NULL && f->type == IPC_REFUSED && ipc_decode(f, &m, &e) == 0)
		text = ipc_strdup(m.message);
	log_event(LOG_LV_WARN, "net_refused", "egress: %s",
	    text != NULL ? text : "no answer in time");
	/* If the call runs already, it goes on without connections. */
	if (n->state == NET_WAITING)
		not_opened(n, FAILURE_SANDBOX_UNAVAILABLE,
		    text != NULL ? text
				 : "sandboxd-egress did not answer in time");
	free(text);
}

static void
on_opened(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct net *n = arg;

	n->request = 0;
	n->anew = false;
	link_when_known(n->all);
	/* egress ended. When it is back, nets_adopt() sends the request again
	 * for a net that is still open. */
	if (f == NULL && gone != FAILURE_BUSY)
		return;
	if (f == NULL || f->type != IPC_OK) {
		open_refused(n, f);
		return;
	}
	if (n->state != NET_WAITING)
		return;
	n->state = NET_IS_OPEN;
	n->all->told.opened++;
	if (n->owner != NULL)
		n->owner->opened(n->arg, FAILURE_NONE, NULL);
}

/* Sends NET_OPEN. If that fails, the connection is closed, and on_up sends
 * NET_OPEN again later. */
static void
send_open(struct net *n)
{
	const struct held *h = n->held;
	struct ipc_net_open m = {
	    .net = n->id,
	    .execution = h->id,
	    .connections = (uint32_t)h->limit[LIMIT_CONNECTIONS],
	    .bytes = h->limit[LIMIT_NETWORK_BYTES],
	    .bytes_minute = h->limit[LIMIT_NETWORK_RATE],
	    .requires_len = (uint32_t)h->requires.len,
	};
	struct buf both;

	buf_init(&both, h->requires.len + h->grants.len + 1);
	buf_put(&both, h->requires.p, h->requires.len);
	buf_put(&both, h->grants.p, h->grants.len);
	m.hosts = ipc_bytes(both.p, both.len);
	n->sent = !both.failed &&
	    ipc_request(n->all->peer, IPC_NET_OPEN, &m, NET_OPEN_MS, on_opened,
		n, &n->request) == 0;
	if (!n->sent)
		log_event(LOG_LV_ERR, "net_open", "a call was not opened");
	buf_free(&both);
}

struct net *
net_open(struct nets *ns, uint64_t id, const struct held *h,
    const struct net_owner *owner, void *arg, struct err *e)
{
	struct net *n;

	if (ns->peer == NULL && now_boot_ms() - ns->away_ms >= NET_AWAY_MS) {
		ns->told.refused++;
		(void)err_set(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "sandboxd-egress, by which calls reach the network, is "
		    "not there");
		return NULL;
	}
	if ((n = calloc(1, sizeof(*n))) == NULL) {
		(void)err_set(e, FAILURE_BUSY, "no memory");
		return NULL;
	}
	n->all = ns;
	n->id = id;
	n->held = h;
	n->owner = owner;
	n->arg = arg;
	TAILQ_INSERT_TAIL(&ns->list, n, link);
	ns->told.open++;
	if (ns->peer != NULL)
		send_open(n);
	return n;
}

void
net_grants(struct net *n)
{
	struct ipc_net_grants m = {.net = n->id};

	/* A NET_OPEN that was not sent yet will carry the new list. A closing
	 * net connects no more. If NET_GRANTS can't be sent, the connection is
	 * closed, and the next NET_OPEN carries the list. */
	if (n->state == NET_CLOSING || !n->sent)
		return;
	m.grants = ipc_bytes(n->held->grants.p, n->held->grants.len);
	(void)ipc_send(n->all->peer, IPC_NET_GRANTS, &m);
}

/* --- Closing. ------------------------------------------------------------ */

/* Takes the report. egress reads messages of strangers, so a report that is not
 * JSON is not taken. */
static bool
take_report(struct net *n, struct ipc_frame *f, struct net_report *r)
{
	struct ipc_net_report m;
	struct err e;

	if (f == NULL || f->type != IPC_NET_REPORT ||
	    ipc_decode(f, &m, &e) != 0 || m.net != n->id)
		return false;
	*r = (struct net_report){.bytes = m.bytes,
	    .connections = m.connections,
	    .refused = m.refused,
	    .json = m.json,
	    .torn = n->torn};
	if (m.json.n == 0 ||
	    (m.json.n <= NET_REPORT_MAX && m.json.p[0] == '[' &&
		json_scan(m.json.p, m.json.n, &e) == 0))
		return true;
	log_event(LOG_LV_WARN, "net_report", "egress: not a report");
	r->json = ipc_bytes(NULL, 0);
	return true;
}

static void
on_closed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct net *n = arg;
	const struct net_owner *owner = n->owner;
	void *owner_arg = n->arg;
	struct net_report r;
	bool known = take_report(n, f, &r);

	release(n);
	if (owner != NULL)
		owner->closed(owner_arg, known ? &r : NULL);
}

bool
net_close(struct net *n)
{
	struct ipc_net_close m = {.net = n->id};

	if (n->state == NET_CLOSING)
		return true;
	if (n->request != 0 && n->all->peer != NULL)
		ipc_forget(n->all->peer, n->request);
	n->request = 0;
	n->anew = false;
	if (n->sent &&
	    ipc_request(n->all->peer, IPC_NET_CLOSE, &m, NET_CLOSE_MS,
		on_closed, n, &n->request) == 0) {
		n->state = NET_CLOSING;
		n->held = NULL;
		link_when_known(n->all);
		return true;
	}
	release(n);
	return false;
}

void
net_drop(struct net *n)
{
	if (n == NULL)
		return;
	n->owner = NULL;
	(void)net_close(n);
}

/* --- peek's link. -------------------------------------------------------- */

static void
on_link(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval tv = {.tv_usec = NET_LINK_RETRY_MS * 1000};
	struct nets *ns = arg;
	struct err e;
	int sock, rc;

	if (ns->peer == NULL || ns->peek_path == NULL || ns->pool == NULL ||
	    !pool_ready(ns->pool))
		return;
	if ((sock = ipc_connect_path(ns->peek_path, true, &e)) == -1) {
		log_event(LOG_LV_WARN, "peek_link", "%s", e.text);
		(void)evtimer_add(ns->link, &tv);
		return;
	}
	rc = pool_peek_link(ns->pool, sock);
	close(sock);
	log_event(LOG_LV_INFO, "peek_link", "%s",
	    rc == 0 ? "peek has a connection to egress"
		    : "pool-init could not be told");
}

static void
on_pool(void *arg)
{
	link_peek(arg);
}

void
nets_pool(struct nets *ns, struct pool *pool)
{
	ns->pool = pool;
	pool_on_first_report(pool, on_pool, ns);
	link_peek(ns);
}

/* --- The connection. ----------------------------------------------------- */

static void
on_up(struct ipc_peer *p, void *arg)
{
	nets_adopt(arg, p);
}

void
nets_adopt(struct nets *ns, struct ipc_peer *p)
{
	struct net *n;

	ns->peer = p;
	log_event(
	    LOG_LV_INFO, "egress_up", "%u calls may connect", ns->told.open);
	/* No net is CLOSING: such nets ended with the old connection. */
	ns->link_due = true;
	TAILQ_FOREACH(n, &ns->list, link) {
		send_open(n);
		n->anew = n->sent;
	}
	link_when_known(ns);
}

static int
on_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct nets *ns = arg;
	struct ipc_net_event m;
	struct net *n;
	struct err e;

	if (f->type != IPC_NET_EVENT || ipc_decode(f, &m, &e) != 0)
		return -1;
	if (m.net == 0 && m.kind == NET_EVENT_LINK) {
		log_event(LOG_LV_WARN, "peek_link", "peek lost it");
		link_peek(ns);
		return 0;
	}
	/* An event of a net that has closed is dropped. */
	TAILQ_FOREACH(n, &ns->list, link)
		if (n->id == m.net)
			break;
	if (n != NULL && n->owner != NULL)
		n->owner->event(n->arg, &m);
	return 0;
}

static void
on_down(struct ipc_peer *p, void *arg)
{
	struct nets *ns = arg;
	struct net *n;

	if (ns->peer != p)
		return;
	ns->peer = NULL;
	ns->away_ms = now_boot_ms();
	ns->told.restarts++;
	log_event(
	    LOG_LV_WARN, "egress_lost", "%u calls may connect", ns->told.open);
	TAILQ_FOREACH(n, &ns->list, link) {
		n->sent = n->anew = false;
		n->torn = n->torn || n->state == NET_IS_OPEN;
	}
}

const struct ipc_handlers nets_handlers = {
    .up = on_up, .message = on_message, .down = on_down};

struct nets *
nets_new(struct event_base *base)
{
	struct nets *ns = calloc(1, sizeof(*ns));

	if (ns == NULL)
		return NULL;
	ns->base = base;
	ns->away_ms = now_boot_ms();
	TAILQ_INIT(&ns->list);
	if ((ns->link = evtimer_new(base, on_link, ns)) == NULL) {
		free(ns);
		return NULL;
	}
	return ns;
}

int
nets_connect(
    struct nets *ns, const char *path, const char *peek_path, struct err *e)
{
	if ((ns->peek_path = strdup(peek_path)) == NULL)
		return err_set(e, FAILURE_INTERNAL, "no memory");
	ns->client = ipc_client_new(ns->base, path, "sandboxd-egress",
	    IPC_ROLE_SANDBOXD, IPC_ROLE_EGRESS, &nets_handlers, ns, e);
	return ns->client != NULL ? 0 : -1;
}

void
nets_free(struct nets *ns)
{
	static const struct ipc_handlers nobody;
	struct net *n;

	if (ns == NULL)
		return;
	ns->link_due = false;
	while ((n = TAILQ_FIRST(&ns->list)) != NULL) {
		if (n->request != 0 && ns->peer != NULL)
			ipc_forget(ns->peer, n->request);
		release(n);
	}
	if (ns->peer != NULL)
		ipc_peer_handlers(ns->peer, &nobody, NULL);
	ipc_client_free(ns->client);
	event_free(ns->link);
	free(ns->peek_path);
	free(ns);
}

void
nets_layer(const struct nets *ns, struct buf *out)
{
	const struct counts *t = &ns->told;

	buf_putf(out,
	    "egress=%s %u calls may connect; %llu did, %llu were refused for "
	    "want of it; it was lost %llu times\n",
	    ns->peer != NULL ? "enforced" : "missing", t->open,
	    (unsigned long long)t->opened, (unsigned long long)t->refused,
	    (unsigned long long)t->restarts);
}

const char *
nets_egress_layers(const struct nets *ns)
{
	return ns->peer != NULL ? ipc_peer_layers(ns->peer) : "";
}
