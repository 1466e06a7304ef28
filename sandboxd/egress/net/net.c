#include "net.h"

#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "ids.h"
#include "log.h"

static struct net_list *
chain(struct egress *g, uint64_t id)
{
	return &g->chains[id % EGRESS_CHAINS];
}

struct net *
net_find(struct egress *g, uint64_t id)
{
	struct net *n;

	TAILQ_FOREACH(n, chain(g, id), link)
		if (n->id == id)
			return n;
	return NULL;
}

/* Copies a list after checking all its lines: later readers take a malformed
 * line for the list's end, without an error. */
static int
copy(struct ipc_bytes list, unsigned max, uint8_t **out, struct err *e)
{
	struct ipc_bytes rest = list;
	struct netgrant g;
	unsigned lines = 0;
	uint8_t *p;
	int rc;

	while ((rc = netgrant_next(&rest, &g, e)) == 1)
		if (++lines > max)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "more than %u hosts", max);
	if (rc < 0)
		return -1;
	if ((p = malloc(list.n + 1)) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory for a call's hosts");
	memcpy(p, list.n ? list.p : (const uint8_t *)"", list.n);
	*out = p;
	return 0;
}

struct net *
net_open(struct egress *g, struct ipc_peer *owner, const struct ipc_net_open *m,
    struct err *e)
{
	struct net *n;

	if (net_find(g, m->net) != NULL) {
		err_set(e, FAILURE_INVALID_PARAMS, "net %llu is open already",
		    (unsigned long long)m->net);
		return NULL;
	}
	if (m->requires_len > m->hosts.n) {
		err_set(e, FAILURE_INVALID_PARAMS, "requires_len is too long");
		return NULL;
	}
	if ((n = calloc(1, sizeof(*n))) == NULL) {
		err_set(e, FAILURE_BUSY, "no memory for a call's net");
		return NULL;
	}
	if (copy(ipc_bytes(m->hosts.p, m->requires_len), NET_REQUIRES_MAX,
		&n->requires, e) < 0 ||
	    copy(ipc_bytes(m->hosts.p + m->requires_len,
		     m->hosts.n - m->requires_len),
		NET_GRANTS_MAX, &n->grants, e) < 0) {
		free(n->requires);
		free(n);
		return NULL;
	}
	n->requires_len = m->requires_len;
	n->grants_len = m->hosts.n - m->requires_len;
	n->egress = g;
	n->owner = owner;
	n->id = m->net;
	n->execution = m->execution;
	n->connections_max = m->connections;
	n->bytes_max = m->bytes;
	n->minute_max = m->bytes_minute;
	records_init(&n->records);
	TAILQ_INIT(&n->waiting);
	TAILQ_INIT(&n->running);
	TAILQ_INIT(&n->flows);
	TAILQ_INIT(&n->relays);
	TAILQ_INIT(&n->resolvers);
	TAILQ_INSERT_HEAD(chain(g, n->id), n, link);
	return n;
}

int
net_grants(struct net *n, struct ipc_bytes list, struct err *e)
{
	uint8_t *p = NULL;

	if (copy(list, NET_GRANTS_MAX, &p, e) < 0)
		return -1;
	free(n->grants);
	n->grants = p;
	n->grants_len = list.n;
	return 0;
}

void
net_free(struct net *n)
{
	if (n->in_turn)
		TAILQ_REMOVE(&n->egress->ready, n, turn);
	TAILQ_REMOVE(chain(n->egress, n->id), n, link);
	names_free(&n->names);
	records_free(&n->records);
	free(n->requires);
	free(n->grants);
	free(n);
}

static bool
some(const uint8_t *p, size_t len, bool declared, bool literal,
    enum netgrant_proto proto, const char *host, bool is_address, uint16_t port)
{
	struct ipc_bytes list = ipc_bytes(p, len);
	struct netgrant g;

	while (netgrant_next(&list, &g, NULL) == 1) {
		/* In a declaration "any port" is enough, because the grant,
		 * which opens the host, names the port. */
		if (literal &&
		    (g.any || g.form != GRANT_HOST_IP ||
			(!declared && g.port == 0)))
			continue;
		if (netgrant_covers(
			&g, declared, proto, ipc_str(host), is_address, port))
			return true;
	}
	return false;
}

