/*
 * The codec over every row of the table: round trips, then every truncation,
 * a trailing byte, oversize, and the permission rules.
 */
#include <limits.h>

#include "ipc.h"
#include "unit.h"

/* Fills every field of a message with a value that a mix-up would change. */
static void
fill(const struct ipc_info *info, uint8_t *msg)
{
	memset(msg, 0, info->size);
	for (size_t i = 0; i < info->nfields; i++) {
		const struct ipc_field *f = &info->fields[i];
		uint8_t *p = msg + f->offset;

		switch (f->type) {
		case IPC_F_u8:
			*p = (uint8_t)(i + 1);
			break;
		case IPC_F_u16:
			*(uint16_t *)(void *)p = (uint16_t)(0x1230 + i);
			break;
		case IPC_F_u32:
			*(uint32_t *)(void *)p = (uint32_t)(0x12345670 + i);
			break;
		case IPC_F_u64:
			*(uint64_t *)(void *)p = 0x123456789abcdef0 + i;
			break;
		case IPC_F_id:
			memset(p, (int)(0x40 + i), 16);
			break;
		case IPC_F_hash:
			memset(p, (int)(0x60 + i), 32);
			break;
		case IPC_F_str:
			*(struct ipc_bytes *)(void *)p = ipc_str("grüße");
			break;
		case IPC_F_bytes:
			*(struct ipc_bytes *)(void *)p = ipc_bytes("\0\xff", 2);
			break;
		case IPC_F_blob:
			*(struct ipc_bytes *)(void *)p = ipc_bytes("{}", 2);
			break;
		case IPC_F_fd:
			*(int *)(void *)p = 42;
			break;
		}
	}
}

/* Encodes, then hands the bytes over as a received frame would be. */
static void
deliver(const struct ipc_info *info, const void *msg, struct buf *b,
    struct ipc_frame *f)
{
	struct ipc_bytes spill;
	struct err e;
	int fd;

	assert_int_equal(
	    ipc_encode(info->type, 77, msg, b, &spill, &fd, &e), 0);
	assert_null(spill.p);
	assert_int_equal(ipc_decode_header(b->p, b->len, f, &e), 0);
	assert_int_equal(f->request, 77);
	f->payload = b->p + IPC_HEADER_LEN;
	f->payload_len = b->len - IPC_HEADER_LEN;
	if (info->nfds == 1)
		f->fd = fd;
}

static void
every_message_round_trips(void **state)
{
	const struct ipc_info *t;
	size_t n;

	t = ipc_table(&n);
	assert_true(n > 60);
	for (size_t i = 0; i < n; i++) {
		uint8_t *in = calloc(1, t[i].size), *out = calloc(1, t[i].size);
		struct ipc_frame f;
		struct buf b, b2;
		struct ipc_bytes spill;
		struct err e;
		int fd;

		assert_non_null(in);
		assert_non_null(out);
		buf_init(&b, IPC_FRAME_MAX);
		buf_init(&b2, IPC_FRAME_MAX);
		fill(&t[i], in);
		deliver(&t[i], in, &b, &f);
		assert_int_equal(ipc_decode(&f, out, &e), 0);
		assert_int_equal(f.fd, -1);
		assert_int_equal(
		    ipc_encode(t[i].type, 77, out, &b2, &spill, &fd, &e), 0);
		assert_int_equal(b.len, b2.len);
		assert_memory_equal(b.p, b2.p, b.len);
		buf_free(&b);
		buf_free(&b2);
		free(in);
		free(out);
	}
}

static void
every_truncation_and_a_trailing_byte_are_refused(void **state)
{
	const struct ipc_info *t;
	size_t n;

	t = ipc_table(&n);
	for (size_t i = 0; i < n; i++) {
		uint8_t *in = calloc(1, t[i].size), *out = calloc(1, t[i].size);
		struct ipc_frame f;
		struct buf b;
		struct err e;
		size_t whole;

		assert_non_null(in);
		assert_non_null(out);
		buf_init(&b, IPC_FRAME_MAX);
		fill(&t[i], in);
		deliver(&t[i], in, &b, &f);
		whole = f.payload_len;
		for (size_t cut = 0; cut < whole; cut++) {
			f.payload_len = cut;
			assert_int_equal(ipc_decode(&f, out, &e), -1);
		}
		buf_putc(&b, 0);
		f.payload = b.p + IPC_HEADER_LEN;
		f.payload_len = whole + 1;
		assert_int_equal(ipc_decode(&f, out, &e), -1);
		assert_non_null(strstr(e.text, "too many"));
		buf_free(&b);
		free(in);
		free(out);
	}
}

