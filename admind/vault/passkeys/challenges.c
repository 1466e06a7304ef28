#include <stdlib.h>
#include <string.h>

#include "challenges.h"
#include "ids.h"

struct row {
	enum challenges_kind kind; /* 0: the row is free */
	struct ipc_id login;
	uint8_t bytes[CLIENTDATA_CHALLENGE];
	uint64_t deadline_ms;
};

struct code {
	char name[PASSKEYS_NAME_MAX + 1]; /* empty: the row is free */
	char role[SESSIONS_ROLE_MAX + 1];
	struct ipc_hash text; /* SHA-256 of the code: the code is not kept */
	uint64_t deadline_ms;
};

struct challenges {
	struct row row[CHALLENGES_MAX];
	struct code code[CHALLENGES_CODES];
};

struct challenges *
challenges_new(void)
{
	return calloc(1, sizeof(struct challenges));
}

void
challenges_free(struct challenges *c)
{
	if (c == NULL)
		return;
	explicit_bzero(c, sizeof(*c));
	free(c);
}

static struct row *
of_login(struct challenges *c, const struct ipc_id *login)
{
	for (size_t i = 0; i < CHALLENGES_MAX; i++)
		if (c->row[i].kind != 0 &&
		    memcmp(c->row[i].login.b, login->b, sizeof(login->b)) == 0)
			return &c->row[i];
	return NULL;
}

/* Takes the login's row, or the row that ends first: a free one, which ended at
 * 0, before all others. There are as many rows as logins, so the row of a live
 * login goes only if others of its time were of logins that are gone. */
void
challenges_make(struct challenges *c, const struct ipc_id *login,
    enum challenges_kind kind, uint64_t boot_ms,
    uint8_t out[CLIENTDATA_CHALLENGE])
{
	struct row *r = of_login(c, login);

	if (r == NULL) {
		r = &c->row[0];
		for (size_t i = 1; i < CHALLENGES_MAX; i++)
			if (c->row[i].deadline_ms < r->deadline_ms)
				r = &c->row[i];
	}
	r->kind = kind;
	r->login = *login;
	r->deadline_ms = boot_ms + CHALLENGES_MS;
	random_bytes(r->bytes, sizeof(r->bytes));
	memcpy(out, r->bytes, sizeof(r->bytes));
}

int
challenges_take(struct challenges *c, const struct ipc_id *login,
    enum challenges_kind kind, uint64_t boot_ms,
    uint8_t out[CLIENTDATA_CHALLENGE])
{
	struct row *r = of_login(c, login);
	bool good;

	if (r == NULL)
		return -1;
	good = r->kind == kind && boot_ms < r->deadline_ms;
	if (good)
		memcpy(out, r->bytes, sizeof(r->bytes));
	explicit_bzero(r, sizeof(*r));
	return good ? 0 : -1;
}

/* ---- codes ---- */

static struct code *
code_of(struct challenges *c, const char *name)
{
	for (size_t i = 0; i < CHALLENGES_CODES; i++)
		if (strcmp(c->code[i].name, name) == 0)
			return &c->code[i];
	return NULL;
}

void
challenges_code(struct challenges *c, const char *name, const char *role,
    uint64_t boot_ms, char out[CHALLENGES_CODE_TEXT + 1])
{
	uint8_t raw[CHALLENGES_CODE_BYTES];
	struct code *k = code_of(c, name);

	if (k == NULL) {
		k = &c->code[0];
		for (size_t i = 1; i < CHALLENGES_CODES; i++)
			if (c->code[i].deadline_ms < k->deadline_ms)
				k = &c->code[i];
	}
	memset(k, 0, sizeof(*k));
	strncpy(k->name, name, sizeof(k->name) - 1);
	strncpy(k->role, role, sizeof(k->role) - 1);
	k->deadline_ms = boot_ms + CHALLENGES_CODE_MS;
	random_bytes(raw, sizeof(raw));
	b64url_encode(raw, sizeof(raw), out);
	sha256(out, CHALLENGES_CODE_TEXT, &k->text);
	explicit_bzero(raw, sizeof(raw));
}

const char *
challenges_code_role(struct challenges *c, const char *name,
    struct ipc_bytes text, uint64_t boot_ms)
{
	struct code *k = name[0] != '\0' ? code_of(c, name) : NULL;
	struct ipc_hash hash;

	if (k == NULL || text.n != CHALLENGES_CODE_TEXT)
		return NULL;
	sha256(text.p, text.n, &hash);
	if (!ct_equal(hash.b, k->text.b, sizeof(hash.b)) ||
	    boot_ms >= k->deadline_ms)
		return NULL;
	return k->role;
}

void
challenges_code_end(struct challenges *c, const char *name)
{
	struct code *k = code_of(c, name);

	if (k != NULL && name[0] != '\0')
		explicit_bzero(k, sizeof(*k));
}
