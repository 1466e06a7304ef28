#include <json-c/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "body.h"
#include "json.h"
#include "jsonw.h"
#include "problem.h"
#include "reply.h"
#include "reviews.h"
#include "web.h"

/*
 * POST /api/approvals/bulk: many decisions, one after the other. Each is made
 * as if it had come alone: with the hash of the reviewed content, judged and
 * sealed by itself. A decision that fails stops no other. A client that is cut
 * off in the middle sends the whole list again: for requests that were decided
 * the answer says so, and the other requests are decided then.
 *
 * Each approval needs a fresh proof by the login's person. If the first
 * approval is refused because the proof is missing, the whole request is
 * refused. A page then asks the person, and sends the request again. If the
 * proof becomes stale in the middle, each later approval is refused by itself.
 *
 * Grants are approved before versions, in whatever order the items come. The
 * grant of a host affects each version that uses the host. If such a version
 * were approved first, the request for the host would be replaced by another
 * request, which no person reviewed (a source and its host are an example). A
 * grant changes no version's bytes, so it may come first. admind says which
 * requests are grants. If it lies, only the order is wrong.
 */

enum { ITEMS_MAX = 100, REASON_MAX = 2000 };

struct item {
	struct ipc_id id;
	struct ipc_hash hash;
	const char *state; /* NULL: not decided; failure says why */
	const char *failure;
	char detail[ERR_TEXT_MAX];
	bool grant; /* of kind module or network */
};

struct work {
	bool approve;
	char reason[REASON_MAX + 1];
	size_t n, at;
	size_t order[ITEMS_MAX]; /* order of the decisions */
	struct item item[ITEMS_MAX];
};

static void
reply(struct call *c)
{
	const struct work *k = c->work;
	char uuid[UUID_TEXT_LEN + 1];
	size_t decided = 0;
	struct jsonw w;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "items");
	jsonw_arr(&w);
	for (size_t i = 0; i < k->n; i++) {
		const struct item *it = &k->item[i];

		decided += it->state != NULL;
		uuid_text(&it->id, uuid);
		jsonw_obj(&w);
		jsonw_kv_str(&w, "id", uuid);
		jsonw_kv_bool(&w, "done", it->state != NULL);
		if (it->state != NULL) {
			jsonw_kv_str(&w, "state", it->state);
		} else {
			jsonw_kv_str(&w, "failure_mode", it->failure);
			jsonw_kv_str(&w, "detail", it->detail);
		}
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_kv_int(&w, "done", (int64_t)decided);
	jsonw_kv_int(&w, "failed", (int64_t)(k->n - decided));
	jsonw_obj_end(&w);
	reply_json(c, 200, &b);
	buf_free(&b);
}

static void decided(struct call *, struct ipc_frame *);

static void
next(struct call *c)
{
	const struct work *k = c->work;
	struct ipc_approve yes = {.token = ipc_str(c->token)};
	struct ipc_reject no = {.token = ipc_str(c->token)};
	const struct item *it;

	if (k->at == k->n) {
		reply(c);
		return;
	}
	it = &k->item[k->order[k->at]];
	if (k->approve) {
		yes.approval = it->id;
		yes.reviewed = it->hash;
		ask_vault(c, IPC_APPROVE, &yes, decided);
		return;
	}
	no.approval = it->id;
	no.reason = ipc_str(k->reason);
	ask_vault(c, IPC_REJECT, &no, decided);
}

static void
decided(struct call *c, struct ipc_frame *f)
{
	struct work *k = c->work;
	struct item *it = &k->item[k->order[k->at++]];
	struct ipc_refused r;

	if (f->type == IPC_OK) {
		it->state = k->approve ? "approved" : "rejected";
	} else if (f->type == IPC_HALF_APPROVED) {
		it->state = "pending"; /* first of two approvals */
	} else if (f->type == IPC_REFUSED && ipc_decode(f, &r, NULL) == 0 &&
	    r.failure == FAILURE_PROOF_REQUIRED && k->at == 1) {
		problem_send(c, FAILURE_PROOF_REQUIRED,
		    "nothing was decided: this needs a proof at most five "
		    "minutes old that you are there",
		    NULL);
		return;
	} else if (f->type == IPC_REFUSED && ipc_decode(f, &r, NULL) == 0 &&
	    r.failure < FAILURE_COUNT) {
		it->failure = failure_info((enum failure)r.failure)->name;
		(void)snprintf(it->detail, sizeof(it->detail), "%.*s",
		    r.message.n < ERR_TEXT_MAX ? (int)r.message.n : 0,
		    (const char *)r.message.p);
	} else {
		it->failure = failure_info(FAILURE_INTERNAL)->name;
	}
	next(c);
}

