/*
 * Changes for people with signed tokens: an administrator withdraws or
 * restores an identity, or another document holds.
 *
 * Withdrawn principals are in memory, as they were read from the database, with
 * the changes that were notified since. While the database is not reachable, no
 * signed token is accepted, and when it is back, none is until all were read
 * again. So a notification that was missed does not matter. The readings use
 * the connection that brings the notifications, so a reading never undoes a
 * later one.
 *
 * A person that loses something ends whole, with all tokens: jobs under way are
 * refused at their next step, runs are cancelled (also those of tasks), and
 * gateways drop streams and waiting calls. If such a person has rights in the
 * new document, the next request brings them. identities_runs.c has the runs of
 * people that are not remembered.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "ended.h"
#include "identities.h"
#include "ids.h"
#include "log.h"

struct withdrawn {
	struct table_node node;
	bool seen; /* the reading that comes to its end found it */
	char principal[PRINCIPAL_MAX + 1];
};

static const struct db_stmt read_withdrawn = {"identities_withdrawn",
    "SELECT principal FROM mcpbox.identities WHERE withdrawn_at IS NOT NULL",
    DB_FAST};
/* Finds open runs of withdrawn identities, in any sandbox. */
static const struct db_stmt withdrawn_runs = {"identities_withdrawn_runs",
    "SELECT e.id FROM mcpbox.executions e"
    " JOIN mcpbox.identities i ON i.principal = e.principal"
    " WHERE e.state = 'open' AND e.kind IN ('tool', 'test', 'inspect')"
    " AND i.withdrawn_at IS NOT NULL",
    DB_FAST};
/* Finds the newest time that records have, which is past. A time that is more
 * than a day ahead is of a clock that was wrong. */
static const struct db_stmt read_newest = {"identities_newest",
    "SELECT max(created_at) FROM mcpbox.executions"
    " WHERE created_at < $1::timestamptz + interval '1 day'",
    DB_FAST};

/* ---- the end of a person ---- */

/* Ends a person, and adds the principal to the array for ended_runs(). */
static void
person_end(struct admind *a, struct person *x, const char *why,
    struct db_array *principals)
{
	static const struct ipc_hash every;
	struct rights *r;

	log_call(LOG_LV_INFO, "identity_ended", NULL, x->principal, "%s", why);
	LIST_FOREACH(r, &x->rights, entry)
		r->token->gone = true;
	people_forget_all(&a->identities->people, x);
	ended_jobs(a, x->principal);
	ended_tell(a, &every, x->principal, NULL, NULL);
	db_a_str(principals, x->principal);
}

/* ---- withdrawals ---- */

/* Counts the withdrawn people of an issuer. Without memory they are not
 * counted; the database bounds their number all the same. */
static void
count(struct identities *x, const char *principal, int more)
{
	struct part *part = people_part(&x->people, principal);

	if (part != NULL && (more > 0 || part->withdrawn > 0))
		part->withdrawn += (unsigned)more;
}

static struct withdrawn *
find(const struct identities *x, const char *principal)
{
	return TABLE_OBJECT(struct withdrawn, node,
	    table_find(&x->withdrawn, principal, strlen(principal)));
}

bool
identities_withdrawn(const struct admind *a, const char *principal)
{
	return find(a->identities, principal) != NULL;
}

/* Adds a principal. Returns false without memory. */
static bool
add(struct identities *x, struct ipc_bytes principal)
{
	struct withdrawn *w;
	char text[PRINCIPAL_MAX + 1];

	if (principal.n == 0 || principal.n > PRINCIPAL_MAX)
		return true; /* no person has such a name */
	memcpy(text, principal.p, principal.n);
	text[principal.n] = '\0';
	w = find(x, text);
	if (w == NULL) {
		w = calloc(1, sizeof(*w));
		if (w == NULL)
			return false;
		memcpy(w->principal, text, principal.n + 1);
		table_add(&x->withdrawn, &w->node, w->principal, principal.n);
		count(x, w->principal, 1);
	}
	w->seen = true;
	return true;
}

/* Ends the work of a principal, remembered or not. */
static void
end_principal(struct admind *a, const char *principal)
{
	static const struct ipc_hash every;
	struct person *x = people_person(&a->identities->people, principal);
	struct db_array one;

	db_array_init(&one, DB_TEXT, IPC_FRAME_MAX);
	if (x != NULL) {
		if (x->used_us != 0)
			identities_seen_store(a);
		person_end(a, x, "it was withdrawn", &one);
	} else {
		ended_jobs(a, principal);
		ended_tell(a, &every, principal, NULL, NULL);
		db_a_str(&one, principal);
	}
	ended_runs(a, &one);
	db_array_free(&one);
}

/* ---- reading them ---- */

static void
forget(struct identities *x, struct withdrawn *w)
{
	count(x, w->principal, -1);
	table_del(&x->withdrawn, &w->node);
	free(w);
}

static void
forget_unseen(struct table_node *node, void *arg)
{
	struct withdrawn *w = TABLE_OBJECT(struct withdrawn, node, node);

	if (!w->seen)
		forget(arg, w);
}

static void
mark_unseen(struct table_node *node, void *arg)
{
	TABLE_OBJECT(struct withdrawn, node, node)->seen = false;
}

static void
got_runs(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct ipc_id id;

	for (int i = 0; err == NULL && i < db_nrows(rows); i++) {
		id = db_id(rows, i, 0);
		if (identities_cancel(a, &id) == -1)
			log_event(LOG_LV_ERR, "memory", "a withdrawn run");
	}
}

/* Ends remembered people that are withdrawn. The runs of others are found in
 * the database. */
