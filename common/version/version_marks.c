#include "version_marks.h"

#include <string.h>

#include "ids.h"
#include "show.h"
#include "version.h"
#include "version_gate.h"

/*
 * Words to look for, sorted by the reason. Clients give the texts of a version
 * to a model, which can't distinguish a description from an order. The words
 * are in lower case and separated by one blank, as fold() makes the text.
 */
static const struct {
	const char *why;
	const char *words[16];
} table[] = {
    {"takes other instructions away from the model",
	{"ignore previous", "ignore all previous", "ignore any previous",
	    "ignore all other", "ignore the above", "ignore your",
	    "disregard previous", "disregard all", "disregard the above",
	    "disregard your", "forget previous", "forget all", "forget your",
	    "previous instructions", "override your", "new instructions"}},
    {"asks the model to keep something from its user",
	{"do not tell", "don t tell", "never tell", "do not mention",
	    "don t mention", "never mention", "do not inform",
	    "without telling", "without asking", "do not ask the user",
	    "don t ask the user", "keep this secret", "hide this from",
	    "silently", "user must not", "user should not"}},
    {"wants to go before or instead of other tools",
	{"before any other", "before using any", "before calling any",
	    "before every", "before each call", "before you use",
	    "before other tools", "always call this", "always use this",
	    "call this tool first", "use this tool first",
	    "must be called first", "instead of any other",
	    "instead of other tools", "do not use any other",
	    "do not use other"}},
    {"speaks in somebody else's name",
	{"system prompt", "system message", "system instruction",
	    "system instructions", "developer message", "you are now",
	    "important instruction", "important instructions", "im start",
	    "im end", "end of description"}},
    {"asks for what the model holds",
	{"your instructions", "your context", "conversation history",
	    "chat history", "entire conversation", "whole conversation",
	    "full conversation", "previous messages", "ssh id rsa",
	    "environment variables"}},
};

/* Texts that clients give to models before any call. Code is not among them:
 * its comments run nowhere, and its docstring is the description. */
static const uint8_t read_by_models[] = {VERSION_NAME, VERSION_TITLE,
    VERSION_DESCRIPTION, VERSION_META, VERSION_INPUT_SCHEMA,
    VERSION_OUTPUT_SCHEMA, VERSION_ANNOTATIONS, VERSION_PROMPT_ARGUMENTS,
    VERSION_URI, VERSION_TEXT};

/* Returns the letter that a character looks like, in lower case; 0: it shows
 * nothing; ' ': it separates words; '?': any other, such as one of another
 * script. */
static char
looks_like(uint32_t c)
{
	static const struct {
		uint32_t c;
		char latin;
	} same[] = {{0x430, 'a'}, {0x435, 'e'}, {0x43e, 'o'}, {0x440, 'p'},
	    {0x441, 'c'}, {0x443, 'y'}, {0x445, 'x'}, {0x456, 'i'},
	    {0x458, 'j'}, {0x455, 's'}, {0x3bf, 'o'}, {0x3b1, 'a'},
	    /* capitals that look like Latin ones */
	    {0x410, 'a'}, {0x412, 'b'}, {0x415, 'e'}, {0x405, 's'},
	    {0x406, 'i'}, {0x408, 'j'}, {0x41a, 'k'}, {0x41c, 'm'},
	    {0x41d, 'h'}, {0x41e, 'o'}, {0x420, 'p'}, {0x421, 'c'},
	    {0x422, 't'}, {0x423, 'y'}, {0x425, 'x'}, {0x391, 'a'},
	    {0x392, 'b'}, {0x395, 'e'}, {0x396, 'z'}, {0x397, 'h'},
	    {0x399, 'i'}, {0x39a, 'k'}, {0x39c, 'm'}, {0x39d, 'n'},
	    {0x39f, 'o'}, {0x3a1, 'p'}, {0x3a4, 't'}, {0x3a5, 'y'},
	    {0x3a7, 'x'}, {0x3b9, 'i'}, {0x3bd, 'v'}, {0x3c1, 'p'}};

	if (c >= 0xff01 && c <= 0xff5e) /* full width */
		c -= 0xff01 - '!';
	if (c >= 0x1d400 && c <= 0x1d6a3) /* mathematical alphabets */
		c = 'a' + (c - 0x1d400) % 26;
	if (c >= 'A' && c <= 'Z')
		c += 'a' - 'A';
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
		return (char)c;
	if (c < 0x80 || (c >= 0x2000 && c <= 0x200a) || c == 0xa0 ||
	    (c >= 0x2010 && c <= 0x2029) || c == 0x1680 || c == 0x202f ||
	    c == 0x205f || c == 0x2800 || c == 0x3000)
		return ' ';
	if (show_hidden(c) || (c >= 0x300 && c <= 0x36f)) /* combining */
		return '\0';
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (same[i].c == c)
			return same[i].latin;
	return '?';
}

