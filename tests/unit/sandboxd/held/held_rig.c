/* See held_rig.h. */
#include "held_rig.h"
#include "tlv.h"
#include "unit.h"

const uint8_t held_rig_key[KEY_LEN] = "thirty-two bytes of a test's key";
const struct ipc_id held_rig_epoch = {"epoch epoch epoc"};
const struct ipc_bytes held_rig_args = {(const uint8_t *)"{\"a\":1}", 7};
uint64_t held_rig_counter;

struct ipc_id
held_rig_id(uint8_t n)
{
	struct ipc_id id = {{n}};

	return id;
}

void
held_rig_seal(struct buf *out, const struct ipc_id *ep, struct ipc_id id,
    uint8_t listener, uint8_t kind, uint64_t number, const struct buf *more)
{
	struct context_binding b = {
	    .epoch = *ep, .execution = id, .listener = listener, .kind = kind};
	struct ipc_hash h;
	struct buf plain;

	buf_init(&plain, 1 << 20);
	tlv_puts(&plain, CTX_CODE, "code");
	sha256(held_rig_args.p, held_rig_args.n, &h);
	tlv_put(&plain, CTX_ARGS_SHA256, &h, sizeof(h));
	tlv_put_u64(&plain, CTX_TIMEOUT_MS, 1000);
	tlv_put_u64(&plain, CTX_HOLD_UNTIL_MS, 500);
	if (more != NULL)
		buf_put(&plain, more->p, more->len);
	buf_init(out, 1 << 20);
	assert_int_equal(context_seal(held_rig_key, number, &b, plain.p,
			     plain.len, out, NULL),
	    0);
	buf_free(&plain);
}

int
held_rig_add(struct held_set *s, uint8_t n, uint8_t listener, uint8_t kind,
    const struct buf *more, struct err *e)
{
	struct ipc_id id = held_rig_id(n);
	struct buf b;
	int rc;

	held_rig_seal(
	    &b, &held_rig_epoch, id, listener, kind, ++held_rig_counter, more);
	rc = held_add(s, &id, listener, ipc_bytes(b.p, b.len), 1000, e);
	buf_free(&b);
	return rc;
}

int
held_rig_setup(void **state)
{
	static struct held_set s;

	assert_int_equal(held_init(&s, 4, &held_rig_epoch), 0);
	held_key(&s, held_rig_key);
	*state = &s;
	return 0;
}

int
held_rig_teardown(void **state)
{
	held_clear(*state);
	return 0;
}

struct held *
held_rig_with(struct held_set *s, uint8_t kind, const struct buf *more)
{
	static uint8_t n = 100;

	n++;
	if (held_rig_add(s, n, LISTENER_ADMIND, kind, more, NULL) != 0)
		return NULL;
	return held_remove(s, &(struct ipc_id){{n}}, 0);
}
