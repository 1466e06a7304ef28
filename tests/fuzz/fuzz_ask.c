/*
 * What sandboxd does to questions and answers. Input: u8 n, n bytes of a
 * secret's value, u16 m, m bytes of questions, then answers. Properties: what
 * passes is JSON, without the secret, and a question of MCP's kinds; the tool
 * gets one answer for each key, as JSON, whatever the client said.
 */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "json_scan.h"
#include "json_grammar.h"
#include "tlv.h"
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static unsigned
keys(struct ipc_bytes object)
{
	struct ipc_bytes name, v;
	struct walk w;
	unsigned n = 0;

	if (walk_open(&w, object, '{') != 0)
		abort();
	while (walk_next(&w, &name, &v)) {
		if (name.n == 0 || name.n > ASK_KEY_MAX || v.p[0] != '{')
			abort();
		n++;
	}
	return n;
}

static void
answered(struct ipc_bytes questions, struct ipc_bytes answers)
{
	unsigned n = keys(questions);
	struct buf out;

	buf_init(&out, answers.n + 64 * 1024);
	ask_answers(questions, answers, &out);
	if (out.failed || json_scan(out.p, out.len, NULL) != 0 ||
	    keys(ipc_bytes(out.p, out.len)) != n)
		abort();
	buf_clear(&out);
	ask_refuse(questions, -1, "no", &out);
	if (out.failed || json_scan(out.p, out.len, NULL) != 0 ||
	    keys(ipc_bytes(out.p, out.len)) != n)
		abort();
	buf_free(&out);
}

static void
asked(struct redact *r, struct ipc_bytes text, struct ipc_bytes secret,
    struct ipc_bytes answers)
{
	static const char fixed[] =
	    "elicitation/create sampling/createMessage roots/list method "
	    "params message requestedSchema mode url messages maxTokens "
	    "modelPreferences systemPrompt includeContext temperature "
	    "stopSequences metadata tools toolChoice";
	struct buf out;
	struct err e;

	buf_init(&out, text.n + 1024);
	if (ask_take(text, r, &out, &e) == 0) {
		if (out.failed || !json_grammar_valid(out.p, out.len) ||
		    keys(ipc_bytes(out.p, out.len)) > ASK_QUESTIONS_MAX)
			abort();
		/* What the platform writes itself, and a mark, may look like
		 * one; punctuation between members, too. */
		if (secret.n >= REDACT_MIN &&
		    memmem(fixed, sizeof(fixed), secret.p, secret.n) == NULL &&
		    memchr(secret.p, '"', secret.n) == NULL &&
		    memchr(secret.p, '[', secret.n) == NULL &&
		    memchr(secret.p, ']', secret.n) == NULL &&
		    memmem(out.p, out.len, secret.p, secret.n) != NULL)
			abort();
		answered(ipc_bytes(out.p, out.len), answers);
	}
	buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ipc_bytes secret, questions, answers;
	struct redact *r;
	struct buf tlv;
	size_t m;

	if (n < 3 || n < (size_t)p[0] + 3)
		return 0;
	secret = ipc_bytes(p + 1, p[0]);
	p += 1 + secret.n;
	n -= 1 + secret.n;
	m = (size_t)p[0] << 8 | p[1];
	p += 2;
	n -= 2;
	if (m > n)
		m = n;
	questions = ipc_bytes(p, m);
	answers = ipc_bytes(p + m, n - m);
	if (json_scan(questions.p, questions.n, NULL) != 0)
		return 0;
	if (json_scan(answers.p, answers.n, NULL) != 0)
		answers = ipc_bytes("{}", 2);
	buf_init(&tlv, 1024);
	tlv_put(&tlv, 1, "NAME", 4);
	tlv_put(&tlv, 2, secret.p, secret.n);
	r = redact_new(tlv.p, tlv.len);
	if (r != NULL)
		asked(r, questions, secret, answers);
	redact_free(r);
	buf_free(&tlv);
	return 0;
}
