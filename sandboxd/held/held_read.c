/* Reads the plaintext of a context. See held.h. */
#include <string.h>

#include "held_internal.h"
#include "netgrant.h"
#include "tlv.h"

/* Tags of the TLV in SECRETS (messages/runner.h). */
enum { SECRET_NAME = 1, SECRET_VALUE = 2 };

/* Reads one number of the context, at most max. */
static int
number(const struct tlv *t, uint64_t max, uint64_t *v, struct err *e)
{
	if (tlv_u64(t, v) != 0 || *v > max)
		return err_set(e, FAILURE_INTERNAL,
		    "field %u of the context is out of range", t->tag);
	return 0;
}

/* Takes a limit, cut to its highest allowed value. */
static int
take_limit(struct held *h, const struct tlv *t, struct err *e)
{
	int l = limit_of_context(t->tag);
	uint64_t v;

	if (l < 0)
		return err_set(
		    e, FAILURE_INTERNAL, "the context has a field %u", t->tag);
	if (tlv_u64(t, &v) != 0)
		return err_set(e, FAILURE_INTERNAL,
		    "field %u of the context is malformed", t->tag);
	h->limit[l] = v < limit_info(l)->max ? v : limit_info(l)->max;
	return 0;
}

/* Takes a hash of fixed length. */
static int
take_hash(const struct tlv *t, struct ipc_hash *out, struct err *e)
{
	if (t->n != sizeof(*out))
		return err_set(e, FAILURE_INTERNAL,
		    "field %u of the context is no digest", t->tag);
	memcpy(out, t->p, sizeof(*out));
	return 0;
}

/* Takes a module's digest. The digests must be ascending, so that the same
 * modules make the same profile, and no module comes twice. */
static int
take_module(struct held *h, const struct tlv *t, struct err *e)
{
	const size_t len = sizeof(struct ipc_hash);

	if (t->n != len ||
	    (h->modules.len > 0 &&
		memcmp(h->modules.p + h->modules.len - len, t->p, len) >= 0))
		return err_set(e, FAILURE_INTERNAL,
		    "the context's modules are not in order");
	buf_put(&h->modules, t->p, t->n);
	if (h->modules.failed)
		return err_set(e, FAILURE_INTERNAL, "too many modules");
	return 0;
}

/* Appends a host as a line. egress parses the line and judges by it. Here the
 * host is only checked to be no more than one line. */
int
held_read_host(struct buf *list, const struct tlv *t, struct err *e)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->p[i] < ' ' || t->p[i] > '~')
			return err_set(e, FAILURE_INTERNAL,
			    "a host of the context is malformed");
	if (t->n == 0 || t->n > NETGRANT_LINE_MAX)
		return err_set(
		    e, FAILURE_INTERNAL, "a host of the context is malformed");
	buf_put(list, t->p, t->n);
	buf_putc(list, '\n');
	if (list->failed)
		return err_set(
		    e, FAILURE_INTERNAL, "the context has too many hosts");
	return 0;
}

int
held_read_server(struct ipc_id *server, const struct tlv *t, struct err *e)
{
	if (t->n != sizeof(*server))
		return err_set(
		    e, FAILURE_INTERNAL, "the context's server is no id");
	memcpy(server, t->p, sizeof(*server));
	return 0;
}

static int
take_kind(struct held *h, const struct tlv *t, struct err *e)
{
	struct ipc_bytes kind = ipc_bytes(t->p, t->n);

	if (ipc_streq(kind, "command"))
		h->runner = RUNNER_COMMAND;
	else if (ipc_streq(kind, "http"))
		h->driver = DRIVER_HTTP;
	else if (ipc_streq(kind, "mcp"))
		h->driver = DRIVER_MCP;
	else if (ipc_streq(kind, "keys"))
		h->driver = DRIVER_KEYS;
	else if (ipc_streq(kind, "telemetry"))
		h->driver = DRIVER_TELEMETRY;
	else if (ipc_streq(kind, "notify"))
		h->driver = DRIVER_NOTIFY;
	else if (!ipc_streq(kind, "python"))
		return err_set(
		    e, FAILURE_INTERNAL, "the context is of no known kind");
	return 0;
}

