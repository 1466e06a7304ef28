/*
 * What gatewayd does to questions and answers. Input: u16 mask of declared
 * capabilities, u16 m, m bytes of questions, then a client's inputResponses,
 * also taken as the result of a response. Properties: what is asked and what
 * goes to sandboxd is JSON; each question is open or answered, once.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "questions.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
valid(const struct questions *q)
{
	struct buf b;
	bool end = false;
	unsigned i, open = 0;

	buf_init(&b, 4 * 1024 * 1024);
	questions_requests(q, &b);
	if (b.failed || json_scan(b.p, b.len, NULL) != 0)
		abort();
	buf_clear(&b);
	questions_answers(q, &b);
	if (b.failed || json_scan(b.p, b.len, NULL) != 0)
		abort();
	for (i = 0; !end; i++) {
		buf_clear(&b);
		if (!questions_request(q, i, &b, &end))
			continue;
		open++;
		/* A page's params may bring the name that we add. */
		if (b.failed ||
		    (json_scan(b.p, b.len, NULL) != 0 &&
			memmem(b.p, b.len, "elicitation", 11) == NULL))
			abort();
	}
	if (open != questions_open(q))
		abort();
	buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ipc_bytes none = {NULL, 0}, answers;
	struct questions *q;
	unsigned declared;
	size_t m;

	if (n < 4)
		return 0;
	declared = (unsigned)p[0] << 8 | p[1];
	m = (size_t)p[2] << 8 | p[3];
	p += 4;
	n -= 4;
	if (m > n)
		m = n;
	answers = ipc_bytes(p + m, n - m);
	if (json_scan(answers.p, answers.n, NULL) != 0 || answers.p[0] != '{')
		answers = none;
	if ((q = questions_new(1, ipc_bytes(p, m))) == NULL)
		return 0;
	valid(q);
	questions_take(q, answers);
	valid(q);
	questions_declared(q, declared, (enum mcp_rev)(declared >> 8) % 4);
	valid(q);
	(void)questions_response(
	    q, ipc_str("\"AAAAAAAAAAAAAAAAAAAAAA\""), answers, none);
	questions_fail(q, "no");
	valid(q);
	if (questions_open(q) != 0)
		abort();
	questions_free(q);
	return 0;
}
