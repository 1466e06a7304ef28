/* See callnet.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_internal.h"
#include "callnet.h"
#include "grantreq.h"
#include "ids.h"
#include "json_scan.h"
#include "jsonw.h"
#include "log.h"
#include "name.h"

/* The kind of CALL_EVENT for log lines, and the MCP level `warning`. */
enum { EVENT_LOG = 2, LEVEL_WARNING = 3 };

struct note {
	char host[GRANTREQ_HOST_MAX + 1];
	uint16_t port;
};

struct callnet {
	struct net *net; /* NULL: closed, or not opened */
	bool opened;
	/* The refused places, each once. */
	struct note note[CALLNET_NOTES];
	unsigned notes;
	bool missing; /* a grant would have helped */
	unsigned lines;
	struct buf words;      /* refusals as text for the error; redacted */
	struct redact *redact; /* made at the first refusal */
	/* The tool's error, while REPORTING. */
	enum failure failure;
	struct buf body, printed;
	struct result_dropped dropped;
};

static const struct net_owner owner;

/* --- Refusals. ------------------------------------------------------------ */

/* Composes the text of an event: one line of printable characters. */
static void
compose(const struct ipc_net_event *m, struct buf *out)
{
	static const char tool[] = NAME_MANAGEMENT;

	if (m->host.n > 0 && m->port != 0)
		buf_putf(out,
		    "Network access to %.*s port %u failed: ", (int)m->host.n,
		    (const char *)m->host.p, (unsigned)m->port);
	else if (m->host.n > 0)
		buf_putf(out, "Network access to %.*s failed: ", (int)m->host.n,
		    (const char *)m->host.p);
	buf_put(out, m->text.p, m->text.n);
	/* Most texts of egress name the management tool that helps. A text that
	 * names no such tool (as for an address that is not public) gets the
	 * sentence below. */
	if (m->kind == NET_EVENT_REFUSED &&
	    memmem(m->text.p, m->text.n, tool, sizeof(tool) - 1) == NULL)
		buf_putf(out,
		    "%s Ask for access with mcpbox_request_network_access.",
		    m->text.n > 0 && m->text.p[m->text.n - 1] != '.' ? "."
								     : "");
	for (size_t i = 0; i < out->len; i++)
		if (out->p[i] < ' ' || out->p[i] == 0x7f)
			out->p[i] = ' ';
}

/* Returns the redactor of the call's secrets; NULL without memory. */
static struct redact *
secrets(const struct call *c)
{
	const struct buf *tlv = &c->held->secrets;
	struct callnet *cn = c->callnet;

	if (cn->redact == NULL)
		cn->redact = redact_new(tlv->p, tlv->len);
	return cn->redact;
}

/*
 * Composes the text with secrets replaced: the tool chose the host, so the
 * host's name may be a secret. 0, or -1 if the text can't be shown.
 */
static int
say(struct call *c, const struct ipc_net_event *m, struct buf *out)
{
	struct redact *r = secrets(c);
	struct buf text;

	if (r == NULL)
		return -1;
	buf_init(&text, CALLNET_NOTE_MAX);
	compose(m, &text);
	if (text.failed)
		out->failed = true;
	else
		(void)redact_bytes(r, ipc_bytes(text.p, text.len), out);
	buf_free(&text);
	return out->failed ? -1 : 0;
}

/* Sends the text as a warning to the client that waits for the call. */
static void
warn(struct call *c, struct ipc_bytes text)
{
	struct buf json, b;
	struct jsonw w;

	buf_init(&json, 6 * CALLNET_NOTE_MAX + 2);
	buf_init(&b, CHANNEL_EVENT_MAX);
	jsonw_open(&w, &json);
	jsonw_strn(&w, text.p, text.n);
	(void)result_log(LEVEL_WARNING, c->held->name,
	    ipc_bytes(json.p, json.len), c->callnet->redact, &b);
	if (!json.failed && !b.failed)
		call_event(c, EVENT_LOG, ipc_bytes(b.p, b.len));
	buf_free(&json);
	buf_free(&b);
}

/* Notes the host and port of a refusal. false: the two are noted already, or
 * there is no room. */
static bool
worth_a_note(struct callnet *cn, const struct ipc_net_event *m)
{
	struct note *n = &cn->note[cn->notes];

	if (cn->notes == CALLNET_NOTES || m->host.n >= sizeof(n->host))
		return false;
	for (unsigned i = 0; i < cn->notes; i++)
		if (cn->note[i].port == m->port &&
		    ipc_streq(m->host, cn->note[i].host))
			return false;
	memcpy(n->host, m->host.p, m->host.n);
	n->host[m->host.n] = '\0';
	n->port = m->port;
	cn->notes++;
	return true;
}

