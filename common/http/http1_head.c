/*
 * Request line and fields of HTTP/1.1, a closed grammar (http1.h).
 *
 * A lenient parser helps an attacker: a proxy in front of us sees one request,
 * and we see another (request smuggling, RFC 9112 section 11.2). So nothing
 * here repairs, guesses or skips. Every form that two parsers could read
 * differently is refused, also where the RFC would allow us to accept it.
 */
#include <string.h>

#include "http1_head.h"

/* Fields that must not be repeated: if one occurred twice, one program could
 * use the first and another the second. Fields whose names begin with "mcp-"
 * must not be repeated either. */
static const char *const http1_single[] = {"host", "content-length",
    "transfer-encoding", "content-type", "authorization", "origin", "expect",
    "cookie", "if-match", "x-csrf-token", "last-event-id", "content-encoding",
    "cf-access-jwt-assertion"};

static const char *const method_names[] = {
    "GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"};

enum { NMETHODS = sizeof(method_names) / sizeof(method_names[0]) };

enum { PORT_MAX = 65535 }; /* RFC 9293 section 3.1: 16 bits */

/* tchar of RFC 9110 section 5.6.2. */
static const bool tchar[256] = {['a' ... 'z'] = true,
    ['A' ... 'Z'] = true,
    ['0' ... '9'] = true,
    ['!'] = true,
    ['#' ... '\''] = true,
    ['*'] = true,
    ['+'] = true,
    ['-'] = true,
    ['.'] = true,
    ['^' ... '`'] = true,
    ['|'] = true,
    ['~'] = true};

static bool
is_tchar(char c)
{
	return tchar[(uint8_t)c];
}

/* Tells whether two strings are equal. Fast for names, most of which differ in
 * their first byte. */