/* Takes the method, which decides the result's form; no right depends on it. */
static int
take_method(struct held *h, const struct tlv *t, struct err *e)
{
	uint64_t v;

	if (number(t, CALL_RESOURCE, &v, e) != 0 || v > CALL_RESOURCE)
		return -1;
	h->method = (enum call_method)v;
	return 0;
}

/* Values that held_read needs in addition to the held context. */
struct reading {
	uint64_t hold;
	struct ipc_bytes intent, spec;
	unsigned secrets;
};

/* Takes one field of the plaintext into h. */
static int
take_field(
    struct held *h, const struct tlv *t, struct reading *r, struct err *e)
{
	switch (t->tag) {
	case CTX_SECRET_NAME:
		tlv_put(&h->secrets, SECRET_NAME, t->p, t->n);
		r->secrets++;
		return 0;
	case CTX_SECRET_VALUE:
		tlv_put(&h->secrets, SECRET_VALUE, t->p, t->n);
		return 0;
	case CTX_CODE:
		h->code = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_SPEC:
		r->spec = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_EXECUTABLE:
		h->executable = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_EXECUTABLE_DIGEST:
		h->executable_digest = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_NAME:
		h->name = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_KIND:
		return take_kind(h, t, e);
	case CTX_METHOD:
		return take_method(h, t, e);
	case CTX_TASK:
		/* Only a call that admind runs can be a task, because no other
		 * peer would come back for the result. */
		h->task = h->listener == LISTENER_ADMIND;
		return 0;
	case CTX_OUTPUT_SCHEMA:
		h->output_schema = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_MODULE:
		return take_module(h, t, e);
	case CTX_REQUIRE:
		return held_read_host(&h->requires, t, e);
	case CTX_GRANT:
		return held_read_host(&h->grants, t, e);
	case CTX_SERVER_ID:
		h->has_server = true;
		return held_read_server(&h->server, t, e);
	case CTX_ARGS_SHA256:
		return take_hash(t, &h->args, e);
	case CTX_VERSION_HASH:
		/* Only approved code has a version. */
		h->has_version = h->kind == CONTEXT_TOOL;
		return take_hash(t, &h->version, e);
	case CTX_TIMEOUT_MS:
		return number(t, HELD_TIMEOUT_MAX_MS, &h->timeout_ms, e);
	case CTX_HOLD_UNTIL_MS:
		return number(t, UINT64_MAX, &r->hold, e);
	case CTX_INTENT:
		r->intent = ipc_bytes(t->p, t->n);
		return 0;
	}
	return take_limit(h, t, e);
}

/*
 * Checks that the fields are those of the kind. A command has a spec and an
 * executable, a driver of ours has a spec, Python source has neither. A
 * driver's spec is data: it is never run as code, and code is never given to a
 * driver as a spec. The kind was sealed together with the fields.
 */
static int
check_kind(struct held *h, struct ipc_bytes spec, struct err *e)
{
	size_t digest = h->executable_digest.n;

	/* Only the vault makes the specification of such a run. */
	if ((h->kind == CONTEXT_KEYS) != (h->driver == DRIVER_KEYS))
		return err_set(e, FAILURE_INTERNAL,
		    "the context is not that of an issuer's keys");
	if ((h->kind == CONTEXT_TELEMETRY) != (h->driver == DRIVER_TELEMETRY))
		return err_set(e, FAILURE_INTERNAL,
		    "the context is not that of telemetry");
	if ((h->kind == CONTEXT_NOTIFY) != (h->driver == DRIVER_NOTIFY))
		return err_set(e, FAILURE_INTERNAL,
		    "the context is not that of a notification");
	if (h->kind == CONTEXT_MODULE) {
		/* An installer runs our code alone, with no tool's text in it.
		 * Its task and its hosts come from this machine's configuration
		 * (depot_conf.h). */
		if (h->runner == RUNNER_COMMAND || h->driver != DRIVER_CODE ||
		    spec.n != 0 || h->code.n != 0 || h->executable.n != 0 ||
		    digest != 0 || h->modules.len != 0 ||
		    h->requires.len != 0 || h->grants.len != 0)
			return err_set(e, FAILURE_INTERNAL,
			    "the context is not that of a module");
		return 0;
	}
	if (h->driver != DRIVER_CODE) {
		if (spec.n == 0 || h->code.n != 0 || h->executable.n != 0 ||
		    digest != 0 || h->modules.len != 0)
			return err_set(e, FAILURE_INTERNAL,
			    "the context is not that of a specification");
		h->code = spec;
	} else if (h->runner == RUNNER_COMMAND) {
		/* Only an inspection, which finds the digest, may lack it. */
		if (spec.n == 0 || h->code.n != 0 || h->executable.n == 0 ||
		    h->modules.len != 0 ||
		    (digest != sizeof(struct ipc_hash) &&
			(digest != 0 || h->kind != CONTEXT_INSPECT)))
			return err_set(e, FAILURE_INTERNAL,
			    "the context is not that of a command");
		h->code = spec;
	} else if (spec.n != 0 || h->executable.n != 0 || digest != 0)
		return err_set(e, FAILURE_INTERNAL,
		    "the context has a command's fields and is none");
	return 0;
}