/* Begins to decide: first the grants, then the rest, each in the order in which
 * the items came. */
static void
begin(struct call *c)
{
	struct work *k = c->work;
	size_t n = 0;

	for (int grants = 1; grants >= 0; grants--)
		for (size_t i = 0; i < k->n; i++)
			if (k->item[i].grant == (grants == 1))
				k->order[n++] = i;
	k->at = 0;
	next(c);
}

static void ask_kind(struct call *);

/* Takes the kind of one item. An item that is no request any more is refused
 * later, by the vault. */
static void
got_kind(struct call *c, struct ipc_frame *f)
{
	struct ipc_approval_content a;
	struct work *k = c->work;

	if (f->type == IPC_APPROVAL_CONTENT && ipc_decode(f, &a, NULL) == 0)
		k->item[k->at].grant =
		    ipc_streq(a.kind, "network") || ipc_streq(a.kind, "module");
	k->at++;
	ask_kind(c);
}

static void
ask_kind(struct call *c)
{
	struct ipc_approval_get m = {.token = ipc_str(c->token_hash)};
	const struct work *k = c->work;

	if (!k->approve || k->at == k->n) {
		begin(c);
		return;
	}
	m.approval = k->item[k->at].id;
	ask_admind(c, IPC_APPROVAL_GET, &m, got_kind);
}

/* Reads {id, hash}. hash is the hash that GET gave; only approvals need it. */
static int
take_item(struct json_object *o, struct work *k, struct err *e)
{
	struct item *it = &k->item[k->n];
	struct ipc_bytes id, hash = {NULL, 0};

	if (!json_object_is_type(o, json_type_object))
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "an item is an object");
	json_object_object_foreach(o, name, value)
	{
		(void)value;
		if (strcmp(name, "id") != 0 && strcmp(name, "hash") != 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "an item has id and hash, nothing else");
	}
	if (body_str(o, "id", &id, e) < 0 ||
	    (k->approve && body_str(o, "hash", &hash, e) < 0))
		return -1;
	if (uuid_parse((const char *)id.p, id.n, &it->id) == -1)
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "an item's id is a uuid");
	if (k->approve &&
	    (hash.n != HEX32_LEN ||
		hex_decode((const char *)hash.p, hash.n, it->hash.b) == -1))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "an item's hash has 64 lower-case hexadecimal digits");
	for (size_t i = 0; i < k->n; i++)
		if (memcmp(&k->item[i].id, &it->id, sizeof(it->id)) == 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "an item stands there twice");
	k->n++;
	return 0;
}

static int
take(struct json_object *o, struct work *k, struct err *e)
{
	struct json_object *items, *v;
	struct ipc_bytes word;
	size_t n;

	if (body_str(o, "action", &word, e) < 0)
		return -1;
	k->approve = ipc_streq(word, "approve");
	if (!k->approve && !ipc_streq(word, "reject"))
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "action is approve or reject");
	if (k->approve == json_object_object_get_ex(o, "reason", &v))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "a rejection, and nothing else, has a reason");
	if (!k->approve) {
		if (body_str(o, "reason", &word, e) < 0)
			return -1;
		if (word.n > REASON_MAX)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "reason is longer than 2000 bytes");
		memcpy(k->reason, word.p, word.n);
	}
	if (json_get_arr(o, "items", &items, e) != 1)
		return err_set(
		    e, FAILURE_INVALID_PARAMS, "member items must be an array");
	n = json_object_array_length(items);
	if (n < 1 || n > ITEMS_MAX)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "items has 1 to %d members", ITEMS_MAX);
	for (size_t i = 0; i < n; i++)
		if (take_item(json_object_array_get_idx(items, i), k, e) < 0)
			return -1;
	return 0;
}

void
bulk_post(struct call *c)
{
	static const char *const names[] = {"action", "reason", "items", NULL};
	struct json_object *o;
	struct work *k;
	struct err e;

	if ((k = calloc(1, sizeof(*k))) == NULL) {
		problem_send(c, FAILURE_INTERNAL, "out of memory", NULL);
		return;
	}
	c->work = k;
	c->work_free = free;
	if (body_parse(c, names, &o) < 0)
		return;
	if (take(o, k, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
	} else {
		c->takes_refusals = true;
		ask_kind(c);
	}
	json_object_put(o);
}