static void
end_withdrawn(struct admind *a)
{
	struct db_array ended;
	struct person *x;

	db_array_init(&ended, DB_TEXT, IPC_BLOB_MAX);
	LIST_FOREACH(x, &a->identities->people.all, entry)
		if (identities_withdrawn(a, x->principal) &&
		    (x->ncredentials > 0 || x->share->jobs > 0))
			person_end(a, x, "it was withdrawn", &ended);
	db_array_free(&ended);
	db_query(a->db, &withdrawn_runs, NULL, got_runs, a);
}

static void
got_newest(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;

	if (err == NULL && db_nrows(rows) == 1 && !db_null(rows, 0, 0))
		latest_was(&a->identities->latest, db_time_us(rows, 0, 0));
}

static void read_them(struct admind *);

static void
got_withdrawn(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct identities *x = a->identities;
	bool whole = err == NULL;

	x->reading = false;
	if (err == NULL) {
		table_each(&x->withdrawn, mark_unseen, NULL);
		for (int i = 0; i < db_nrows(rows); i++)
			whole &= add(x, db_bytes(rows, i, 0));
	}
	if (whole) {
		table_each(&x->withdrawn, forget_unseen, x);
		x->ready = true;
		end_withdrawn(a);
	} else {
		/* The tick reads again. Until then no signed token is accepted.
		 */
		x->ready = false;
		log_event(LOG_LV_ERR, "identities",
		    "the withdrawn ones were not read: %s",
		    err != NULL ? err->text : "out of memory");
	}
	if (x->again)
		read_them(a);
}

static void
read_them(struct admind *a)
{
	struct identities *x = a->identities;
	struct db_params p;

	x->again = x->reading;
	if (x->reading)
		return;
	x->reading = true;
	db_params_init(&p);
	db_p_time_us(&p, now_us());
	db_query(a->db, &read_newest, &p, got_newest, a);
	db_query(a->db, &read_withdrawn, NULL, got_withdrawn, a);
}

void
identities_db_up(struct admind *a)
{
	if (a->identities == NULL)
		return;
	a->identities->ready = false;
	read_them(a);
}

void
identities_retry(struct admind *a)
{
	if (a->identities != NULL && !a->identities->ready &&
	    !a->identities->reading && db_is_up(a->db))
		read_them(a);
}

void
identities_notified(struct admind *a, const char *payload)
{
	static const char gone[] = "withdrawn ", back[] = "restored ";
	struct withdrawn *w;
	const char *principal;

	if (a->identities == NULL)
		return;
	if (strncmp(payload, gone, sizeof(gone) - 1) == 0) {
		principal = payload + sizeof(gone) - 1;
		if (!add(a->identities, ipc_str(principal)))
			identities_db_up(
			    a); /* until they are read, no token is accepted */
		end_principal(a, principal);
	} else if (strncmp(payload, back, sizeof(back) - 1) == 0) {
		w = find(a->identities, payload + sizeof(back) - 1);
		if (w != NULL)
			forget(a->identities, w);
	}
}

/* ---- another document ---- */

static bool
same(struct ipc_bytes a, struct ipc_bytes b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Returns whether this token has the same rights by the new document. */
static bool
keeps(const struct credential *c, const struct compiled *from,
    const struct compiled *to)
{
	const struct token *t = c->rights->token;
	const struct access_set *set;
	const struct issuer *was, *is;
	struct claims claims;

	if (claims_read(&claims, ipc_bytes(c->claims.p, c->claims.len), NULL) ==
	    -1)
		return false;
	was = issuers_named(from, claims.issuer);
	is = issuers_named(to, claims.issuer);
	if (was == NULL || is == NULL || !same(was->record, is->record))
		return false;
	set = rules_set(to, &claims);
	return set != NULL &&
	    rules_scopes(is, set, &claims) == t->permit.scopes &&
	    strcmp(set->allow, t->permit.allow) == 0 &&
	    strcmp(set->deny, t->permit.deny) == 0;
}

static bool
keeps_all(const struct person *x, const struct compiled *from,
    const struct compiled *to)
{
	struct credential *c;

	TAILQ_FOREACH(c, &x->credentials, entry)
		if (!keeps(c, from, to))
			return false;
	return true;
}

/* Notes the set that the rights of a person are of now: its name, its rate, and
 * the scopes that another token may have. */
static void
note_sets(struct admind *a, struct person *x, const struct compiled *to)
{
	const struct access_set *set;
	const struct issuer *s;
	struct credential *c;
	struct claims claims;
	struct rights *r;

	TAILQ_FOREACH(c, &x->credentials, entry) {
		if (claims_read(&claims, ipc_bytes(c->claims.p, c->claims.len),
			NULL) == -1 ||
		    (set = rules_set(to, &claims)) == NULL ||
		    (s = issuers_named(to, claims.issuer)) == NULL)
			continue; /* keeps() has read all of this */
		r = identities_rights(a, x, s, set, &claims);
		if (r != NULL && r != c->rights)
			people_move(c, r);
	}
}

void
identities_judge_again(
    struct admind *a, const struct compiled *from, const struct compiled *to)
{
	struct db_array ended;
	struct person *x;

	if (a->identities == NULL)
		return;
	identities_seen_store(a);
	db_array_init(&ended, DB_TEXT, IPC_BLOB_MAX);
	LIST_FOREACH(x, &a->identities->people.all, entry)
		if (x->ncredentials > 0 ? !keeps_all(x, from, to)
					: x->share->jobs > 0 &&
			    !rules_same(from, to, ipc_str(x->issuer)))
			person_end(
			    a, x, "another access document holds", &ended);
		else if (x->ncredentials > 0)
			note_sets(a, x, to);
	if (ended.n > 0)
		ended_runs(a, &ended);
	db_array_free(&ended);
	people_divide(&a->identities->people, to != NULL ? to->nissuers : 0);
	identities_judge_runs(a, from, to);
}
