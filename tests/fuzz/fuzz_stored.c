/*
 * Stored values and seals as the vault meets them again: bytes that a hostile
 * admind brings, under two master keys.
 *
 * The first byte picks: 0 and 1 a stored value of that table, 2 a signature of
 * the audit chain, from 16 on a seal of purpose byte - 16. What must hold:
 * under keys that nobody has nothing opens or verifies, and so nothing is
 * renewed; what was made here does both, whatever stands in it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "anchors.h"
#include "macs.h"
#include "stored.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static struct keys old = {.id = {1}}, new = {.id = {2}};

static void
fresh_keys(void)
{
	if (new.also != NULL)
		return;
	memset(old.secrets, 1, KEY_LEN);
	memset(old.verifiers, 2, KEY_LEN);
	memset(old.approvals, 3, KEY_LEN);
	memset(new.secrets, 4, KEY_LEN);
	memset(new.verifiers, 5, KEY_LEN);
	memset(new.approvals, 6, KEY_LEN);
	new.also = &old;
}

static void
value(enum stored_table table, const uint8_t *p, size_t n)
{
	const struct stored_place at = {
	    table, ipc_str("demo"), ipc_str("TOKEN")};
	struct buf out, sealed;

	buf_init(&out, 64 * 1024);
	buf_init(&sealed, 64 * 1024 + STORED_OVERHEAD);
	if (stored_open(&new, &at, p, n, &out, NULL) == 0)
		abort();
	if (n <= 64 * 1024) {
		if (stored_seal(&old, &at, p, n, &sealed, NULL) == -1 ||
		    stored_open(&new, &at, sealed.p, sealed.len, &out, NULL) ==
			-1 ||
		    out.len != n || (n != 0 && memcmp(out.p, p, n) != 0))
			abort();
	}
	buf_free(&out);
	buf_free(&sealed);
}

static void
seal(enum macs_purpose purpose, const uint8_t *p, size_t n)
{
	const uint8_t *body;
	struct buf out, made;
	size_t len;

	buf_init(&out, MACS_MAX);
	buf_init(&made, MACS_MAX);
	if (macs_check(&new, purpose, p, n, &body, &len, NULL) == 0 ||
	    macs_renew(&new, purpose, p, n, &out, NULL) == 0)
		abort();
	macs_open(&old, &made);
	buf_put(&made, p, n);
	if (macs_close(&old, purpose, &made, NULL) == 0) {
		if (macs_renew(&new, purpose, made.p, made.len, &out, NULL) ==
			-1 ||
		    macs_check(&new, purpose, out.p, out.len, &body, &len,
			NULL) == -1 ||
		    len != n || (n != 0 && memcmp(body, p, n) != 0))
			abort();
		if (macs_check(&new, (purpose + 1) % MACS_COUNT, made.p,
			made.len, &body, &len, NULL) == 0)
			abort();
	}
	buf_free(&out);
	buf_free(&made);
}

static void
anchor(const uint8_t *p, size_t n)
{
	struct ipc_hash head, signature;

	if (n < sizeof(head.b) + sizeof(signature.b))
		return;
	memcpy(head.b, p, sizeof(head.b));
	memcpy(signature.b, p + sizeof(head.b), sizeof(signature.b));
	if (anchors_check(&new, n, &head, &signature) != NULL)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fresh_keys();
	if (size == 0)
		return 0;
	if (data[0] >= 16)
		seal((data[0] - 16) % MACS_COUNT, data + 1, size - 1);
	else if (data[0] >= 2)
		anchor(data + 1, size - 1);
	else
		value(data[0], data + 1, size - 1);
	return 0;
}
