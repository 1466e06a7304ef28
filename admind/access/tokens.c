/*
 * The live tokens.
 *
 * A credential is looked up by its SHA-256. It has 256 random bits and can't be
 * guessed, so neither the time of a wrong guess nor a dump of the table helps
 * an attacker. Every failure (unknown, revoked, expired, not for this listener)
 * has the same answer.
 *
 * Memory holds the tokens as they were read from the database, with the changes
 * that were notified since. While the database is not reachable, this process
 * does not learn of a revocation on another node. So no token is valid then.
 * When the database is back, no token is valid until all were read again.
 *
 * The end of a token ends all its work: jobs under way are refused at their
 * next step, calls that the sandbox holds or runs are killed (also those of
 * tasks), and gateways drop the token's streams and caches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "crypto.h"
#include "ended.h"
#include "endpoint.h"
#include "identities.h"
#include "ids.h"
#include "log.h"
#include "narrow.h"
#include "tokens.h"

enum { CHAINS = 1024, USED_TICKS = 5 };

struct tokens {
	LIST_HEAD(token_chain, token) chains[CHAINS];
	bool ready;           /* all tokens read since the database came up */
	unsigned loads;       /* reads of all tokens that are under way */
	bool editing;         /* setting remote_tool_editing */
	uint8_t key[KEY_LEN]; /* MACs the names of permission sets */
};

static const struct db_stmt read_all = {"tokens_read",
    "SELECT t.id, t.digest, t.name, array_to_string(t.scopes, E'\\n'),"
    " 'local' = ANY (t.listeners), 'tunnel' = ANY (t.listeners),"
    " array_to_string(t.allow, E'\\n'), array_to_string(t.deny, E'\\n'),"
    " t.expires_at, mcpbox.setting('remote_tool_editing') = 'enabled',"
    " t.permission_set"
    " FROM (SELECT 1) one LEFT JOIN mcpbox.api_tokens t"
    " ON t.revoked_at IS NULL AND (t.expires_at IS NULL"
    " OR t.expires_at > clock_timestamp())",
    DB_FAST};
static const struct db_stmt used = {"tokens_used",
    "SELECT mcpbox.token_used($1::uuid[], $2::timestamptz[], $3::text[])",
    DB_FAST};
static struct token_chain *
chain_of(struct tokens *t, const struct ipc_hash *digest)
{
	return &t->chains[(digest->b[0] << 8 | digest->b[1]) % CHAINS];
}

static struct tokens *
all(struct admind *a)
{
	if (a->tokens == NULL &&
	    (a->tokens = calloc(1, sizeof(*a->tokens))) != NULL)
		random_bytes(a->tokens->key, sizeof(a->tokens->key));
	return a->tokens;
}

/* ---- the rights of a token ---- */

/* Returns those of these scopes that count at this listener. */
static unsigned
counting(const struct admind *a, unsigned scopes, enum listener listener)
{
	if (listener != LISTENER_LOCAL &&
	    (a->tokens == NULL || !a->tokens->editing))
		scopes &= ~(unsigned)PERMIT_EDIT;
	return scopes;
}

unsigned
token_scopes(
    const struct admind *a, const struct token *t, enum listener listener)
{
	return counting(a, t->permit.scopes, listener);
}

void
tokens_lack(const struct admind *a, const struct token *t,
    enum listener listener, unsigned scope, struct lack *lack)
{
	lack_say(lack, t, token_scopes(a, t, listener),
	    counting(a, t->of.scopes, listener), scope);
}

int
token_may_call(const struct admind *a, const struct token *t,
    enum listener listener, struct lack *lack)
{
	if (t == NULL || (token_scopes(a, t, listener) & PERMIT_CALL) != 0)
		return 0;
	tokens_lack(a, t, listener, PERMIT_CALL, lack);
	return -1;
}

/* A token with `manage` may read the list of tools: it has the management tools
 * then. */