static enum net_right
missing(bool declared, bool granted)
{
	if (declared)
		return granted ? NET_RIGHT : NET_UNGRANTED;
	return granted ? NET_UNDECLARED : NET_NEITHER;
}

static enum net_right
right(const struct net *n, bool literal, enum netgrant_proto proto,
    const char *host, bool is_address, uint16_t port)
{
	return missing(some(n->requires, n->requires_len, true, literal, proto,
			   host, is_address, port),
	    some(n->grants, n->grants_len, false, literal, proto, host,
		is_address, port));
}

enum net_right
net_covers(const struct net *n, enum netgrant_proto proto, const char *host,
    bool is_address, uint16_t port)
{
	return right(n, false, proto, host, is_address, port);
}

enum net_right
net_literal(const struct net *n, enum netgrant_proto proto, const char *address,
    uint16_t port)
{
	return right(n, true, proto, address, true, port);
}

enum net_right
net_resolves(const struct net *n, const char *name)
{
	return missing(netgrant_names(ipc_bytes(n->requires, n->requires_len),
			   ipc_str(name)),
	    netgrant_names(ipc_bytes(n->grants, n->grants_len), ipc_str(name)));
}

const char *
net_missing(enum net_right right)
{
	switch (right) {
	case NET_UNDECLARED:
		return "not declared by the version: name it in `requires` "
		       "(mcpbox_update_tool)";
	case NET_UNGRANTED:
		return "not granted to its server: ask with "
		       "mcpbox_request_network_access";
	case NET_NEITHER:
		return "neither declared nor granted: name it in `requires` "
		       "(mcpbox_update_tool), and ask with "
		       "mcpbox_request_network_access";
	default:
		return "nothing is missing";
	}
}

void
net_tell(struct net *n, enum net_event kind, const char *host, uint16_t port,
    const char *text)
{
	struct ipc_net_event m = {.net = n->id,
	    .kind = (uint8_t)kind,
	    .host = ipc_str(host),
	    .port = port,
	    .text = ipc_str(text)};
	char id[33];

	if (kind == NET_EVENT_REFUSED || kind == NET_EVENT_FAILED ||
	    kind == NET_EVENT_NEVER) {
		if (n->events == NET_EVENTS_MAX)
			return;
		n->events++;
	}
	hex_encode(n->execution.b, sizeof(n->execution.b), id);
	log_event(LOG_LV_DEBUG, "net_event", "call %s: %s", id, text);
	if (n->owner != NULL)
		(void)ipc_send(n->owner, IPC_NET_EVENT, &m);
}

/*
 * Counts bytes in the last 60 seconds, second by second: seconds that leave the
 * window are subtracted as time passes.
 */
static void
minute(struct net *n, uint64_t bytes)
{
	const uint64_t now = record_now_us() / 1000000;

	if (now - n->at_s >= NET_RATE_SECONDS) {
		memset(n->second, 0, sizeof(n->second));
		n->minute = 0;
		n->at_s = now;
	}
	while (n->at_s < now) {
		uint64_t *s = &n->second[++n->at_s % NET_RATE_SECONDS];

		n->minute -= *s;
		*s = 0;
	}
	n->second[now % NET_RATE_SECONDS] += bytes;
	n->minute += bytes;
}

void
net_count(struct net *n, uint64_t bytes)
{
	char text[128];

	if (bytes == 0)
		return;
	n->bytes += bytes;
	minute(n, bytes);
	if (n->bytes > n->bytes_max && !n->told_bytes) {
		n->told_bytes = n->over = true;
		snprintf(text, sizeof(text),
		    "the call's connections moved more than %llu bytes",
		    (unsigned long long)n->bytes_max);
		net_tell(n, NET_EVENT_BYTES, "", 0, text);
	}
	if (n->minute > n->minute_max && !n->told_rate) {
		n->told_rate = n->over = true;
		snprintf(text, sizeof(text),
		    "the call's connections moved more than %llu bytes in a "
		    "minute",
		    (unsigned long long)n->minute_max);
		net_tell(n, NET_EVENT_RATE, "", 0, text);
	}
}