static void
refused(struct call *c, const struct ipc_net_event *m)
{
	struct callnet *cn = c->callnet;
	struct buf text;

	if (m->kind == NET_EVENT_REFUSED)
		cn->missing = true;
	if (cn->lines++ >= CALLNET_LINES_MAX)
		return;
	buf_init(&text, CALLNET_NOTE_MAX);
	if (say(c, m, &text) == 0) {
		warn(c, ipc_bytes(text.p, text.len));
		if (worth_a_note(cn, m)) {
			if (cn->words.len > 0)
				buf_putc(&cn->words, '\n');
			buf_put(&cn->words, text.p, text.len);
		}
	}
	buf_free(&text);
}

static void
limit_met(struct call *c, enum limit l)
{
	struct err e;

	result_limit("The tool was ended: it moved too much over the network",
	    l, c->held->limit[l], &e);
	call_finish(c, OUTCOME_FAILED, e.failure, e.text, NULL);
}

static void
on_event(void *arg, const struct ipc_net_event *m)
{
	struct call *c = arg;

	if (c->state != CALL_RUNNING && c->state != CALL_PARKED &&
	    c->state != CALL_REPORTING)
		return;
	switch (m->kind) {
	case NET_EVENT_REFUSED:
	case NET_EVENT_FAILED:
	case NET_EVENT_NEVER:
		refused(c, m);
		break;
	case NET_EVENT_BYTES:
		limit_met(c, LIMIT_NETWORK_BYTES);
		break;
	case NET_EVENT_RATE:
		limit_met(c, LIMIT_NETWORK_RATE);
		break;
	default:
		break;
	}
}

/* --- Before it runs. ------------------------------------------------------ */

static void
on_opened(void *arg, enum failure f, const char *text)
{
	struct call *c = arg;

	if (f != FAILURE_NONE)
		c->callnet->net = NULL;
	if (c->state != CALL_STARTING)
		return;
	if (f != FAILURE_NONE) {
		call_finish(c, OUTCOME_REFUSED, f, text, NULL);
		return;
	}
	c->callnet->opened = true;
	call_go(c);
}

bool
callnet_begin(struct call *c)
{
	struct callnet *cn = c->callnet;
	struct err e;

	if (!held_connects(c->held))
		return false;
	if (cn != NULL)
		return !cn->opened;
	if ((cn = calloc(1, sizeof(*cn))) == NULL) {
		call_finish(
		    c, OUTCOME_REFUSED, FAILURE_BUSY, "no memory", NULL);
		return true;
	}
	c->callnet = cn;
	buf_init(&cn->words, CALLNET_NOTES * (CALLNET_NOTE_MAX + 1));
	cn->net = net_open(
	    c->all->nets, runners_net(c->runner), c->held, &owner, c, &e);
	if (cn->net == NULL)
		call_finish(c, OUTCOME_REFUSED, e.failure, e.text, NULL);
	else
		call_arm(c, NET_OPEN_MS);
	return true;
}

void
callnet_regrant(struct call *c)
{
	if (c->callnet != NULL && c->callnet->net != NULL)
		net_grants(c->callnet->net);
}

/* --- After it ran. -------------------------------------------------------- */

/*
 * Writes the report's array, with the secrets replaced: a tool can put a secret
 * into a name that it looks up. 0; -1: there is nothing to keep.
 */
static int
clean_report(const struct call *c, const struct net_report *n, struct buf *out)
{
	struct redact *r;

	if (n == NULL || n->json.n <= 2 || (r = secrets(c)) == NULL) /* [] */
		return -1;
	(void)redact_json(r, n->json, out);
	return out->failed || json_scan(out->p, out->len, NULL) != 0 ? -1 : 0;
}

static const char torn[] =
    "[{\"verdict\":\"unknown\",\"reason\":\"sandboxd-egress ended or did not "
    "report: what was connected to before is not known\"}]";

struct ipc_bytes
callnet_unknown(const struct call *c)
{
	if (c->callnet == NULL || c->callnet->net == NULL ||
	    !c->callnet->opened)
		return ipc_bytes(NULL, 0);
	return ipc_str(torn);
}

/* Writes the report into the record. If egress lost a part of the connections,
 * the entry that says so comes first, because the lost connections were made
 * earlier than the rest. */