/* Tells whether the context runs approved code, or our code that fetches a
 * module for which a person asked, or keys of an issuer that an administrator
 * listed, or that sends telemetry or a notification to a host that one listed.
 */
static bool
approved(const struct held *h)
{
	return h->kind == CONTEXT_TOOL || h->kind == CONTEXT_MODULE ||
	    h->kind == CONTEXT_KEYS || h->kind == CONTEXT_TELEMETRY ||
	    h->kind == CONTEXT_NOTIFY;
}

/* Returns how many secrets a run of this kind may have: a tool those of its
 * version, a notification its target's. */
static unsigned
secrets_most(uint8_t kind)
{
	return kind == CONTEXT_TOOL ? SECRETS_PER_CALL_MAX
				    : kind == CONTEXT_NOTIFY;
}

/*
 * Fills in the configured default of each limit that was not set. Only an
 * approval or an administrator lets a call have more than the default, so code
 * without an approval has no more.
 *
 * If a larger /tmp than the default was granted, and no length of a file was
 * set, a file may be as long as /tmp is large: a grant of space is meant to be
 * used.
 */
static void
fill_limits(struct held *h, const uint64_t dflt[LIMIT_COUNT])
{
	bool file = h->limit[LIMIT_FILE_BYTES] != 0;

	h->limit[LIMIT_TIMEOUT_MS] = h->timeout_ms;
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (i != LIMIT_TIMEOUT_MS &&
		    (h->limit[i] == 0 ||
			(!approved(h) && h->limit[i] > dflt[i])))
			h->limit[i] = dflt[i];
	if (!file && h->limit[LIMIT_TMP_BYTES] > dflt[LIMIT_TMP_BYTES] &&
	    h->limit[LIMIT_FILE_BYTES] < h->limit[LIMIT_TMP_BYTES])
		h->limit[LIMIT_FILE_BYTES] = h->limit[LIMIT_TMP_BYTES];
}

/* Reads the plaintext; held_internal.h says why it is checked. */
int
held_read(struct held *h, uint64_t now_ms, const uint64_t dflt[LIMIT_COUNT],
    struct err *e)
{
	struct reading x = {.hold = HELD_HOLD_MAX_MS};
	struct tlv_reader r;
	struct tlv t;
	int rc;

	tlv_open(&r, h->plain.p, h->plain.len);
	while ((rc = tlv_next(&r, &t)) == 1)
		if (take_field(h, &t, &x, e) != 0)
			return -1;
	if (rc != 0)
		return err_set(e, FAILURE_INTERNAL, "the context is malformed");
	if (h->secrets.failed || x.secrets > secrets_most(h->kind))
		return err_set(e, FAILURE_INTERNAL,
		    "the context's secrets are not as they may be");
	if (h->requires.len > 0 && !approved(h))
		return err_set(e, FAILURE_INTERNAL,
		    "only what was approved reaches the network");
	if (check_kind(h, x.spec, e) != 0)
		return -1;
	if (h->code.n > CODE_MAX || h->timeout_ms == 0)
		return err_set(e, FAILURE_INTERNAL,
		    "the context has no time limit or too much code");
	if (x.hold > HELD_HOLD_MAX_MS)
		x.hold = HELD_HOLD_MAX_MS;
	/* The principal is needed only to count its calls (share.h). */
	if (tlv_find(x.intent.p, x.intent.n, INTENT_PRINCIPAL, &t) == 1)
		h->principal = ipc_bytes(t.p, t.n);
	h->expires_ms = now_ms + x.hold;
	if ((h->record = record_new(&h->id, x.intent)) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	fill_limits(h, dflt);
	return 0;
}
