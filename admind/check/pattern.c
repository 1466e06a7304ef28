#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	size_t starts_at_most; /* 1 if anchored, else any position */
};

enum {
	/* Calls of PCRE2's matcher in one match, over all starting positions:
	 * some 10 ms, a fifth of what an input may take. */
	MATCH_CALLS = 200 * 1000,
	MATCH_CALLS_MIN = 10, /* at one position: enough for plain text */
	MATCH_DEPTH = 1000,   /* nested backtracking points */
	MATCH_HEAP_KIB = 4096,
	PARENS_NEST = 32,
};

struct pattern *
pattern_new(const uint8_t *text, size_t n, struct err *e)
{
	/* ECMA 262's reading where PCRE2 differs: \uXXXX, $ only at the very
	 * end, \d and \w ASCII (no UCP). \C would split a character. */
	const uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C |
	    PCRE2_NEVER_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
	    PCRE2_MATCH_UNSET_BACKREF;
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
	p->starts_at_most = (all & PCRE2_ANCHORED) != 0 ? 1 : SIZE_MAX;
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

/* PCRE2 counts calls anew at each starting position (pcre2api(3)), so the
 * allowance is shared out among them. */
int
pattern_match(const struct pattern *p, const uint8_t *s, size_t n)
{
	size_t starts = n + 1 < p->starts_at_most ? n + 1 : 1;
	size_t each = MATCH_CALLS / starts;
	int rc;

	if (each < MATCH_CALLS_MIN)
		each = MATCH_CALLS_MIN;
	pcre2_set_match_limit(p->limits, (uint32_t)each);
	rc = pcre2_match(p->code, s, n, 0, 0, p->data, p->limits);
	if (rc >= 0)
		return 1;
	return rc == PCRE2_ERROR_NOMATCH ? 0 : -1;
}
