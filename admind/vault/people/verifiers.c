#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "stored.h"
#include "verifiers.h"

struct verifiers {
	struct {
		char name[SESSIONS_NAME_MAX + 1];
		uint64_t time_us;
	} row[VERIFIERS_NAMES];
};

struct verifiers *
verifiers_new(void)
{
	return calloc(1, sizeof(struct verifiers));
}

void
verifiers_free(struct verifiers *v)
{
	free(v);
}

static uint64_t
newest(const struct verifiers *v, const char *name)
{
	for (size_t i = 0; i < VERIFIERS_NAMES; i++)
		if (strcmp(v->row[i].name, name) == 0)
			return v->row[i].time_us;
	return 0;
}

bool
verifiers_current(const struct verifiers *v, const char *name, uint64_t time_us)
{
	return time_us >= newest(v, name);
}

uint64_t
verifiers_now(const struct verifiers *v, const char *name)
{
	uint64_t now = now_us(), seen = newest(v, name);

	return now > seen ? now : seen + 1;
}

/* The names that come here were sealed by a key of ours or made by root, so
 * there are only as many as administrators. If there are too many, the name
 * with the oldest time is forgotten. */
void
verifiers_stored(struct verifiers *v, const char *name, uint64_t time_us)
{
	size_t n = strlen(name), at = 0;

	if (n == 0 || n > SESSIONS_NAME_MAX || time_us <= newest(v, name))
		return;
	for (size_t i = 0; i < VERIFIERS_NAMES; i++) {
		if (strcmp(v->row[i].name, name) == 0) {
			at = i;
			break;
		}
		if (v->row[i].time_us < v->row[at].time_us)
			at = i;
	}
	memcpy(v->row[at].name, name, n + 1);
	v->row[at].time_us = time_us;
}

static struct stored_place
place(const char *name, const char *role)
{
	struct stored_place at = {
	    STORED_VERIFIERS, ipc_str(name), ipc_str(role)};

	return at;
}

int
verifiers_seal(struct verifiers *v, const struct keys *keys, const char *name,
    const char *role, const char *phc, struct buf *out, uint64_t *time_us,
    struct err *err)
{
	struct stored_place at = place(name, role);
	char plain[VERIFIERS_PLAIN_MAX + 1];
	uint64_t t = verifiers_now(v, name);
	int n, rc;

	n = snprintf(
	    plain, sizeof(plain), "t%llu %s", (unsigned long long)t, phc);
	if (n < 0 || (size_t)n >= sizeof(plain))
		return err_set(err, FAILURE_INTERNAL, "a verifier is too long");
	rc = stored_seal(keys, &at, plain, (size_t)n, out, err);
	if (rc == 0)
		*time_us = t;
	explicit_bzero(plain, sizeof(plain));
	return rc;
}

/* Parses "tDIGITS PHC". Verifiers sealed before times existed begin with their
 * PHC string and count as of time 0. Only a vault can have sealed the text, so
 * its form is that of this release or of an earlier one. */
static int
split(struct buf *plain, char *phc, uint64_t *time_us)
{
	const char *p = (const char *)plain->p;
	size_t n = plain->len, i = 0;
	uint64_t t = 0;

	if (n > 0 && p[0] == 't') {
		for (i = 1; i < n && i <= 20 && p[i] >= '0' && p[i] <= '9'; i++)
			t = t * 10 + (uint64_t)(p[i] - '0');
		if (i == 1 || i == n || p[i] != ' ')
			return -1;
		i++;
	}
	if (n - i == 0 || n - i >= SLOTS_ENCODED_MAX)
		return -1;
	memcpy(phc, p + i, n - i);
	phc[n - i] = '\0';
	*time_us = t;
	return 0;
}

int
verifiers_open(struct verifiers *v, const struct keys *keys, const char *name,
    const char *role, struct ipc_bytes stored, char *phc, uint64_t *time_us,
    struct err *err)
{
	struct stored_place at = place(name, role);
	struct buf plain;
	uint64_t t = 0;
	int rc = -1;

	buf_init(&plain, VERIFIERS_PLAIN_MAX);
	if (stored_open(keys, &at, stored.p, stored.n, &plain, err) == -1)
		goto out;
	if (split(&plain, phc, &t) == -1) {
		err_set(err, FAILURE_FORBIDDEN, "a verifier of unknown form");
		goto out;
	}
	if (!verifiers_current(v, name, t)) {
		explicit_bzero(phc, SLOTS_ENCODED_MAX);
		err_set(err, FAILURE_FORBIDDEN,
		    "an older verifier than was seen before: somebody put it "
		    "back");
		goto out;
	}
	verifiers_stored(v, name, t);
	*time_us = t;
	rc = 0;
out:
	buf_free(&plain);
	return rc;
}
