#include <string.h>

#include "devices.h"
#include "ids.h"
#include "macs.h"
#include "sessions.h"

enum { FIXED = 1 + 8 + 16, BODY_MAX = FIXED + SESSIONS_NAME_MAX };

/*
 * Seals the fixed part and the name. The cookie's text has the fixed part and
 * the seal without its body, so it lacks the name. But the MAC covers the name.
 * So a person's cookie is invalid for another name, and does not show whose it
 * is.
 */
static int
seal(const struct keys *keys, const uint8_t fixed[FIXED], const char *username,
    struct buf *w)
{
	struct err err;

	macs_open(keys, w);
	buf_put(w, fixed, FIXED);
	buf_put(w, username, strlen(username));
	return macs_close(keys, MACS_DEVICE, w, &err);
}

int
devices_make(const struct keys *keys, enum devices_kind kind,
    const char *username, uint64_t now_s, struct devices_text *out)
{
	uint8_t raw[FIXED + MACS_OVERHEAD], random[16];
	struct buf w;
	int rc = -1;

	buf_init(&w, MACS_OVERHEAD + BODY_MAX);
	raw[0] = (uint8_t)kind;
	for (int i = 0; i < 8; i++)
		raw[1 + i] = (uint8_t)(now_s >> (56 - 8 * i));
	random_bytes(random, sizeof(random));
	memcpy(raw + 9, random, sizeof(random));
	if (strlen(username) > SESSIONS_NAME_MAX ||
	    seal(keys, raw, username, &w) == -1)
		goto out;
	memcpy(raw + FIXED, w.p, MACS_HEAD_LEN);
	memcpy(raw + FIXED + MACS_HEAD_LEN, w.p + w.len - MACS_LEN, MACS_LEN);
	b64url_encode(raw, sizeof(raw), out->s);
	rc = 0;
out:
	buf_free(&w);
	return rc;
}

bool
devices_check(const struct keys *keys, const char *username,
    struct ipc_bytes text, uint64_t now_s, struct ipc_id *number)
{
	uint8_t raw[FIXED + MACS_OVERHEAD];
	const uint8_t *body;
	uint64_t made = 0, life;
	bool good = false;
	size_t nbody;
	struct err err;
	struct buf w;

	if (text.n != (sizeof(raw) * 4 + 2) / 3 ||
	    strlen(username) > SESSIONS_NAME_MAX ||
	    b64url_decode((const char *)text.p, text.n, raw) !=
		(long)sizeof(raw))
		return false;
	buf_init(&w, MACS_OVERHEAD + BODY_MAX);
	buf_put(&w, raw + FIXED, MACS_HEAD_LEN);
	buf_put(&w, raw, FIXED);
	buf_put(&w, username, strlen(username));
	buf_put(&w, raw + FIXED + MACS_HEAD_LEN, MACS_LEN);
	if (w.failed ||
	    macs_check(keys, MACS_DEVICE, w.p, w.len, &body, &nbody, &err) ==
		-1)
		goto out;
	for (int i = 0; i < 8; i++)
		made = made << 8 | raw[1 + i];
	life = raw[0] == DEVICES_BROWSER ? DEVICES_BROWSER_S
	    : raw[0] == DEVICES_CODE     ? DEVICES_CODE_S
					 : 0;
	/* a clock that was set back makes no device invalid */
	if (now_s > made && now_s - made >= life)
		goto out;
	memcpy(number->b, raw + 9, sizeof(number->b));
	good = life != 0;
out:
	buf_free(&w);
	return good;
}