static void
record_report(const struct call *c, const struct net_report *n)
{
	struct record *r = c->held->record;
	struct buf clean;
	bool rows;

	/* The record was sent already, or the call never ran. */
	if (r == NULL || !c->callnet->opened)
		return;
	buf_init(&clean, NET_REPORT_MAX);
	rows = clean_report(c, n, &clean) == 0;
	if (n != NULL) {
		r->connections = n->connections;
		r->net_refused = n->refused;
		r->net_bytes = n->bytes;
	}
	if (n == NULL || n->torn) {
		buf_put(&r->network, torn, sizeof(torn) - 2); /* no final ] */
		if (rows && r->network.len + clean.len <= NET_REPORT_MAX) {
			buf_putc(&r->network, ',');
			buf_put(&r->network, clean.p + 1, clean.len - 1);
		} else
			buf_putc(&r->network, ']');
	} else if (rows)
		buf_put(&r->network, clean.p, clean.len);
	if (r->network.failed)
		buf_clear(&r->network);
	buf_free(&clean);
}

static void
finish_failed(struct call *c)
{
	struct callnet *cn = c->callnet;
	struct ipc_bytes body = ipc_bytes(cn->body.p, cn->body.len);

	call_finish(c, OUTCOME_FAILED,
	    cn->missing ? FAILURE_MISSING_GRANT : cn->failure, NULL, &body);
}

struct ipc_bytes
callnet_words(const struct call *c, struct ipc_bytes body, struct buf *room)
{
	const struct callnet *cn = c->callnet;

	if (cn == NULL || cn->words.len == 0 || cn->words.failed)
		return body;
	/* A byte that JSON escapes becomes six. */
	buf_init(room, body.n + 6 * cn->words.len + 64);
	if (result_add_text(
		body, ipc_bytes(cn->words.p, cn->words.len), room) != 0)
		return body;
	return ipc_bytes(room->p, room->len);
}

static void
on_closed(void *arg, const struct net_report *r)
{
	struct call *c = arg;

	c->callnet->net = NULL;
	record_report(c, r);
	if (c->state == CALL_REPORTING)
		finish_failed(c);
	else if (c->state == CALL_ENDING && c->runner == NULL)
		call_change(c, CALL_ENDED);
}

static const struct net_owner owner = {
    .opened = on_opened, .event = on_event, .closed = on_closed};

bool
callnet_failed(struct call *c, enum failure f, struct ipc_bytes body)
{
	struct callnet *cn = c->callnet;

	/* Only these failures can come from a refused connection. */
	if (cn == NULL || cn->net == NULL ||
	    (f != FAILURE_EXCEPTION && f != FAILURE_MISSING_GRANT &&
		f != FAILURE_UPSTREAM))
		return false;
	buf_init(&cn->body, body.n);
	buf_put(&cn->body, body.p, body.n);
	if (cn->body.failed)
		return false;
	buf_init(&cn->printed, STDOUT_SHOWN_MAX + IPC_FRAME_MAX);
	channel_notice(c->channel, &cn->dropped);
	channel_stdout(c->channel, &cn->printed);
	cn->failure = f;
	channel_close(c->channel);
	c->channel = NULL;
	calls_took(c->all, now_boot_ms() - c->started_ms - c->park.total_ms);
	call_change(c, CALL_REPORTING);
	if (c->runner != NULL)
		runners_end(c->runner);
	if (!net_close(cn->net)) {
		cn->net = NULL;
		record_report(c, NULL);
		finish_failed(c);
	}
	return true;
}

void
callnet_printed(
    const struct call *c, struct result_dropped *dropped, struct buf *out)
{
	const struct callnet *cn = c->callnet;

	if (cn == NULL || c->state != CALL_REPORTING)
		return;
	*dropped = cn->dropped;
	buf_put(out, cn->printed.p, cn->printed.len);
}

void
callnet_expired(struct call *c)
{
	finish_failed(c);
}

bool
callnet_close(struct call *c)
{
	struct callnet *cn = c->callnet;

	if (cn == NULL || cn->net == NULL)
		return false;
	if (net_close(cn->net))
		return true;
	cn->net = NULL;
	record_report(c, NULL);
	return false;
}

void
callnet_forget(struct call *c)
{
	struct callnet *cn = c->callnet;

	c->callnet = NULL;
	if (cn == NULL)
		return;
	net_drop(cn->net);
	redact_free(cn->redact);
	buf_free(&cn->words);
	buf_free(&cn->body);
	buf_free(&cn->printed);
	free(cn);
}
