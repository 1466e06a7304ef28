/*
 * Makes sure that approved code runs as it reads. A reviewer reads lines that
 * end at a newline, each after its number. Python ends a line at a carriage
 * return, too, so a comment may end where no reader sees its end. Python also
 * takes a form feed for the beginning of a line: blanks before one don't
 * indent. Editors and str.splitlines(), by which tracebacks quote the code, end
 * lines at more characters still. No code needs these characters, because a
 * string can name each by an escape. So they are refused, and all other text
 * can be read in one way only: lines end at U+000A, and are indented by blanks
 * and tabs. (Python itself refuses tabs and blanks that only look alike. Code
 * is compiled from a str, so a coding cookie changes nothing, and a byte order
 * mark is a syntax error.)
 *
 * The gate is at each way in, so that the author gets a sentence that he can
 * act on: in admind-check for management tools, in draft_make() for all that
 * admind makes, and in the database for the versions that it makes itself
 * (imports, rollbacks). None of these gates binds a taken-over
 * admind: it can write a version by other means and ask for review. So
 * seal_make() in the vault checks the code again, over the very bytes that it
 * hashes and seals. Without its seal nothing runs. (admind-check could refuse,
 * too, but only admind asks it.)
 *
 * JSON needs no such rule: its white space is the same for every reader, and
 * inside strings control characters are escapes by grammar. Prose (titles,
 * descriptions, static text) runs nowhere; its characters are shown (show.h).
 */
#include "version_gate.h"

#include "show.h"
#include "tlv.h"
#include "version.h"

static const struct {
	uint32_t from, to;
	const char *why, *instead;
} refused[] = {
    {'\r', '\r', "at which Python ends a line and others do not",
	"end lines with U+000A alone, and write \\r in a string"},
    {'\f', '\f', "behind which Python begins to count the indentation again",
	"leave it out, or write \\f in a string"},
    {0x85, 0x85, "at which some programs end a line",
	"write \\x85 in a string"},
    {0x2028, 0x2029, "at which some programs end a line",
	"write \\u2028 or \\u2029 in a string"},
    {0xfeff, 0xfeff, "a byte order mark, which shows nothing",
	"leave it out, or write \\ufeff in a string"},
    {0x00, 0x08, "a control character", "write an escape in a string"},
    {0x0b, 0x0b, "a control character, at which some programs end a line",
	"write \\v in a string"},
    {0x0e, 0x1f, "a control character", "write an escape in a string"},
    {0x7f, 0x9f, "a control character", "write an escape in a string"},
};

int
version_gate_code(const void *code, size_t n, struct err *e)
{
	unsigned long line = 1, place = 1;
	const uint8_t *p = code;
	size_t len;
	uint32_t c = 0;

	for (size_t i = 0; i < n; i += len, place++) {
		len = 1;
		if (p[i] >= 0x20 && p[i] < 0x7f) /* most characters of code */
			continue;
		if ((len = show_char(p + i, n - i, &c)) == 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "code: line %lu is not UTF-8 at character %lu",
			    line, place);
		for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]);
		    k++)
			if (c >= refused[k].from && c <= refused[k].to)
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "code: character %lu of line %lu is "
				    "U+%04X, %s: %s",
				    place, line, (unsigned)c, refused[k].why,
				    refused[k].instead);
		if (c == '\n') {
			line++;
			place = 0;
		}
	}
	return 0;
}

int
version_gate(const uint8_t *fields, size_t n, struct err *e)
{
	struct tlv f;

	return tlv_find(fields, n, VERSION_CODE, &f) == 1
	    ? version_gate_code(f.p, f.n, e)
	    : 0;
}