static bool
equal(const char *a, const char *b)
{
	return a[0] == b[0] && strcmp(a, b) == 0;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Compares text with a lower-case word, ignoring the text's case. */
static bool
word_is(const char *s, size_t n, const char *word)
{
	size_t i;

	if (strlen(word) != n)
		return false;
	for (i = 0; i < n; i++)
		if (lower(s[i]) != word[i])
			return false;
	return true;
}

static int
refuse(int status, const char *text, const char **why)
{
	*why = text;
	return status;
}

/* Parses the request line in place: method SP origin-form SP "HTTP/1.1". */
static int
parse_line(char *line, size_t n, struct http1_request *r, const char **why)
{
	char *sp1, *sp2, *target, *version, *q;
	size_t i;

	sp1 = memchr(line, ' ', n);
	if (sp1 == NULL || sp1 == line)
		return refuse(400, "malformed request line", why);
	for (i = 0; line + i < sp1; i++)
		if (!is_tchar(line[i]))
			return refuse(400, "method is not a token", why);
	target = sp1 + 1;
	sp2 = memchr(target, ' ', n - (size_t)(target - line));
	if (sp2 == NULL)
		return refuse(400, "malformed request line", why);
	version = sp2 + 1;

	/* The version is checked before the target, because another version has
	 * another grammar. */
	i = n - (size_t)(version - line);
	if (i != 8 || memcmp(version, "HTTP/", 5) != 0 ||
	    !is_digit(version[5]) || version[6] != '.' || !is_digit(version[7]))
		return refuse(400, "malformed HTTP version", why);
	if (version[5] != '1' || version[7] != '1')
		return refuse(505, "only HTTP/1.1 is spoken here", why);

	if (target[0] != '/')
		return refuse(400, "target is not in origin-form", why);
	if (sp2 - target > HTTP1_TARGET_MAX)
		return refuse(414, "target is too long", why);
	for (q = target; q < sp2; q++)
		if (*q < '!' || *q > '~' || *q == '#')
			return refuse(400, "bad character in target", why);

	*sp1 = '\0';
	*sp2 = '\0';
	for (i = 0; i < NMETHODS; i++)
		if (strcmp(line, method_names[i]) == 0)
			break;
	if (i == NMETHODS)
		return refuse(501, "unknown method", why);
	r->method = (enum http1_method)i;

	/* The query starts at the first '?'. */
	q = strchr(target, '?');
	if (q != NULL)
		*q++ = '\0';
	r->path = target;
	r->query = q;
	return 0;
}

/*
 * Tells whether all programs read the white space around this field's value
 * alike. OWS is SP and HTAB (RFC 9110 section 5.6.3, RFC 9112 section 5), but
 * llhttp refuses HTAB around Content-Length and Transfer-Encoding, and other
 * peers strip SP alone. No client needs HTAB there: a sender of HTAB there
 * wants a proxy and us to disagree about where the body ends. Any other field
 * may have HTAB, since only these two fields frame the body.
 */
static bool
framing_white_space(const char *name, const char *value, const char *from,
    const char *end, const char *to)
{
	return (!equal(name, "content-length") &&
		   !equal(name, "transfer-encoding")) ||
	    (memchr(value, '\t', (size_t)(from - value)) == NULL &&
		memchr(end, '\t', (size_t)(to - end)) == NULL);
}

/* Parses a field line in place: field-name ":" OWS field-value OWS. */
static int
parse_field(char *line, size_t n, struct http1_request *r, const char **why)
{
	char *colon, *value, *end;
	size_t i;

	if (line[0] == ' ' || line[0] == '\t')
		return refuse(400, "folded field line", why);
	colon = memchr(line, ':', n);
	if (colon == NULL || colon == line)
		return refuse(400, "malformed field line", why);
	for (i = 0; line + i < colon; i++) {
		if (!is_tchar(line[i]))
			return refuse(400, "field name is not a token", why);
		line[i] = lower(line[i]);
	}
	value = colon + 1;
	end = line + n;
	*colon = '\0';
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (!framing_white_space(line, colon + 1, value, end, line + n))
		return refuse(400, "tab around a framing field's value", why);
	if (r->nfields == HTTP1_FIELDS_MAX)
		return refuse(431, "too many fields", why);
	*end = '\0'; /* overwrites white space or the CR */
	r->fields[r->nfields].name = line;
	r->fields[r->nfields].value = value;
	r->nfields++;
	return 0;
}

/* Checks that no field of http1_single and no "mcp-" field is repeated. */
static int
check_single(const struct http1_request *r, const char **why)
{
	size_t i, j;
	const char *name;
	bool single;

	for (i = 0; i < r->nfields; i++) {
		name = r->fields[i].name;
		single = name[0] == 'm' && strncmp(name, "mcp-", 4) == 0;
		for (j = 0; !single &&
		    j < sizeof(http1_single) / sizeof(http1_single[0]);
		    j++)
			single = equal(name, http1_single[j]);
		for (j = 0; single && j < i; j++)
			if (equal(name, r->fields[j].name))
				return refuse(400, "repeated field", why);
	}
	return 0;
}

/*
 * Accepts Host = uri-host [":" port] (RFC 9110 section 7.2), without userinfo,
 * percent-encoding or a list: a sender of another form wants two programs to
 * see two hosts. A port has 16 bits (RFC 9293 section 3.1). Without that bound
 * one program would read 99999 as no port, and another as 34463.
 */
static bool
host_valid(const char *s)
{
	unsigned port = 0;
	size_t n = 0;

	if (*s == '[') {
		for (s++; *s == ':' || *s == '.' || is_digit(*s) ||
		    (lower(*s) >= 'a' && lower(*s) <= 'f');
		    s++)
			n++;
		if (*s++ != ']')
			return false;
	} else {
		for (; is_digit(*s) || (lower(*s) >= 'a' && lower(*s) <= 'z') ||
		    *s == '.' || *s == '-' || *s == '_';
		    s++)
			n++;
	}
	if (n == 0)
		return false;
	if (*s == '\0')
		return true;
	if (*s++ != ':')
		return false;
	for (n = 0; is_digit(*s) && n <= 5; s++, n++)
		port = port * 10 + (unsigned)(*s - '0');
	return n >= 1 && n <= 5 && port <= PORT_MAX && *s == '\0';
}

/* Parses Content-Length: one to seven digits, nothing else. */
static int
parse_length(const char *s, size_t body_max, size_t *out, const char **why)
{
	size_t i, v = 0;

	for (i = 0; is_digit(s[i]); i++)
		if (i < 7)
			v = v * 10 + (size_t)(s[i] - '0');
	if (i == 0 || s[i] != '\0')
		return refuse(400, "malformed Content-Length", why);
	if (i > 7 || v > body_max)
		return refuse(413, "body is too large", why);
	*out = v;
	return 0;
}

/* Tells whether the comma-separated list has the word, at any place. */
static bool
list_has(const char *s, const char *word)
{
	size_t n;

	for (;;) {
		s += strspn(s, " \t,");
		if (*s == '\0')
			return false;
		n = strcspn(s, " \t,");
		if (word_is(s, n, word))
			return true;
		s += n;
	}
}

/* Reads the fields that describe the body and the connection. */
static int
parse_framing(struct http1_request *r, size_t body_max, struct http1_framing *f,
    const char **why)
{
	const char *host, *te, *cl, *expect;
	unsigned count;
	size_t i;
	int status;

	host = http1_field(r, "host", &count);
	if (count != 1)
		return refuse(400, "exactly one Host is required", why);
	if (!host_valid(host))
		return refuse(400, "malformed Host", why);

	r->keep_alive = true;
	for (i = 0; i < r->nfields; i++)
		if (equal(r->fields[i].name, "connection") &&
		    list_has(r->fields[i].value, "close"))
			r->keep_alive = false;

	te = http1_field(r, "transfer-encoding", NULL);
	cl = http1_field(r, "content-length", NULL);
	if (te != NULL && cl != NULL)
		return refuse(
		    400, "Content-Length and Transfer-Encoding together", why);
	if (te != NULL) {
		if (!word_is(te, strlen(te), "chunked"))
			return refuse(501, "only chunked is understood", why);
		f->chunked = true;
	} else if (cl != NULL) {
		f->has_length = true;
		status = parse_length(cl, body_max, &f->length, why);
		if (status != 0)
			return status;
	}
	/* Without Transfer-Encoding and Content-Length there is no body (RFC
	 * 9112 section 6.3), even in a POST. curl sends an empty body in this
	 * way. */

	expect = http1_field(r, "expect", NULL);
	if (expect != NULL) {
		if (!word_is(expect, strlen(expect), "100-continue"))
			return refuse(
			    417, "only 100-continue is understood", why);
		r->expect_continue = f->chunked || f->length > 0;
	}
	return 0;
}

void
http1_head_clear(struct http1_request *r)
{
	r->method = HTTP1_GET;
	r->path = r->query = NULL;
	r->nfields = 0; /* so no old entry is read */
	r->body = NULL;
	r->body_len = 0;
	r->keep_alive = r->expect_continue = false;
}

int
http1_head_parse(char *head, size_t n, size_t body_max, struct http1_request *r,
    struct http1_framing *f, const char **why)
{
	char *p = head, *end = head + n, *eol;
	int status;

	http1_head_clear(r);
	memset(f, 0, sizeof(*f));

	/* Every line ends with CRLF: the caller has refused every other CR or
	 * LF. */
	eol = memchr(p, '\r', (size_t)(end - p));
	if (eol == NULL || eol == p)
		return refuse(400, "empty request line", why);
	status = parse_line(p, (size_t)(eol - p), r, why);
	if (status != 0)
		return status;
	for (p = eol + 2; p < end; p = eol + 2) {
		eol = memchr(p, '\r', (size_t)(end - p));
		if (eol == NULL)
			return refuse(400, "malformed head", why);
		if (eol == p)
			break; /* the empty line */
		status = parse_field(p, (size_t)(eol - p), r, why);
		if (status != 0)
			return status;
	}
	status = check_single(r, why);
	if (status != 0)
		return status;
	return parse_framing(r, body_max, f, why);
}

const char *
http1_field(const struct http1_request *r, const char *name, unsigned *count)
{
	const char *value = NULL;
	unsigned seen = 0;
	size_t i;

	for (i = 0; i < r->nfields; i++) {
		if (!equal(r->fields[i].name, name))
			continue;
		if (seen++ == 0)
			value = r->fields[i].value;
	}
	if (count != NULL)
		*count = seen;
	return value;
}

const char *
http1_method_name(enum http1_method m)
{
	return (unsigned)m < NMETHODS ? method_names[m] : "?";
}