static void
header_lies_are_refused(void **state)
{
	static const struct {
		const char *why;
		uint8_t bytes[17];
		size_t n;
	} bad[] = {
	    {"short", {0, 3, 0, 0, 0, 0, 0}, 7},
	    {"unknown type", {0, 9}, 16},
	    {"type beyond the table", {1, 3}, 16},
	    {"unknown flag", {0, 30, 0, 2}, 16},
	    {"memfd where no blob is", {0, 3, 0, 1}, 16},
	    {"length too long", {0, 3, 0, 0, 0, 0, 0, 1}, 16},
	    {"length too short", {0, 3}, 17},
	};
	struct ipc_frame f;
	struct err e;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ipc_decode_header(bad[i].bytes, bad[i].n, &f, &e) != -1)
			fail_msg("accepted: %s", bad[i].why);
	assert_int_equal(
	    ipc_decode_header((const uint8_t[16]){0, 3}, 16, &f, &e), 0);
}

static void
text_must_be_text(void **state)
{
	static const struct ipc_bytes bad[] = {
	    {(const uint8_t *)"a\0b", 3},
	    {(const uint8_t *)"\xc0\xaf", 2},
	    {(const uint8_t *)"\xed\xa0\x80", 3},
	    {(const uint8_t *)"\xf4\x90\x80\x80", 4},
	    {(const uint8_t *)"\xe2\x82", 2},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ipc_whoami in = {.token = bad[i]}, out;
		struct ipc_frame f;
		struct buf b;
		struct err e;

		buf_init(&b, IPC_FRAME_MAX);
		deliver(ipc_info(IPC_WHOAMI), &in, &b, &f);
		assert_int_equal(ipc_decode(&f, &out, &e), -1);
		buf_free(&b);
	}
}

static void
large_blobs_travel_apart_and_have_a_limit(void **state)
{
	uint8_t *big = calloc(1, ARGUMENTS_MAX + 1);
	struct ipc_run m = {.arguments = {big, ARGUMENTS_MAX}}, out;
	struct ipc_bytes spill;
	struct ipc_frame f;
	struct buf b;
	struct err e;
	int fd;

	assert_non_null(big);
	buf_init(&b, IPC_FRAME_MAX);
	assert_int_equal(ipc_encode(IPC_RUN, 1, &m, &b, &spill, &fd, &e), 0);
	assert_ptr_equal(spill.p, big);
	assert_int_equal(spill.n, ARGUMENTS_MAX);
	assert_int_equal(ipc_decode_header(b.p, b.len, &f, &e), 0);
	assert_int_equal(f.flags, IPC_FLAG_MEMFD);
	f.payload = b.p + IPC_HEADER_LEN;
	f.payload_len = b.len - IPC_HEADER_LEN;
	f.blob = big;
	f.blob_len = ARGUMENTS_MAX;
	assert_int_equal(ipc_decode(&f, &out, &e), 0);
	assert_int_equal(out.arguments.n, ARGUMENTS_MAX);
	f.blob_len--; /* a memfd of another size than announced */
	assert_int_equal(ipc_decode(&f, &out, &e), -1);
	m.arguments.n++;
	assert_int_equal(ipc_encode(IPC_RUN, 1, &m, &b, &spill, &fd, &e), -1);
	assert_int_equal(e.failure, FAILURE_TOO_LARGE);
	buf_free(&b);
	free(big);
}

