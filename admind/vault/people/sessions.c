#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto.h"
#include "ids.h"
#include "sessions.h"

struct sessions {
	uint64_t ttl_ms, idle_ms, serial;
	struct session row[SESSIONS_MAX];
};

struct sessions *
sessions_new(uint64_t ttl_ms, uint64_t idle_ms)
{
	struct sessions *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->ttl_ms = ttl_ms;
	s->idle_ms = idle_ms;
	return s;
}

void
sessions_free(struct sessions *s)
{
	if (s == NULL)
		return;
	explicit_bzero(s, sizeof(*s));
	free(s);
}

static void
end(struct session *s)
{
	explicit_bzero(s, sizeof(*s));
}

static bool
over(const struct session *r, uint64_t boot_ms)
{
	return boot_ms >= r->deadline_ms || boot_ms >= r->idle_deadline_ms;
}

/*
 * Finds a row for a new login: a free or expired row or, if there is none or
 * the user has too many logins, the row of the user's oldest login. So a login
 * never ends another person's login.
 */
static struct session *
find_row(
    struct sessions *s, const char *username, bool pending, uint64_t boot_ms)
{
	size_t max = pending ? SESSIONS_PENDING_PER_USER : SESSIONS_PER_USER;
	struct session *unused = NULL, *oldest = NULL;
	size_t mine = 0;

	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *r = &s->row[i];

		if (r->live && over(r, boot_ms))
			end(r);
		if (!r->live) {
			unused = unused == NULL ? r : unused;
			continue;
		}
		if (strcmp(r->username, username) != 0 || r->pending != pending)
			continue;
		mine++;
		if (oldest == NULL || r->serial < oldest->serial)
			oldest = r;
	}
	return mine >= max || unused == NULL ? oldest : unused;
}

static struct session *
add(struct sessions *s, const char *username, const char *role,
    enum session_by by, bool pending, const struct session_origin *from,
    uint64_t boot_ms, uint64_t unix_ms, char token[SESSIONS_TEXT + 1])
{
	uint64_t ttl = pending ? SESSIONS_PENDING_MS : s->ttl_ms;
	uint8_t raw[LOGIN_BYTES];
	struct session *r;
	size_t un = strlen(username), rn = strlen(role);

	if (un > SESSIONS_USER_MAX || rn > SESSIONS_ROLE_MAX ||
	    (r = find_row(s, username, pending, boot_ms)) == NULL)
		return NULL;
	end(r);
	random_bytes(raw, sizeof(raw));
	b64url_encode(raw, sizeof(raw), token);
	sha256(token, SESSIONS_TEXT, &r->token);
	explicit_bzero(raw, sizeof(raw));
	memcpy(r->username, username, un + 1);
	memcpy(r->role, role, rn + 1);
	random_bytes(r->id.b, sizeof(r->id.b));
	if (from != NULL)
		r->from = *from;
	r->created_ms = unix_ms;
	r->expires_ms = unix_ms + ttl;
	r->deadline_ms = boot_ms + ttl;
	r->serial = ++s->serial;
	r->live = true;
	r->by = by;
	r->pending = pending;
	if (by == SESSION_BY_PASSWORD && !pending)
		sessions_prove(s, r, boot_ms);
	sessions_touch(s, r, boot_ms, unix_ms);
	return r;
}

const struct session *
sessions_add(struct sessions *s, const char *username, const char *role,
    enum session_by by, const struct session_origin *from, uint64_t boot_ms,
    uint64_t unix_ms, char token[SESSIONS_TEXT + 1])
{
	return add(s, username, role, by, false, from, boot_ms, unix_ms, token);
}

const struct session *
sessions_add_pending(struct sessions *s, const char *username, const char *role,
    const struct session_origin *from, uint64_t boot_ms, uint64_t unix_ms,
    char token[SESSIONS_TEXT + 1])
{
	return add(s, username, role, SESSION_BY_PASSWORD, true, from, boot_ms,
	    unix_ms, token);
}

/* Ends the person's oldest whole login if there would be too many now. A full
 * table ends none: the login has its row already. */
bool
sessions_complete(struct sessions *s, const struct session *what,
    uint64_t boot_ms, uint64_t unix_ms)
{
	struct session *r = &s->row[what - s->row], *oldest = NULL;
	size_t whole = 0;

	if (!r->live || over(r, boot_ms))
		return false;
	for (struct session *o = s->row; o < s->row + SESSIONS_MAX; o++) {
		if (!o->live || o->pending || over(o, boot_ms) ||
		    strcmp(o->username, r->username) != 0)
			continue;
		whole++;
		if (oldest == NULL || o->serial < oldest->serial)
			oldest = o;
	}
	if (whole >= SESSIONS_PER_USER)
		end(oldest);
	r->pending = false;
	r->expires_ms = unix_ms + s->ttl_ms;
	r->deadline_ms = boot_ms + s->ttl_ms;
	r->serial = ++s->serial;
	sessions_prove(s, r, boot_ms);
	sessions_touch(s, r, boot_ms, unix_ms);
	return true;
}

