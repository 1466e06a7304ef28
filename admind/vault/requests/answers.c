/*
 * Requests that are answered at once: contexts and their keys, the gateways'
 * session key, signatures of the audit chain, doctor. The comment above each
 * function says why it is safe to answer any process that may ask.
 */
#include <string.h>

#include "anchors.h"
#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "requests.h"

/*
 * Seals a context for admind, which may be hostile. The answer is ciphertext
 * under a key that only sandboxd and we have, so it tells admind nothing that
 * admind didn't send. contexts_seal puts in only approved content and the
 * secrets that the approval names.
 */
static int
seal_context(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_seal_context m;
	struct ipc_sealed s;
	struct buf out;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	buf_init(&out, IPC_BLOB_MAX);
	if (contexts_seal(port->v->contexts, port->v->keys, &m, &out, &err) ==
	    -1) {
		char id[2 * sizeof(m.execution.b) + 1];

		hex_encode(m.execution.b, sizeof(m.execution.b), id);
		log_call(
		    LOG_LV_WARN, "context_refused", id, NULL, "%s", err.text);
		(void)ipc_refuse(peer, m.request, err.failure, err.text, 0);
	} else {
		memset(&s, 0, sizeof(s));
		s.context = ipc_bytes(out.p, out.len);
		(void)ipc_answer(peer, m.request, IPC_SEALED, &s);
	}
	buf_free(&out);
	return 0;
}

/*
 * Gives sandboxd a context key, over a socket that admits only its uid. It gets
 * a fresh key for the epoch that it named in HELLO, and for no other. So an
 * attacker in sandboxd can't fetch the key of another sandboxd, or of an
 * earlier epoch.
 */
static int
context_key(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_id epoch = ipc_peer_epoch(peer);
	struct ipc_context_key_get m;
	struct ipc_context_key k;
	uint8_t key[KEY_LEN];

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (memcmp(m.epoch.b, epoch.b, sizeof(epoch.b)) != 0) {
		(void)ipc_refuse(peer, m.request, FAILURE_FORBIDDEN,
		    "a sandbox may have its own epoch's key only", 0);
		return 0;
	}
	contexts_key(port->v->contexts, &m.epoch, key);
	memset(&k, 0, sizeof(k));
	k.key = ipc_bytes(key, sizeof(key));
	(void)ipc_answer(peer, m.request, IPC_CONTEXT_KEY, &k);
	explicit_bzero(key, sizeof(key));
	log_event(LOG_LV_INFO, "context_key", "a new key for a sandbox");
	return 0;
}

/* Gives the key that MACs MCP session ids. Such ids convey no authority: a
 * holder of the key can make a gateway believe in a session, but not in a
 * principal. */
static int
session_key(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_session_key_get m;
	const struct keys *keys;
	struct ipc_session_key k;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	memset(&k, 0, sizeof(k));
	/* While two keys are valid, the older key is used, so that the ids of
	 * present sessions stay valid. */
	keys =
	    port->v->keys->also != NULL ? port->v->keys->also : port->v->keys;
	k.key = ipc_bytes(keys->mcp_session, KEY_LEN);
	(void)ipc_answer(peer, m.request, IPC_SESSION_KEY, &k);
	return 0;
}

/*
 * Signs a head of the audit chain. A hostile admind may have any head signed,
 * because a signature says only that this head was the chain's at this time.
 * But admind can't have one history signed now and another one later: row
 * numbers never go back, each number has one head, and each signed head goes to
 * our own log, where admind can't change it.
 */
static int
audit_sign(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char key[2 * KEY_ID_LEN + 1];
	char head[HEX32_LEN + 1], sig[HEX32_LEN + 1];
	struct vault *v = port->v;
	struct ipc_audit_signature s;
	struct ipc_audit_sign m;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.seq < v->audit_seq ||
	    (m.seq == v->audit_seq && v->audit_seq != 0 &&
		memcmp(m.head.b, v->audit_head.b, sizeof(m.head.b)) != 0)) {
		log_event(LOG_LV_ERR, "audit_chain",
		    "admind asked to sign row %llu after row %llu with another "
		    "history",
		    (unsigned long long)m.seq,
		    (unsigned long long)v->audit_seq);
		(void)ipc_refuse(peer, m.request, FAILURE_CONFLICT,
		    "the audit chain went back", 0);
		return 0;
	}
	memset(&s, 0, sizeof(s));
	if (anchors_sign(v->keys, m.seq, &m.head, &s.signature) == -1) {
		(void)ipc_refuse(
		    peer, m.request, FAILURE_BUSY, "out of memory", 1000);
		return 0;
	}
	s.key = ipc_bytes(v->keys->id, sizeof(v->keys->id));
	if (m.seq != v->audit_seq) {
		hex_encode(m.head.b, sizeof(m.head.b), head);
		hex_encode(s.signature.b, sizeof(s.signature.b), sig);
		hex_encode(v->keys->id, sizeof(v->keys->id), key);
		log_event(LOG_LV_INFO, "audit_anchor",
		    "seq %llu head %s signature %s key %s",
		    (unsigned long long)m.seq, head, sig, key);
	}
	v->audit_seq = m.seq;
	v->audit_head = m.head;
	(void)ipc_answer(peer, m.request, IPC_AUDIT_SIGNATURE, &s);
	return 0;
}

/* Answers with one JSON object for each layer, from the lines "name=state". */
static int
doctor(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_doctor_report r;
	struct ipc_doctor m;
	const char *p, *eq, *end;
	struct jsonw w;
	struct buf b;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	jsonw_arr(&w);
	for (p = port->v->layers; p != NULL && *p != '\0'; p = end) {
		if ((end = strchr(p, '\n')) == NULL)
			end = p + strlen(p);
		if ((eq = memchr(p, '=', (size_t)(end - p))) != NULL) {
			jsonw_obj(&w);
			jsonw_kv_str(&w, "process", "admind-vault");
			jsonw_kv_strn(&w, "layer", p, (size_t)(eq - p));
			jsonw_kv_strn(
			    &w, "state", eq + 1, (size_t)(end - eq) - 1);
			jsonw_kv_str(&w, "detail", "");
			jsonw_kv_str(&w, "fix", "");
			jsonw_obj_end(&w);
		}
		if (*end == '\n')
			end++;
	}
	jsonw_arr_end(&w);
	memset(&r, 0, sizeof(r));
	r.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		(void)ipc_refuse(
		    peer, m.request, FAILURE_BUSY, "out of memory", 1000);
	else
		(void)ipc_answer(peer, m.request, IPC_DOCTOR_REPORT, &r);
	buf_free(&b);
	return 0;
}

int
answers_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_SEAL_CONTEXT:
		return seal_context(port, peer, f);
	case IPC_CONTEXT_KEY_GET:
		return context_key(port, peer, f);
	case IPC_SESSION_KEY_GET:
		return session_key(port, peer, f);
	case IPC_AUDIT_SIGN:
		return audit_sign(port, peer, f);
	case IPC_DOCTOR:
		return doctor(port, peer, f);
	default:
		return -1;
	}
}