static void
the_table_decides_who_may_send_what(void **state)
{
	struct err e;

	/* What a hostile gateway would like to send. */
	for (unsigned type = 0; type <= IPC_TYPE_MAX; type++) {
		bool ok = ipc_permit(type, IPC_ROLE_GATEWAY, IPC_ROLE_ADMIND,
			      IPC_STATE_OPEN, &e) == 0;
		bool want = type == IPC_GW_ATTACH || type == IPC_AUTHENTICATE ||
		    type == IPC_CATALOGUE_GET || type == IPC_AUTHORISE ||
		    type == IPC_SESSION_END || type == IPC_TASK_GET ||
		    type == IPC_TASK_UPDATE || type == IPC_TASK_CANCEL ||
		    type == IPC_TASK_DROP || type == IPC_OK ||
		    type == IPC_REFUSED;

		if (ok != want)
			fail_msg("gatewayd to admind: %s", ipc_name(type));
	}
	for (unsigned type = 0; type <= IPC_TYPE_MAX; type++) {
		bool ok = ipc_permit(type, IPC_ROLE_GATEWAY, IPC_ROLE_SANDBOXD,
			      IPC_STATE_OPEN, &e) == 0;

		if (ok !=
		    (type == IPC_RUN || type == IPC_CANCEL ||
			type == IPC_CALL_ANSWER || type == IPC_OK ||
			type == IPC_REFUSED))
			fail_msg("gatewayd to sandboxd: %s", ipc_name(type));
		/* and nothing at all to the vault but generic answers */
		ok = ipc_permit(type, IPC_ROLE_GATEWAY, IPC_ROLE_VAULT,
			 IPC_STATE_OPEN, &e) == 0;
		if (ok != (type == IPC_OK || type == IPC_REFUSED))
			fail_msg("gatewayd to vault: %s", ipc_name(type));
	}
	/* admind may not approve. */
	assert_int_equal(ipc_permit(IPC_APPROVE, IPC_ROLE_ADMIND,
			     IPC_ROLE_VAULT, IPC_STATE_OPEN, &e),
	    -1);
	assert_int_equal(ipc_permit(IPC_LOGIN, IPC_ROLE_ADMIND, IPC_ROLE_VAULT,
			     IPC_STATE_OPEN, &e),
	    -1);
	assert_int_equal(ipc_permit(IPC_SETUP, IPC_ROLE_WEB, IPC_ROLE_VAULT,
			     IPC_STATE_OPEN, &e),
	    -1);
	/* Nothing but HELLO before HELLO; no HELLO after it. */
	assert_int_equal(ipc_permit(IPC_RUN, IPC_ROLE_GATEWAY,
			     IPC_ROLE_SANDBOXD, IPC_STATE_NEW, &e),
	    -1);
	assert_int_equal(ipc_permit(IPC_HELLO, IPC_ROLE_GATEWAY,
			     IPC_ROLE_SANDBOXD, IPC_STATE_OPEN, &e),
	    -1);
	/* A runner has no result before it is confined. */
	assert_int_equal(ipc_permit(IPC_RUN_RESULT, IPC_ROLE_RUNNER,
			     IPC_ROLE_SANDBOXD, IPC_STATE_WAITING, &e),
	    -1);
	assert_int_equal(ipc_permit(IPC_READY, IPC_ROLE_RUNNER,
			     IPC_ROLE_SANDBOXD, IPC_STATE_RUNNING, &e),
	    -1);
}

static void
listeners_have_names(void **state)
{
	static const char *const want[] = {"", "local", "tunnel", "admind", ""};

	(void)state;
	for (unsigned l = 0; l < sizeof(want) / sizeof(want[0]); l++)
		assert_string_equal(listener_name(l), want[l]);
	assert_string_equal(listener_name(UINT_MAX), "");
	assert_int_equal(listener_of("local"), LISTENER_LOCAL);
	assert_int_equal(listener_of("tunnel"), LISTENER_TUNNEL);
	assert_int_equal(listener_of("admind"), LISTENER_ADMIND);
	assert_int_equal(listener_of(""), LISTENER_NONE);
	assert_int_equal(listener_of("loca"), LISTENER_NONE);
	assert_int_equal(listener_of("tunnels"), LISTENER_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_message_round_trips),
	    cmocka_unit_test(every_truncation_and_a_trailing_byte_are_refused),
	    cmocka_unit_test(header_lies_are_refused),
	    cmocka_unit_test(text_must_be_text),
	    cmocka_unit_test(large_blobs_travel_apart_and_have_a_limit),
	    cmocka_unit_test(the_table_decides_who_may_send_what),
	    cmocka_unit_test(listeners_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