void
sessions_cap(struct sessions *s, const struct session *what, const char *cap,
    const char *role)
{
	struct session *r = &s->row[what - s->row];
	char lower[sizeof(r->role)];

	/* role may be the login's own */
	(void)snprintf(lower, sizeof(lower), "%s", role);
	(void)snprintf(r->cap, sizeof(r->cap), "%s", cap);
	memcpy(r->role, lower, sizeof(lower));
}

void
sessions_based(struct sessions *s, const struct session *what,
    const struct ipc_hash *basis)
{
	s->row[what - s->row].basis = *basis;
}

size_t
sessions_keep(struct sessions *s, const struct ipc_hash *bases, size_t n)
{
	size_t ended = 0, i;

	for (struct session *r = s->row; r < s->row + SESSIONS_MAX; r++) {
		if (!r->live || r->by != SESSION_BY_ISSUER)
			continue;
		for (i = 0; i < n; i++)
			if (memcmp(&bases[i], &r->basis, sizeof(r->basis)) == 0)
				break;
		if (i == n) {
			end(r);
			ended++;
		}
	}
	return ended;
}

size_t
sessions_by_issuer(struct sessions *s, uint64_t boot_ms)
{
	const struct session *r;
	size_t n = 0;

	for (size_t i = 0; (r = sessions_next(s, &i, boot_ms)) != NULL;)
		n += r->by == SESSION_BY_ISSUER;
	return n;
}

void
sessions_prove(struct sessions *s, const struct session *what, uint64_t boot_ms)
{
	struct session *r = &s->row[what - s->row];

	r->proven = true;
	r->proof_boot_ms = boot_ms;
}

/* A proof in the future counts for nothing: the difference is then too large.
 */
bool
sessions_proven(const struct session *r, uint64_t boot_ms)
{
	return r->proven && boot_ms - r->proof_boot_ms <= SESSIONS_PROOF_MS;
}

/* The idle deadline is never later than the login's own end. So a page left
 * open that asks every minute does not keep a login alive for ever. */
void
sessions_touch(struct sessions *s, const struct session *what, uint64_t boot_ms,
    uint64_t unix_ms)
{
	struct session *r = &s->row[what - s->row];
	uint64_t left = r->deadline_ms > boot_ms ? r->deadline_ms - boot_ms : 0;

	if (left > s->idle_ms)
		left = s->idle_ms;
	r->seen_ms = unix_ms;
	r->idle_deadline_ms = boot_ms + left;
	r->idle_ms = unix_ms + left;
}

/* Compares the hash with every row, in constant time each, so that the time
 * taken does not tell which hash was nearly right. */
const struct session *
sessions_find_any(
    struct sessions *s, const struct ipc_hash *hash, uint64_t boot_ms)
{
	struct session *found = NULL;

	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (ct_equal(s->row[i].token.b, hash->b, sizeof(hash->b)) &&
		    s->row[i].live)
			found = &s->row[i];
	if (found != NULL && over(found, boot_ms)) {
		end(found);
		found = NULL;
	}
	return found;
}

static const struct session *
complete(const struct session *r)
{
	return r != NULL && r->pending ? NULL : r;
}

const struct session *
sessions_find(struct sessions *s, const struct ipc_hash *hash, uint64_t boot_ms)
{
	return complete(sessions_find_any(s, hash, boot_ms));
}

const struct session *
sessions_find_text(struct sessions *s, struct ipc_bytes text, uint64_t boot_ms,
    struct ipc_hash *hash)
{
	return complete(sessions_find_text_any(s, text, boot_ms, hash));
}

const struct session *
sessions_find_text_any(struct sessions *s, struct ipc_bytes text,
    uint64_t boot_ms, struct ipc_hash *hash)
{
	struct ipc_hash h;

	if (text.n != SESSIONS_TEXT)
		return NULL;
	sha256(text.p, text.n, &h);
	if (hash != NULL)
		*hash = h;
	return sessions_find_any(s, &h, boot_ms);
}

void
sessions_end(struct sessions *s, const struct ipc_hash *hash)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (s->row[i].live &&
		    ct_equal(s->row[i].token.b, hash->b, sizeof(hash->b)))
			end(&s->row[i]);
}

size_t
sessions_end_user(
    struct sessions *s, const char *username, const struct ipc_hash *keep)
{
	size_t ended = 0;

	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *r = &s->row[i];

		if (!r->live || strcmp(r->username, username) != 0)
			continue;
		if (keep == NULL ||
		    !ct_equal(r->token.b, keep->b, sizeof(keep->b))) {
			end(r);
			ended++;
		}
	}
	return ended;
}

/* Compares without constant time: an id is no secret, because administrators
 * see the ids of all logins. */
const struct session *
sessions_by_id(struct sessions *s, const struct ipc_id *id, uint64_t boot_ms)
{
	const struct session *r;

	for (size_t i = 0; (r = sessions_next(s, &i, boot_ms)) != NULL;)
		if (memcmp(r->id.b, id->b, sizeof(id->b)) == 0)
			return r;
	return NULL;
}

const struct session *
sessions_next(struct sessions *s, size_t *at, uint64_t boot_ms)
{
	while (*at < SESSIONS_MAX) {
		struct session *r = &s->row[(*at)++];

		if (r->live && over(r, boot_ms))
			end(r);
		if (r->live)
			return r;
	}
	return NULL;
}
