#include <string.h>

#include "ids.h"
#include "tickets.h"

enum { PART_MAX = 32 }; /* of a name, and of an issuer's name */

static bool
in(uint8_t c, bool name)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
	    (name && ((c >= 'A' && c <= 'Z') || c == '_' || c == '.'));
}

bool
tickets_name_ok(struct ipc_bytes u, struct ipc_bytes issuer)
{
	size_t n = u.n - issuer.n - 1;

	if (issuer.n < 1 || issuer.n > PART_MAX || issuer.p[0] < 'a' ||
	    issuer.p[0] > 'z' || u.n < issuer.n + 2 || n > PART_MAX ||
	    u.p[n] != '@' || memcmp(u.p + n + 1, issuer.p, issuer.n) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!in(u.p[i], true))
			return false;
	for (size_t i = 0; i < issuer.n; i++)
		if (!in(issuer.p[i], false))
			return false;
	return true;
}

bool
tickets_holds(const struct tickets *t, const struct ipc_hash *basis)
{
	for (size_t i = 0; i < t->nbases; i++)
		if (memcmp(&t->basis[i], basis, sizeof(*basis)) == 0)
			return true;
	return false;
}

static void
forget(struct ticket *r)
{
	explicit_bzero(r, sizeof(*r));
}

void
tickets_follow(struct tickets *t, const struct ipc_hash *bases, size_t n)
{
	t->nbases = n < TICKETS_BASES_MAX ? n : TICKETS_BASES_MAX;
	if (t->nbases > 0)
		memcpy(t->basis, bases, t->nbases * sizeof(t->basis[0]));
	for (size_t i = 0; i < TICKETS_MAX; i++)
		if (t->row[i].until_ms != 0 &&
		    !tickets_holds(t, &t->row[i].basis))
			forget(&t->row[i]);
}

int
tickets_add(struct tickets *t, const struct ticket *new, uint64_t boot_ms,
    struct err *err)
{
	struct ticket *room = NULL;

	if (!tickets_holds(t, &new->basis))
		return err_set(err, FAILURE_CONFLICT,
		    "the access document was changed during the sign-in");
	for (size_t i = 0; i < TICKETS_MAX; i++) {
		struct ticket *r = &t->row[i];

		if (r->until_ms <= boot_ms)
			forget(r);
		if (r->until_ms == 0)
			room = r;
		else if (ct_equal(
			     r->ticket.b, new->ticket.b, sizeof(r->ticket.b)))
			return err_set(err, FAILURE_CONFLICT,
			    "this browser has a grant already");
	}
	if (room == NULL)
		return err_set(
		    err, FAILURE_BUSY, "too many people sign in at once");
	*room = *new;
	return 0;
}

/* Compares with every row in constant time, as sessions_find(). */
bool
tickets_take(struct tickets *t, const struct ipc_hash *hash, uint64_t boot_ms,
    struct ticket *out)
{
	struct ticket *found = NULL;
	bool good;

	for (size_t i = 0; i < TICKETS_MAX; i++)
		if (ct_equal(t->row[i].ticket.b, hash->b, sizeof(hash->b)) &&
		    t->row[i].until_ms != 0)
			found = &t->row[i];
	if (found == NULL)
		return false;
	good = found->until_ms > boot_ms && tickets_holds(t, &found->basis);
	if (good)
		*out = *found;
	forget(found);
	return good;
}

void
tickets_drop(struct tickets *t, const char *username)
{
	t->drops++;
	for (size_t i = 0; i < TICKETS_MAX; i++)
		if (t->row[i].until_ms != 0 &&
		    strcmp(t->row[i].username, username) == 0)
			forget(&t->row[i]);
}
