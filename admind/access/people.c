/* See people.h. */
#include <stdlib.h>
#include <string.h>

#include "people.h"

int
people_init(struct people *p)
{
	memset(p, 0, sizeof(*p));
	LIST_INIT(&p->all);
	LIST_INIT(&p->parts);
	p->issuers = 1;
	if (table_init(&p->by_principal, PEOPLE_CREDENTIALS_MAX) == -1)
		return -1;
	if (table_init(&p->by_hash, PEOPLE_CREDENTIALS_MAX) == 0)
		return 0;
	table_free(&p->by_principal);
	return -1;
}

struct person *
people_person(const struct people *p, const char *principal)
{
	return TABLE_OBJECT(struct person, node,
	    table_find(&p->by_principal, principal, strlen(principal)));
}

struct credential *
people_credential(const struct people *p, const struct ipc_hash *hash)
{
	return TABLE_OBJECT(struct credential, node,
	    table_find(&p->by_hash, hash, sizeof(*hash)));
}

/* ---- parts ---- */

struct part *
people_part(struct people *p, const char *principal)
{
	const char *name = principal + strcspn(principal, ":");
	struct part *part;
	size_t n;

	name += *name == ':';
	n = strcspn(name, ":");
	LIST_FOREACH(part, &p->parts, entry)
		if (strncmp(part->issuer, name, n) == 0 &&
		    part->issuer[n] == '\0')
			return part;
	if (n >= sizeof(part->issuer))
		return NULL; /* no issuer has such a name */
	part = calloc(1, sizeof(*part));
	if (part == NULL)
		return NULL;
	memcpy(part->issuer, name, n);
	for (unsigned i = 0; i <= PERSON_CREDENTIALS_MAX; i++)
		TAILQ_INIT(&part->with[i]);
	LIST_INSERT_HEAD(&p->parts, part, entry);
	return part;
}

/* Writes a person's number of tokens, and puts him into that list. */
static void
set_number(struct person *x, unsigned n)
{
	TAILQ_REMOVE(&x->part->with[x->ncredentials], x, turn);
	x->ncredentials = n;
	TAILQ_INSERT_TAIL(&x->part->with[n], x, turn);
}

void
people_came(struct person *x)
{
	set_number(x, x->ncredentials);
}

/* Makes room in a part. It must have a token. */
static void
push_out(struct people *p, struct part *part)
{
	unsigned n = PERSON_CREDENTIALS_MAX;

	while (n > 1 && TAILQ_EMPTY(&part->with[n]))
		n--;
	people_forget(
	    p, TAILQ_FIRST(&TAILQ_FIRST(&part->with[n])->credentials));
}

/* Pushes out tokens until a part has room for so many more, of so many
 * bytes. */
static void
make_room(struct people *p, struct part *part, unsigned more, size_t bytes)
{
	while (part->ncredentials > 0 &&
	    (part->ncredentials + more > PEOPLE_CREDENTIALS_MAX / p->issuers ||
		part->bytes + bytes > PEOPLE_BYTES_MAX / p->issuers))
		push_out(p, part);
}

void
people_divide(struct people *p, unsigned issuers)
{
	struct part *part;

	p->issuers = issuers > 0 ? issuers : 1;
	LIST_FOREACH(part, &p->parts, entry)
		make_room(p, part, 0, 0);
}

bool
people_full(struct people *p, const char *principal)
{
	const struct part *part = people_part(p, principal);

	return part != NULL && part->npeople >= PEOPLE_MAX / p->issuers;
}

struct person *
people_make(struct people *p, const char *principal)
{
	struct person *x = people_person(p, principal);
	size_t n = strlen(principal);
	struct part *part;

	if (x != NULL || n > PRINCIPAL_MAX)
		return x;
	part = people_part(p, principal);
	if (part == NULL || people_full(p, principal))
		return NULL;
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return NULL;
	x->share = token_share_new();
	if (x->share == NULL) {
		free(x);
		return NULL;
	}
	memcpy(x->principal, principal, n + 1);
	LIST_INIT(&x->rights);
	TAILQ_INIT(&x->credentials);
	table_add(&p->by_principal, &x->node, x->principal, n);
	LIST_INSERT_HEAD(&p->all, x, entry);
	x->part = part;
	part->npeople++;
	TAILQ_INSERT_TAIL(&part->with[0], x, turn);
	return x;
}

/* ---- rights ---- */

static bool
equal(const struct token *t, unsigned scopes, const char *allow,
    const char *deny, unsigned listeners, const struct token_of *of)
{
	return strcmp(t->of.name, of->name) == 0 &&
	    t->of.scopes == of->scopes && t->of.per_minute == of->per_minute &&
	    t->permit.scopes == scopes && t->listeners == listeners &&
	    strcmp(t->permit.allow, allow) == 0 &&
	    strcmp(t->permit.deny, deny) == 0;
}

