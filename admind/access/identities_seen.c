/*
 * Notes each person's last use, for administrators. Each few seconds one
 * statement writes all notes, as for API tokens. A person whose use is stored
 * may be freed.
 */
#include <string.h>

#include "access.h"
#include "identities.h"
#include "log.h"
#include "narrow.h"

static const struct db_stmt seen = {"identities_seen",
    "SELECT mcpbox.identity_seen($1::text[], $2::text[], $3::text[],"
    " $4::text[], $5::text[], $6::timestamptz[], $7::text[])",
    DB_FAST};

enum column { PRINCIPAL, ISSUER, SUBJECT, EMAIL, SET, AT, LISTENER, COLUMNS };

static void
stored(void *arg, const struct pg_result *rows, const struct err *err)
{
	/* If a use was not stored, a later one will be. */
	if (err != NULL)
		log_event(LOG_LV_WARN, "identities_seen", "%s", err->text);
}

/* Returns the part of a principal after oidc:ISSUER: */
static const char *
subject_of(const struct person *x)
{
	return x->principal + sizeof("oidc:") - 1 + strlen(x->issuer) + 1;
}

static void
put(struct db_array c[COLUMNS], struct person *x)
{
	db_a_str(&c[PRINCIPAL], x->principal);
	db_a_str(&c[ISSUER], x->issuer);
	db_a_str(&c[SUBJECT], subject_of(x));
	db_a_str(&c[EMAIL], x->email[0] != '\0' ? x->email : NULL);
	db_a_str(&c[SET], x->set);
	db_a_time_us(&c[AT], x->used_us);
	db_a_str(&c[LISTENER], listener_name(x->used_by));
	x->used_us = 0;
}

void
identities_seen_store(struct admind *a)
{
	struct db_array c[COLUMNS];
	struct db_params p;
	struct person *x;
	unsigned n = 0;

	for (int i = 0; i < COLUMNS; i++)
		db_array_init(&c[i], i == AT ? DB_TIME : DB_TEXT, IPC_BLOB_MAX);
	LIST_FOREACH(x, &a->identities->people.all, entry)
		if (x->used_us != 0) {
			put(c, x);
			n++;
		}
	if (n > 0) {
		db_params_init(&p);
		for (int i = 0; i < COLUMNS; i++)
			db_p_array(&p, &c[i]);
		db_query(a->db, &seen, &p, stored, a);
	}
	for (int i = 0; i < COLUMNS; i++)
		db_array_free(&c[i]);
}

/* ---- people that nothing needs ---- */

/* No caller has a narrowed token without a reference: one comes with a verdict,
 * before any endpoint is looked at, the other is the tick. */
void
identities_tidy(struct admind *a)
{
	if (a->access != NULL)
		narrow_tidy(a->access->narrowed);
	people_tidy(&a->identities->people);
}
