/*
 * Sealed contexts as sandboxd meets them (foreign bytes), and SEAL_CONTEXT's
 * material as the vault meets it (a hostile admind).
 *
 * The first byte picks: 0 context_split and context_open; 1 to 3 material of a
 * context of that kind. What must hold: nothing but what was sealed opens, and
 * what contexts_seal accepts opens again to a well-formed list.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "contexts.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static const struct context_binding binding = {
    .listener = LISTENER_ADMIND, .kind = CONTEXT_TOOL};

static void
foreign(const uint8_t *p, size_t n)
{
	static const uint8_t key[KEY_LEN] = {42};
	const uint8_t *nonce, *ct;
	struct buf out;
	size_t len;

	if (context_split(p, n, &nonce, &ct, &len, NULL) == 0 &&
	    (nonce != p + 1 || ct + len != p + n || len < GCM_TAG_LEN))
		abort();
	buf_init(&out, IPC_BLOB_MAX);
	/* A forgery under an unknown key: 2^-128 a try. */
	if (context_open(key, &binding, p, n, &out, NULL) == 0)
		abort();
	buf_free(&out);
}

static void
material(uint8_t kind, const uint8_t *p, size_t n)
{
	static const struct keys keys;
	static struct contexts *contexts;
	static uint8_t key[KEY_LEN];
	struct context_binding b = binding;
	struct ipc_seal_context m;
	struct tlv_reader r;
	struct buf sealed, plain;
	struct tlv f;
	int rc;

	memset(&m, 0, sizeof(m));
	if (contexts == NULL) {
		if ((contexts = contexts_new()) == NULL)
			abort();
		contexts_key(contexts, &m.epoch, key);
	}
	m.kind = b.kind = kind;
	m.listener = b.listener;
	m.material = ipc_bytes(p, n);
	buf_init(&sealed, IPC_BLOB_MAX);
	buf_init(&plain, IPC_BLOB_MAX);
	if (contexts_seal(contexts, &keys, &m, &sealed, NULL) == 0) {
		/* No seal can be made without the key. (keys are zero here, so
		 * a fuzzer that learned HMAC would be right to complain.) */
		if (context_open(key, &b, sealed.p, sealed.len, &plain, NULL) ==
		    -1)
			abort();
		tlv_open(&r, plain.p, plain.len);
		while ((rc = tlv_next(&r, &f)) == 1)
			if (kind != CONTEXT_TOOL &&
			    (f.tag <= CTX_SECRET_VALUE ||
				f.tag == CTX_VERSION_HASH))
				abort();
		if (rc == -1)
			abort();
	}
	buf_free(&sealed);
	buf_free(&plain);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] >= CONTEXT_TOOL && data[0] <= CONTEXT_TEST)
		material(data[0], data + 1, size - 1);
	else
		foreign(data + 1, size - 1);
	return 0;
}