void
tokens_hint(const struct admind *a, const struct token *t,
    enum listener listener, struct token_hints *h)
{
	const unsigned others = 1u << MCP_LIST_PROMPTS |
	    1u << MCP_LIST_RESOURCES | 1u << MCP_LIST_TEMPLATES;
	unsigned has, may;

	memset(h, 0, sizeof(*h));
	if (t == NULL || t->of.scopes == 0)
		return;
	has = token_scopes(a, t, listener);
	may = counting(a, t->of.scopes, listener);
	lack_scope(h->read_scope, has, may, PERMIT_READ);
	lack_scope(h->call_scope, has, may, PERMIT_CALL);
	if (h->read_scope[0] != '\0')
		h->unread = (uint8_t)(others |
		    ((has & PERMIT_MANAGE) == 0 ? 1u << MCP_LIST_TOOLS : 0));
}

/*
 * Names a token's permission set at each listener. Gateways cache catalogues
 * under this name, so two tokens with the same rights share a catalogue. The
 * name is a MAC. So a gateway can ask for the sets of tokens that it saw, but
 * can't compute the names of other sets.
 */
void
tokens_name_set(const struct admind *a, struct token *t)
{
	struct ipc_hash h;
	struct buf b;

	for (int l = LISTENER_LOCAL; l <= LISTENER_TUNNEL; l++) {
		t->set[l][0] = '\0';
		buf_init(&b, IPC_BLOB_MAX);
		buf_putc(&b, l);
		buf_putc(&b, (uint8_t)token_scopes(a, t, (enum listener)l));
		buf_put(&b, t->permit.allow, strlen(t->permit.allow) + 1);
		buf_put(&b, t->permit.deny, strlen(t->permit.deny) + 1);
		/* Two endpoints with the same patterns differ by names. */
		if (t->endpoint != NULL)
			buf_put(
			    &b, t->endpoint->record.p, t->endpoint->record.len);
		if (!b.failed) {
			hmac_sha256(a->tokens->key, b.p, b.len, &h);
			hex_encode(h.b, sizeof(h.b), t->set[l]);
		}
		buf_free(&b);
	}
}

/* ---- finding ---- */

bool
tokens_like(struct ipc_bytes c)
{
	return c.n >= strlen(TOKEN_PREFIX) &&
	    memcmp(c.p, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) == 0;
}

static struct token *
by_digest(struct tokens *ts, const struct ipc_hash *digest)
{
	struct token *t;

	LIST_FOREACH(t, chain_of(ts, digest), chain)
		if (ct_equal(&t->digest, digest, sizeof(*digest)))
			return t;
	return NULL;
}

/* Checks that the set of a token is known now. A document that is only away for
 * a while takes no right: its tokens have to come again. */
static int
has_set(struct admind *a, const struct token *t, struct err *err)
{
	if (document_ready(a, err) == -1)
		return err_set(err, err->failure,
		    "the permission set %s can't be read now", t->of.name);
	if (rules_set_named(a->access->now, ipc_str(t->of.name)) == NULL)
		return err_set(err, FAILURE_FORBIDDEN,
		    "the access document lacks the permission set %s, so this "
		    "token has no rights",
		    t->of.name);
	return 0;
}

struct token *
tokens_find(struct admind *a, enum listener listener,
    struct ipc_bytes credential, struct err *err)
{
	struct ipc_hash digest;
	struct token *t;