static void
fold_char(struct buf *out, uint32_t c)
{
	char l = looks_like(c);

	if (l != '\0' &&
	    (l != ' ' || out->len == 0 || out->p[out->len - 1] != ' '))
		buf_putc(out, l);
}

/* Tells whether \uXXXX is at p. Then *c is its character, or half of a
 * surrogate pair. */
static bool
json_unit(const uint8_t *p, size_t n, uint32_t *c)
{
	uint8_t two[2];

	if (n < 6 || p[0] != '\\' || p[1] != 'u' ||
	    hex_decode((char[]){(char)(p[2] | 0x20), (char)(p[3] | 0x20),
			   (char)(p[4] | 0x20), (char)(p[5] | 0x20), '\0'},
		4, two) != 0)
		return false;
	*c = (uint32_t)two[0] << 8 | two[1];
	return true;
}

/* Decodes JSON's \uXXXX at p, or two that are a surrogate pair. Every other
 * escape counts as a blank, because it is a quote, a slash or white space.
 * Returns the length of the escape. */
static size_t
json_escape(const uint8_t *p, size_t n, uint32_t *c)
{
	uint32_t low;

	if (!json_unit(p, n, c)) {
		*c = ' ';
		return n >= 2 ? 2 : 1;
	}
	if (*c >= 0xd800 && *c < 0xdc00 && json_unit(p + 6, n - 6, &low) &&
	    low >= 0xdc00 && low < 0xe000) {
		*c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
		return 12;
	}
	return 6;
}

/* Writes a text as words, with one blank between and around them. */
static void
fold(struct buf *out, const uint8_t *p, size_t n, bool json)
{
	size_t len;
	uint32_t c = 0;

	buf_clear(out);
	buf_putc(out, ' ');
	for (size_t i = 0; i < n && !out->failed; i += len) {
		if (json && p[i] == '\\')
			len = json_escape(p + i, n - i, &c);
		else if ((len = show_char(p + i, n - i, &c)) == 0)
			len = 1;
		fold_char(out, c);
	}
	fold_char(out, ' ');
	buf_putc(out, '\0');
}

static bool
has(const char *text, const char *words)
{
	size_t n = strlen(words);

	for (const char *p = text; (p = strstr(p, words)) != NULL; p++)
		if (p[-1] == ' ' && p[n] == ' ')
			return true;
	return false;
}

static void
mark_text(const char *field, const char *text,
    void (*mark)(void *, const struct version_mark *), void *arg)
{
	struct version_mark m = {.field = field};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (size_t k = 0; k < 16 && table[i].words[k] != NULL; k++)
			if (has(text, table[i].words[k])) {
				m.words = table[i].words[k];
				m.why = table[i].why;
				mark(arg, &m);
				break;
			}
}

void
version_marks(const uint8_t *preimage, size_t n,
    void (*mark)(void *arg, const struct version_mark *), void *arg)
{
	struct version_mark m = {.field = "code", .words = "", .refused = true};
	enum version_kind kind;
	const uint8_t *fields;
	const char *name;
	struct buf text;
	struct err e;
	struct tlv f;
	size_t len;

	if (version_check(preimage, n, &fields, &len, NULL) == -1)
		return;
	if (version_gate(fields, len, &e) == -1) {
		m.why = e.text;
		mark(arg, &m);
	}
	/* fold() adds two blanks and a NUL to a text, at most */
	buf_init(&text, IPC_BLOB_MAX + 3);
	for (size_t i = 0; i < sizeof(read_by_models); i++) {
		name = version_field(read_by_models[i], &kind);
		if (tlv_find(fields, len, read_by_models[i], &f) != 1)
			continue;
		fold(&text, f.p, f.n, kind == VERSION_B);
		if (!text.failed) {
			mark_text(name, (const char *)text.p, mark, arg);
			continue;
		}
		m = (struct version_mark){.field = name,
		    .words = "",
		    .why = "was not searched: no memory"};
		mark(arg, &m);
	}
	buf_free(&text);
}

static void
put(void *arg, const struct version_mark *m)
{
	struct jsonw *w = arg;

	jsonw_obj(w);
	jsonw_kv_str(w, "field", m->field);
	jsonw_kv_str(w, "words", m->words);
	jsonw_kv_str(w, "why", m->why);
	jsonw_kv_bool(w, "refused", m->refused);
	jsonw_obj_end(w);
}

void
version_marks_json(struct jsonw *w, const uint8_t *preimage, size_t n)
{
	jsonw_arr(w);
	version_marks(preimage, n, put, w);
	jsonw_arr_end(w);
}
