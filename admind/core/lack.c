/* See lack.h. */
#include <stdio.h>
#include <string.h>

#include "lack.h"

static void
put_words(char out[PERMIT_WORDS_MAX + 1], unsigned scopes)
{
	struct buf b;

	buf_init(&b, PERMIT_WORDS_MAX);
	permit_put_scopes(&b, scopes);
	memcpy(out, b.failed || b.len == 0 ? "" : (const char *)b.p,
	    b.failed ? 0 : b.len);
	out[b.failed ? 0 : b.len] = '\0';
	buf_free(&b);
}

void
lack_scope(
    char out[PERMIT_WORDS_MAX + 1], unsigned has, unsigned may, unsigned scope)
{
	out[0] = '\0';
	if ((has & scope) == 0 && (may & scope) != 0)
		put_words(out, has | scope);
}

/* Names the deed that a token without the scope may not do. */
static const char *
deed(unsigned scope)
{
	switch (scope) {
	case PERMIT_READ:
		return "use tools";
	case PERMIT_CALL:
		return "call tools";
	case PERMIT_MANAGE:
		return "manage";
	default:
		return "change tools";
	}
}

void
lack_say(struct lack *l, const struct token *t, unsigned has, unsigned may,
    unsigned scope)
{
	char word[PERMIT_WORDS_MAX + 1];

	put_words(word, scope);
	lack_scope(l->scope, has, may, scope);
	if (l->scope[0] != '\0')
		snprintf(l->text, sizeof(l->text),
		    "this token lacks the scope %s, which its permission set "
		    "%s has",
		    word, t->of.name);
	else if (t->of.name[0] != '\0')
		snprintf(l->text, sizeof(l->text),
		    "the permission set %s lacks the scope %s", t->of.name,
		    word);
	else
		snprintf(l->text, sizeof(l->text),
		    "this token may not %s (scope %s)", deed(scope), word);
}