	if (a->tokens == NULL || !a->tokens->ready || !db_is_up(a->db)) {
		err_set(err, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
		return NULL;
	}
	sha256(credential.p, credential.n, &digest);
	t = by_digest(a->tokens, &digest);
	if (t == NULL || (t->listeners & 1u << listener) == 0 ||
	    (t->expires_us != 0 && t->expires_us <= now_us())) {
		err_set(err, FAILURE_UNAUTHENTICATED,
		    "this listener needs a credential that is valid here");
		return NULL;
	}
	if (t->of.name[0] != '\0' && has_set(a, t, err) == -1)
		return NULL;
	t->used_us = now_us();
	t->used_by = listener;
	return t;
}

struct token *
tokens_of_set(struct admind *a, enum listener listener, struct ipc_bytes set)
{
	struct token *t;

	if (a->tokens == NULL || set.n != TOKEN_SET_LEN ||
	    (listener != LISTENER_LOCAL && listener != LISTENER_TUNNEL))
		return NULL;
	for (int i = 0; i < CHAINS; i++)
		LIST_FOREACH(t, &a->tokens->chains[i], chain)
			if ((t->listeners & 1u << listener) != 0 &&
			    ipc_streq(set, t->set[listener]))
				return t;
	return NULL;
}

struct token *
tokens_by_id(struct admind *a, const struct ipc_id *id)
{
	struct token *t;

	if (a->tokens == NULL)
		return NULL;
	for (int i = 0; i < CHAINS; i++)
		LIST_FOREACH(t, &a->tokens->chains[i], chain)
			if (memcmp(&t->id, id, sizeof(*id)) == 0)
				return t;
	return NULL;
}

/* ---- the end of a token ---- */

static void
used_stored(void *arg, const struct pg_result *rows, const struct err *err)
{
	/* If a time of use was not stored, a later one will be. */
}

static void
store_used(struct admind *a)
{
	struct db_array ids, at, by;
	struct db_params p;
	struct token *t;
	unsigned n = 0;

	db_array_init(&ids, DB_UUID, IPC_BLOB_MAX);
	db_array_init(&at, DB_TIME, IPC_BLOB_MAX);
	db_array_init(&by, DB_TEXT, IPC_BLOB_MAX);
	for (int i = 0; i < CHAINS; i++)
		LIST_FOREACH(t, &a->tokens->chains[i], chain) {
			if (t->used_us == 0)
				continue;
			db_a_bytes(&ids, t->id.b, sizeof(t->id.b));
			db_a_time_us(&at, t->used_us);
			db_a_str(&by, listener_name(t->used_by));
			t->used_us = 0;
			n++;
		}
	if (n > 0) {
		db_params_init(&p);
		db_p_array(&p, &ids);
		db_p_array(&p, &at);
		db_p_array(&p, &by);
		db_query(a->db, &used, &p, used_stored, a);
	}
	db_array_free(&ids);
	db_array_free(&at);
	db_array_free(&by);
}

void
tokens_end(struct admind *a, struct token *t, const char *why)
{
	if (t->gone)
		return;
	if (t->used_us != 0)
		store_used(a);
	t->gone = true;
	LIST_REMOVE(t, chain);
	log_call(LOG_LV_INFO, "token_ended", NULL, t->principal, "%s", why);
	ended_jobs(a, t->principal);
	ended_runs_of(a, t->principal);
	ended_tell(a, &t->digest, t->principal, NULL, NULL);
	token_unref(t);
}

/* ---- reading ---- */

struct load {
	struct admind *a;
	void (*then)(void *);
	void *arg;
};

static char *
take(const struct pg_result *rows, int i, int column)
{
	return ipc_strdup(db_bytes(rows, i, column));
}

/* Gives a token of a permission set that set's rights, none if the document
 * lacks the set. -1: no memory. */
static int
take_set(struct admind *a, struct token *t)
{
	const struct access_set *set = a->access != NULL
	    ? rules_set_named(a->access->now, ipc_str(t->of.name))
	    : NULL;

	t->permit.scopes = set != NULL ? set->scopes : 0;
	t->permit.allow = strdup(set != NULL ? set->allow : "");
	t->permit.deny = strdup(set != NULL ? set->deny : "");
	t->of.per_minute = set != NULL ? set->per_minute : 0;
	return t->permit.allow != NULL && t->permit.deny != NULL ? 0 : -1;
}

/* Adds a token that is not known yet. -1: no memory. */
static int
add(struct admind *a, const struct pg_result *rows, int i,
    const struct ipc_hash *digest)
{
	struct token *t = token_new(NULL);
	struct ipc_bytes name = db_bytes(rows, i, 2);
	char *scopes = take(rows, i, 3);

	if (t == NULL || scopes == NULL)
		goto fail;
	if (!db_null(rows, i, 10)) {
		if (!db_text(rows, i, 10, t->of.name, sizeof(t->of.name)) ||
		    take_set(a, t) == -1)
			goto fail;
	} else {
		t->permit.scopes = permit_scopes(scopes);
		t->permit.allow = take(rows, i, 6);
		t->permit.deny = take(rows, i, 7);
	}
	if (t->permit.allow == NULL || t->permit.deny == NULL || name.n == 0 ||
	    name.n > TOKEN_NAME_MAX)
		goto fail;
	t->id = db_id(rows, i, 0);
	t->digest = *digest;
	snprintf(t->principal, sizeof(t->principal), "token:%.*s", (int)name.n,
	    (const char *)name.p);
	t->listeners = (db_bool(rows, i, 4) ? 1u << LISTENER_LOCAL : 0) |
	    (db_bool(rows, i, 5) ? 1u << LISTENER_TUNNEL : 0);
	t->expires_us = db_null(rows, i, 8) ? 0 : db_time_us(rows, i, 8);
	t->seen = true;
	tokens_name_set(a, t);
	LIST_INSERT_HEAD(chain_of(a->tokens, digest), t, chain);
	free(scopes);
	return 0;
fail:
	if (t != NULL)
		token_unref(t);
	free(scopes);
	return -1;
}

static void
end_unseen(struct admind *a)
{
	struct token *t, *next;

	for (int i = 0; i < CHAINS; i++)
		for (t = LIST_FIRST(&a->tokens->chains[i]); t != NULL;
		    t = next) {
			next = LIST_NEXT(t, chain);
			if (!t->seen)
				tokens_end(a, t, "it was revoked");
		}
}

static void
set_editing(struct admind *a, bool editing)
{
	struct token *t;

	if (a->tokens->editing == editing)
		return;
	a->tokens->editing = editing;
	for (int i = 0; i < CHAINS; i++)
		LIST_FOREACH(t, &a->tokens->chains[i], chain)
			tokens_name_set(a, t);
	identities_renamed(a);
	if (a->access != NULL)
		narrow_drop(a->access->narrowed);
}

static void
got_all(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct load *l = arg;
	struct admind *a = l->a;
	struct tokens *ts = a->tokens;
	struct ipc_bytes b;
	struct ipc_hash digest;
	struct token *t;
	bool whole = err == NULL;

	ts->loads--;
	if (err == NULL) {
		for (int i = 0; i < CHAINS; i++)
			LIST_FOREACH(t, &ts->chains[i], chain)
				t->seen = false;
		set_editing(a, db_bool(rows, 0, 9));
		for (int i = 0; i < db_nrows(rows); i++) {
			b = db_bytes(rows, i, 1);
			if (b.n != sizeof(digest))
				continue; /* no token exists: one empty row */
			memcpy(&digest, b.p, sizeof(digest));
			t = by_digest(ts, &digest);
			if (t != NULL)
				t->seen = true;
			else if (add(a, rows, i, &digest) == -1)
				whole = false;
		}
		end_unseen(a);
	}
	/* A token for which there was no memory is refused until a later
	 * reading. */
	if (!whole)
		log_event(LOG_LV_ERR, "tokens", "not all were read: %s",
		    err != NULL ? err->text : "out of memory");
	ts->ready |= err == NULL;
	if (l->then != NULL)
		l->then(l->arg);
	free(l);
}

void
tokens_load(struct admind *a, void (*then)(void *), void *arg)
{
	struct load *l = calloc(1, sizeof(*l));

	if (l == NULL || all(a) == NULL) {
		log_event(LOG_LV_ERR, "memory", "tokens");
		free(l);
		if (then != NULL)
			then(arg);
		return;
	}
	l->a = a;
	l->then = then;
	l->arg = arg;
	a->tokens->loads++;
	db_query(a->db, &read_all, NULL, got_all, l);
}

void
tokens_db_up(struct admind *a)
{
	if (all(a) != NULL)
		a->tokens->ready = false;
	tokens_load(a, NULL, NULL);
}

/* Handles the payloads "created", "revoked UUID" and "editing WORD". */
void
tokens_notified(struct admind *a, const char *payload)
{
	struct token *t;
	struct ipc_id id;

	if (a->tokens == NULL)
		return;
	if (strncmp(payload, "revoked ", 8) == 0 &&
	    uuid_parse(payload + 8, strlen(payload + 8), &id) == 0) {
		t = tokens_by_id(a, &id);
		if (t != NULL)
			tokens_end(a, t, "it was revoked");
	} else if (strncmp(payload, "editing ", 8) == 0) {
		set_editing(a, strcmp(payload + 8, "enabled") == 0);
	} else {
		tokens_load(a, NULL, NULL);
	}
}

/* ---- another access document ---- */

static bool
same_rights(const struct permit *x, const struct permit *y)
{
	return x->scopes == y->scopes && strcmp(x->allow, y->allow) == 0 &&
	    strcmp(x->deny, y->deny) == 0;
}

/*
 * Puts a token with other rights in the place of one. Jobs keep the token that
 * they began with; of a token that loses a right they end, at their next step.
 * A token that only gains is not disturbed: gateways ask for its identity
 * again, since they hear of every document (GW_ACCESS).
 */
static void
replace(struct admind *a, struct token *t, struct token *by)
{
	by->id = t->id;
	by->digest = t->digest;
	memcpy(by->principal, t->principal, sizeof(by->principal));
	by->listeners = t->listeners;
	by->expires_us = t->expires_us;
	by->used_us = t->used_us;
	by->used_by = t->used_by;
	by->seen = t->seen;
	tokens_name_set(a, by);
	LIST_INSERT_BEFORE(t, by, chain);
	LIST_REMOVE(t, chain);
	t->gone = true;
	if (!permit_covers(&by->permit, &t->permit)) {
		log_call(LOG_LV_INFO, "token_changed", NULL, t->principal,
		    "its permission set %s lost a right", t->of.name);
		ended_jobs(a, t->principal);
		ended_runs_of(a, t->principal);
		ended_tell(a, &t->digest, t->principal, NULL, NULL);
	}
	token_unref(t);
}

void
tokens_judge_again(struct admind *a)
{
	struct token *t, *next, *by;

	for (int i = 0; a->tokens != NULL && i < CHAINS; i++)
		for (t = LIST_FIRST(&a->tokens->chains[i]); t != NULL;
		    t = next) {
			next = LIST_NEXT(t, chain);
			if (t->of.name[0] == '\0')
				continue;
			by = token_new(t->share);
			if (by != NULL)
				by->of = t->of;
			if (by == NULL || take_set(a, by) == -1) {
				/* Better no rights than those of a former
				 * document; a later reading brings it back. */
				token_unref(by);
				tokens_end(a, t, "out of memory");
				continue;
			}
			if (!same_rights(&by->permit, &t->permit)) {
				replace(a, t, by);
			} else {
				t->of = by->of;
				token_unref(by);
			}
		}
}

/* ---- time ---- */

void
tokens_tick(struct admind *a)
{
	uint64_t now = now_us();
	struct token *t, *next;

	if (a->tokens == NULL || !a->tokens->ready)
		return;
	for (int i = 0; i < CHAINS; i++)
		for (t = LIST_FIRST(&a->tokens->chains[i]); t != NULL;
		    t = next) {
			next = LIST_NEXT(t, chain);
			if (t->expires_us != 0 && t->expires_us <= now)
				tokens_end(a, t, "its time is over");
		}
	if (a->ticks % USED_TICKS == 0 && db_is_up(a->db))
		store_used(a);
}
