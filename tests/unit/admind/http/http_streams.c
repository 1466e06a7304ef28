#include "unit.h"

#include "crypto.h"
#include "http_client.h"
#include "http_streams.h"
#include "web.h"

/*
 * Plays admind for streams of keys. `served` ends after three looks: it is busy
 * at the first, and as it is asked for activity again after that. At the third
 * the key is revoked. `unlucky` finds it busy for ever. Each look is told in
 * the stream first.
 */
#define SERVED  "mbk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define UNLUCKY "mbk_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"

static struct {
	uint64_t request; /* of the last ACTIVITY_FOLLOW */
	unsigned follows, looks;
} streams[2];

static size_t
stream_of(struct ipc_bytes token)
{
	char text[LOGIN_HASH_TEXT + 1];
	struct ipc_hash h;
	size_t mark = strlen(SCRIPT_KEY_MARK);

	sha256(UNLUCKY, strlen(UNLUCKY), &h);
	b64url_encode(&h, sizeof(h), text);
	return ipc_streq(ipc_bytes(token.p + mark, token.n - mark), text);
}

static int
tell(struct ipc_peer *p, size_t of)
{
	struct ipc_activity_lines m = {0};
	char line[64];

	snprintf(line, sizeof(line), "{\"follow\":%u,\"look\":%u}\n",
	    streams[of].follows, streams[of].looks);
	m.lines = ipc_str(line);
	return ipc_answer(p, streams[of].request, IPC_ACTIVITY_LINES, &m);
}

int
http_streams_message(struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_activity_follow follow;
	struct ipc_script_key_check check;
	struct err e;
	size_t of;

	if (f->type == IPC_ACTIVITY_FOLLOW) {
		if (ipc_decode(f, &follow, &e) < 0)
			return -1;
		of = stream_of(follow.token);
		if (++streams[of].follows == 2)
			return ipc_refuse(p, follow.request, FAILURE_BUSY,
			    "too many keys", 0);
		streams[of].request = follow.request;
		return tell(p, of);
	}
	if (ipc_decode(f, &check, &e) < 0)
		return -1;
	of = stream_of(check.token);
	streams[of].looks++;
	if ((of == 1 || streams[of].looks != 2) && tell(p, of) < 0)
		return -1;
	if (of == 0 && streams[of].looks == 1 &&
	    ipc_answer_ok(p, streams[of].request) < 0)
		return -1;
	if (of == 0 && streams[of].looks == 2)
		return ipc_answer_ok(p, check.request);
	return ipc_refuse(p, check.request,
	    of == 0 && streams[of].looks == 3 ? FAILURE_UNAUTHENTICATED
					      : FAILURE_BUSY,
	    "no", 0);
}

void
http_streams_busy(void **state)
{
	static const char path[] = "/api/activity/stream";
	int served =
		http_send("GET", path, "Authorization: Bearer " SERVED, NULL),
	    unlucky =
		http_send("GET", path, "Authorization: Bearer " UNLUCKY, NULL);

	(void)state;
	assert_int_equal(http_read(served), 200);
	/* The second question was refused as busy; the good look asked for the
	 * third, and said that something may be missing. */
	assert_non_null(strstr(answer, "{\"follow\":1,\"look\":1}"));
	assert_non_null(strstr(answer, "{\"type\":\"dropped\",\"count\":0}"));
	assert_non_null(strstr(answer, "{\"follow\":3,\"look\":2}"));
	assert_non_null(strstr(answer, "{\"follow\":3,\"look\":3}"));
	assert_non_null(strstr(answer, "\"failure_mode\":\"unauthenticated\""));
	assert_int_equal(http_read(unlucky), 200);
	assert_non_null(strstr(answer, "{\"follow\":1,\"look\":6}"));
	assert_null(strstr(answer, "\"look\":7"));
	assert_non_null(strstr(answer, "\"failure_mode\":\"busy\""));
}
