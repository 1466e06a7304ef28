/*
 * The list of issuers, and the way to an issuer.
 *
 * Every program on this machine may ask, since a login comes later. It learns
 * the names of issuers and gets an address at an issuer, made of the document,
 * of its metadata and of random numbers. Nothing is remembered and no run
 * begins, so a flood costs no more than its requests (state.h).
 *
 * The address is https, and on a host that the document names. So a hostile run
 * that fetched the metadata can't send browsers elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "ids.h"
#include "signin.h"
#include "tlv.h"

enum { URL_MAX = 8 * 1024 }; /* ten texts of the document, escaped */

int
signin_start(struct admind *a, struct err *err)
{
	a->signin = calloc(1, sizeof(*a->signin));
	if (a->signin == NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	random_bytes(a->signin->key, sizeof(a->signin->key));
	a->signin->clear = true;
	return 0;
}

static int
list(struct link *l, struct ipc_frame *f)
{
	struct ipc_signin_list m;
	struct ipc_admin_json out = {0};
	struct offers offers;
	struct jsonw w;
	struct err err;
	struct buf b;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (document_ready(l->a, &err) == -1) {
		link_refuse(l, m.request, err.failure, err.text);
		return 0;
	}
	offers_read(&offers, l->a->access->now);
	buf_init(&b, IPC_FRAME_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "items");
	jsonw_arr(&w);
	for (unsigned i = 0; i < offers.n; i++) {
		jsonw_obj(&w);
		jsonw_kv_strn(&w, "name", offers.offer[i].issuer->name.p,
		    offers.offer[i].issuer->name.n);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_name(&w, "next_cursor");
	jsonw_null(&w);
	jsonw_obj_end(&w);
	out.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		link_refuse(l, m.request, FAILURE_BUSY, "out of memory");
	else
		link_answer(l, m.request, IPC_ADMIN_JSON, &out);
	buf_free(&b);
	return 0;
}

/* Finds the address of the issuer's sign-in. 0, or -1 with err. */
static int
endpoint(struct admind *a, const struct offer *o, struct ipc_bytes *url,
    struct err *err)
{
	const struct keyset *s =
	    keysets_find(&a->access->keysets, o->issuer->name);
	struct tlv f;

	if (s == NULL || !s->read || now_boot_ms() >= s->end_ms)
		return err_set(err, FAILURE_ISSUER_UNAVAILABLE,
		    "the issuer's metadata are not there: %s",
		    s != NULL && s->why[0] != '\0' ? s->why
						   : "they are being fetched");
	if (tlv_find(s->sign_in.p, s->sign_in.len, KEYS_SIGN_IN_FAULT, &f) == 1)
		return err_set(err, FAILURE_UPSTREAM,
		    "this issuer signs in no administrators: %.*s", (int)f.n,
		    (const char *)f.p);
	if (tlv_find(s->sign_in.p, s->sign_in.len, KEYS_SIGN_IN_URL, &f) != 1 ||
	    !offers_covers(
		ipc_bytes(s->source.p, s->source.len), ipc_bytes(f.p, f.n)))
		return err_set(err, FAILURE_UPSTREAM,
		    "this issuer signs in no administrators: its metadata name "
		    "no "
		    "address on a host of the access document");
	*url = ipc_bytes(f.p, f.n);
	return 0;
}

static int
begin(struct link *l, struct ipc_frame *f)
{
	char text[STATE_TEXT + 1], nonce[STATE_SECRET_TEXT + 1];
	char verifier[STATE_SECRET_TEXT + 1], challenge[STATE_SECRET_TEXT + 1];
	const uint8_t *key = l->a->signin->key;
	struct ipc_signin_url out = {0};
	struct ipc_signin_begin m;
	const struct offer *o;
	struct offers offers;
	struct ipc_bytes url = {0};
	struct state s = {0};
	struct buf b;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (document_ready(l->a, &err) == -1) {
		link_refuse(l, m.request, err.failure, err.text);
		return 0;
	}
	offers_read(&offers, l->a->access->now);
	if ((o = offers_named(&offers, m.issuer)) == NULL) {
		link_refuse(l, m.request, FAILURE_NOT_FOUND,
		    "administrators sign in by no issuer of this name");
		return 0;
	}
	if (endpoint(l->a, o, &url, &err) == -1) {
		link_refuse(l, m.request, err.failure, err.text);
		return 0;
	}
	id_random(&s.id);
	s.begun_ms = now_boot_ms();
	s.ticket = m.ticket;
	s.basis = o->basis;
	state_make(key, &s, text);
	state_nonce(key, &s, nonce);
	state_verifier(key, &s, verifier);
	state_challenge(verifier, challenge);
	explicit_bzero(verifier, sizeof(verifier));
	buf_init(&b, URL_MAX);
	offers_url(&b, o, url, text, nonce, challenge);
	out.url = ipc_bytes(b.p, b.len);
	if (b.failed)
		link_refuse(l, m.request, FAILURE_BUSY, "out of memory");
	else
		link_answer(l, m.request, IPC_SIGNIN_URL, &out);
	buf_free(&b);
	return 0;
}

int
signin_message(struct link *l, struct ipc_frame *f)
{
	return f->type == IPC_SIGNIN_LIST ? list(l, f) : begin(l, f);
}
