#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	bool anchored; /* it can match at the first position only */
};

enum {
	/* The most that one call of PCRE2 may cost, in characters read: some
	 * milliseconds. PCRE2's match limit counts only calls of its matcher,
	 * and one call may run over the whole text. */
	WORK = 5 * 1000 * 1000,
	/* Matcher calls at one starting position: at most CALLS_MAX, and at
	 * least CALLS_MIN, which is enough for a pattern of plain text.
	 * pattern_match() works in chunks of positions. A chunk is so small
	 * that each of its positions may have CALLS_WANTED, unless the text is
	 * very long. */
	CALLS_MAX = 100 * 1000,
	CALLS_WANTED = 1000,
	CALLS_MIN = 10,
	MATCH_DEPTH = 1000, /* nested backtracking points */
	MATCH_HEAP_KIB = 4096,
	PARENS_NEST = 32,
};

struct pattern *
pattern_new(const uint8_t *text, size_t n, struct err *e)
{
	/* These options make PCRE2 read patterns as ECMA 262 does: \uXXXX is a
	 * character, $ matches only at the very end, \d and \w match ASCII (no
	 * UCP). \C is refused, because it would split a character. */
	const uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C |
	    PCRE2_NEVER_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
	    PCRE2_MATCH_UNSET_BACKREF | PCRE2_USE_OFFSET_LIMIT;
	pcre2_compile_context *ctx = NULL;
	struct pattern *p = NULL;
	uint32_t all = 0;
	PCRE2_SIZE at;
	PCRE2_UCHAR why[128];
	int code;

	if (n > PATTERN_MAX) {
		err_set(e, FAILURE_LIMIT, "longer than %d bytes", PATTERN_MAX);
		return NULL;
	}
	if (n >= 2 && memcmp(text, "(*", 2) == 0) {
		err_set(e, FAILURE_INVALID_ARGUMENTS,
		    "may not start with a (*VERB)");
		return NULL;
	}
	if ((p = calloc(1, sizeof(*p))) == NULL ||
	    (ctx = pcre2_compile_context_create(NULL)) == NULL ||
	    (p->limits = pcre2_match_context_create(NULL)) == NULL)
		goto oom;
	pcre2_set_parens_nest_limit(ctx, PARENS_NEST);
	p->code = pcre2_compile(text, n, options, &code, &at, ctx);
	pcre2_compile_context_free(ctx);
	ctx = NULL;
	if (p->code == NULL) {
		pcre2_get_error_message(code, why, sizeof(why));
		err_set(e, FAILURE_INVALID_ARGUMENTS, "%s at offset %zu",
		    (const char *)why, (size_t)at);
		pattern_free(p);
		return NULL;
	}
	if ((p->data = pcre2_match_data_create(1, NULL)) == NULL)
		goto oom;
	pcre2_set_depth_limit(p->limits, MATCH_DEPTH);
	pcre2_set_heap_limit(p->limits, MATCH_HEAP_KIB);
	pcre2_pattern_info(p->code, PCRE2_INFO_ALLOPTIONS, &all);
	p->anchored = (all & PCRE2_ANCHORED) != 0;
	return p;
oom:
	pcre2_compile_context_free(ctx);
	pattern_free(p);
	err_set(e, FAILURE_INTERNAL, "out of memory");
	return NULL;
}

void
pattern_free(struct pattern *p)
{
	if (p == NULL)
		return;
	pcre2_match_data_free(p->data);
	pcre2_match_context_free(p->limits);
	pcre2_code_free(p->code);
	free(p);
}

/*
 * Matches in chunks. An unanchored pattern is tried at each position, and at
 * each position it may run over the rest of the text. So the cost may be the
 * square of the text's length, and no limit of PCRE2 counts that. Therefore
 * positions are tried in chunks that cost at most WORK, and the time is checked
 * between the chunks. PCRE2 counts matcher calls from 0 at each position
 * (pcre2api(3)), so WORK is shared out among the positions of a chunk.
 */
int
pattern_match(
    const struct pattern *p, const uint8_t *s, size_t n, clock_t until)
{
	size_t chunk = WORK / CALLS_WANTED / (n + 1), calls;
	uint32_t flags = 0;

	if (p->anchored || chunk > n + 1)
		chunk = p->anchored ? 1 : n + 1;
	if (chunk == 0)
		chunk = 1;
	calls = WORK / (n + 1) / chunk;
	calls = calls > CALLS_MAX ? CALLS_MAX
	    : calls < CALLS_MIN   ? CALLS_MIN
				  : calls;
	pcre2_set_match_limit(p->limits, (uint32_t)calls);
	for (size_t from = 0;; flags = PCRE2_NO_UTF_CHECK) {
		size_t last = from + chunk - 1;
		int rc;

		pcre2_set_offset_limit(p->limits, last < n ? last : n);
		rc =
		    pcre2_match(p->code, s, n, from, flags, p->data, p->limits);
		if (rc >= 0)
			return 1;
		if (rc != PCRE2_ERROR_NOMATCH)
			return -1;
		from = last + 1;
		while (from < n && (s[from] & 0xc0) == 0x80)
			from++; /* positions are starts of characters */
		if (p->anchored || from > n)
			return 0;
		if (clock() > until)
			return -1;
	}
}