struct rights *
people_rights(struct person *x, unsigned scopes, const char *allow,
    const char *deny, unsigned listeners, const struct token_of *of, bool *made)
{
	struct rights *r;
	struct token *t;

	*made = false;
	LIST_FOREACH(r, &x->rights, entry)
		if (equal(r->token, scopes, allow, deny, listeners, of))
			return r;
	r = calloc(1, sizeof(*r));
	t = r != NULL ? token_new(x->share) : NULL;
	if (t == NULL) {
		free(r);
		return NULL;
	}
	t->permit.scopes = scopes;
	t->permit.allow = strdup(allow);
	t->permit.deny = strdup(deny);
	t->listeners = listeners;
	t->of = *of;
	memcpy(t->principal, x->principal, sizeof(t->principal));
	if (t->permit.allow == NULL || t->permit.deny == NULL) {
		token_unref(t);
		free(r);
		return NULL;
	}
	r->token = t;
	LIST_INSERT_HEAD(&x->rights, r, entry);
	*made = true;
	return r;
}

static void
rights_drop(struct rights *r)
{
	LIST_REMOVE(r, entry);
	token_unref(r->token);
	free(r);
}

void
people_move(struct credential *c, struct rights *to)
{
	struct rights *from = c->rights;

	to->credentials++;
	c->rights = to;
	if (--from->credentials == 0)
		rights_drop(from);
}

/* ---- tokens ---- */

void
people_forget(struct people *p, struct credential *c)
{
	struct rights *r = c->rights;

	table_del(&p->by_hash, &c->node);
	TAILQ_REMOVE(&c->person->credentials, c, entry);
	set_number(c->person, c->person->ncredentials - 1);
	p->ncredentials--;
	c->person->part->ncredentials--;
	c->person->part->bytes -= c->claims.len;
	buf_free(&c->claims);
	free(c);
	if (--r->credentials == 0)
		rights_drop(r);
}

void
people_forget_all(struct people *p, struct person *x)
{
	struct credential *c;

	while ((c = TAILQ_FIRST(&x->credentials)) != NULL)
		people_forget(p, c);
}

struct credential *
people_remember(struct people *p, struct person *x, struct rights *r,
    const struct ipc_hash *hash, struct ipc_bytes claims)
{
	struct credential *c = calloc(1, sizeof(*c)), *former;

	if (c == NULL)
		return NULL;
	buf_init(&c->claims, IPC_FRAME_MAX);
	buf_put(&c->claims, claims.p, claims.n);
	if (c->claims.failed) {
		buf_free(&c->claims);
		free(c);
		return NULL;
	}
	/* Its rights must outlive those that are forgotten now. */
	r->credentials++;
	former = people_credential(p, hash);
	if (former != NULL)
		people_forget(p, former);
	while (x->ncredentials >= PERSON_CREDENTIALS_MAX)
		people_forget(p, TAILQ_FIRST(&x->credentials));
	make_room(p, x->part, 1, c->claims.len);
	c->person = x;
	c->rights = r;
	c->hash = *hash;
	c->age = ++p->age;
	table_add(&p->by_hash, &c->node, &c->hash, sizeof(c->hash));
	TAILQ_INSERT_TAIL(&x->credentials, c, entry);
	set_number(x, x->ncredentials + 1);
	p->ncredentials++;
	x->part->ncredentials++;
	x->part->bytes += c->claims.len;
	return c;
}

void
people_tidy(struct people *p)
{
	struct person *x, *next;
	struct rights *r, *after;
	struct part *part, *later;

	for (x = LIST_FIRST(&p->all); x != NULL; x = next) {
		next = LIST_NEXT(x, entry);
		/* made for a token that then could not be remembered */
		for (r = LIST_FIRST(&x->rights); r != NULL; r = after) {
			after = LIST_NEXT(r, entry);
			if (r->credentials == 0)
				rights_drop(r);
		}
		/* The share stays as long as a request of the person is in
		 * work, or he could take a second one. */
		if (x->ncredentials > 0 || x->share->refs > 1 ||
		    x->used_us != 0)
			continue;
		table_del(&p->by_principal, &x->node);
		LIST_REMOVE(x, entry);
		TAILQ_REMOVE(&x->part->with[0], x, turn);
		x->part->npeople--;
		token_share_unref(x->share);
		free(x);
	}
	for (part = LIST_FIRST(&p->parts); part != NULL; part = later) {
		later = LIST_NEXT(part, entry);
		if (part->npeople > 0 || part->withdrawn > 0)
			continue;
		LIST_REMOVE(part, entry);
		free(part);
	}
}
