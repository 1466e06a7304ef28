#include <arpa/inet.h>
#include <assert.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "conf.h"
#include "conf_amount.h"
#include "utf8.h"

enum {
	CONF_LINE_MAX = 4096,
	CONF_HOST_MAX = 64,   /* an IPv6 address in text, INET6_ADDRSTRLEN 46 */
	CONF_RANGE_MAX = 128, /* two amounts and a word */
	CONF_MAN_LINE = 60    /* columns of a manual page's indented line */
};

/* One row of conf_keys.def. */
struct key {
	const char *process, *name;
	enum conf_type type;
	const char *fallback;
	int64_t min, max;
	const char *unit; /* STRING: the allowed values with | between, or "" */
	const char *text;
};

static const struct key keys[] = {
#define K(process, name, type, fallback, min, max, unit, text) \
	{process, #name, CONF_##type, fallback, min, max, unit, text},
#include "conf_keys.def"
#undef K
};

enum { NKEYS = sizeof(keys) / sizeof(keys[0]) };

struct value {
	unsigned line;  /* of the file; 0: the value is the default */
	char *text;     /* as written */
	int64_t number; /* INT, SIZE, DURATION, BOOL, resolved USER */
	bool resolved;  /* USER: number holds a uid */
	bool local;     /* set in FILE.local */
};

struct conf {
	const char *process;
	bool local;                 /* FILE.local is being parsed */
	bool has_local;             /* FILE.local is being or was parsed */
	struct value values[NKEYS]; /* only rows of this process are filled */
};

static bool
belongs(const struct key *k, const char *process)
{
	return strcmp(k->process, "*") == 0 || strcmp(k->process, process) == 0;
}

/* Parses HOST:PORT with a numeric host; an IPv6 host is in brackets. */
static int
parse_address(const char *s, char *host, size_t hostlen, uint16_t *port)
{
	struct in6_addr addr;
	const char *colon, *end;
	int64_t number;
	size_t n;
	int family = AF_INET;

	if ((colon = strrchr(s, ':')) == NULL)
		return -1;
	n = (size_t)(colon - s);
	if (s[0] == '[') {
		if (n < 2 || colon[-1] != ']')
			return -1;
		family = AF_INET6;
		s++;
		n -= 2;
	}
	if (n >= hostlen)
		return -1;
	memcpy(host, s, n);
	host[n] = '\0';
	if (inet_pton(family, host, &addr) != 1)
		return -1;
	if (conf_amount_digits(colon + 1, &end, &number) < 0 || *end != '\0' ||
	    number > UINT16_MAX)
		return -1;
	*port = (uint16_t)number;
	return 0;
}

/* Tells whether s is one of the words of "a|b|c". */
static bool
is_choice(const char *choices, const char *s)
{
	size_t n = strlen(s);

	if (strchr(s, '|') != NULL)
		return false;
	for (;;) {
		if (strncmp(choices, s, n) == 0 &&
		    (choices[n] == '|' || choices[n] == '\0'))
			return true;
		if ((choices = strchr(choices, '|')) == NULL)
			return false;
		choices++;
	}
}

/*
 * Turns a user's name or number into a uid. Test instances have users without
 * passwd entries, so they use numbers. (uid_t)-1 is not a user: it means
 * "unchanged" to setresuid(2).
 */
static int
resolve_user(const char *s, int64_t *uid)
{
	const char *end;
	struct passwd *pw;

	if (conf_amount_digits(s, &end, uid) == 0 && *end == '\0')
		return *uid < UINT32_MAX ? 0 : -1;
	if ((pw = getpwnam(s)) == NULL)
		return -1;
	*uid = pw->pw_uid;
	return 0;
}

/* Checks one value's form. 0, or -1 with the reason in why. */
static int
convert(const struct key *k, const char *s, struct value *v, char *why,
    size_t whylen)
{
	char host[CONF_HOST_MAX], range[CONF_RANGE_MAX];
	uint16_t port;
	int rc = 0;

	switch (k->type) {
	case CONF_STRING:
		if (k->unit[0] != '\0' && !is_choice(k->unit, s)) {
			snprintf(why, whylen, "must be one of %s", k->unit);
			return -1;
		}
		break;
	case CONF_DENY: /* the process checks the entries */
		break;
	case CONF_PATH:
		if (s[0] != '/') {
			snprintf(why, whylen, "must be an absolute path");
			return -1;
		}
		break;
	case CONF_BOOL:
		if (strcmp(s, "yes") != 0 && strcmp(s, "no") != 0) {
			snprintf(why, whylen, "must be yes or no");
			return -1;
		}
		v->number = s[0] == 'y';
		break;
	case CONF_INT:
		if ((rc = conf_amount_parse(k->type, s, &v->number)) < 0)
			snprintf(why, whylen, "must be a whole number");
		break;
	case CONF_SIZE:
		if ((rc = conf_amount_parse(k->type, s, &v->number)) < 0)
			snprintf(why, whylen,
			    "must be a size: a number, then nothing, K, M or "
			    "G");
		break;
	case CONF_DURATION:
		if ((rc = conf_amount_parse(k->type, s, &v->number)) < 0)
			snprintf(why, whylen,
			    "must be a duration: a number, then ms, s, m or h");
		break;
	case CONF_USER:
		v->resolved = resolve_user(s, &v->number) == 0;
		if (!v->resolved) {
			snprintf(why, whylen, "no such user: %s", s);
			return -1;
		}
		break;
	case CONF_ADDRESS:
		if (parse_address(s, host, sizeof(host), &port) < 0) {
			snprintf(why, whylen,
			    "must be ADDRESS:PORT, like 127.0.0.1:8002 or "
			    "[::1]:0");
			return -1;
		}
		break;
	}
	if (rc < 0)
		return -1;
	if ((k->type == CONF_INT || k->type == CONF_SIZE ||
		k->type == CONF_DURATION) &&
	    (v->number < k->min || v->number > k->max)) {
		conf_amount_range(
		    k->type, k->min, k->max, k->unit, range, sizeof(range));
		snprintf(why, whylen, "must be %s", range);
		return -1;
	}
	return 0;
}

/*
 * Defaults are converted by the same code as values in files, so the first
 * start (and a unit test over all processes) finds a wrong default in the
 * table. A default user that this machine doesn't have is not an error yet:
 * conf_load refuses it unless the file names another user.
 */
struct conf *
conf_new(const char *process)
{
	struct conf *c;
	char why[256];

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->process = process;
	for (size_t i = 0; i < NKEYS; i++) {
		if (!belongs(&keys[i], process))
			continue;
		if ((c->values[i].text = strdup(keys[i].fallback)) == NULL) {
			conf_free(c);
			return NULL;
		}
		if (keys[i].type == CONF_STRING && keys[i].fallback[0] == '\0')
			continue;
		if (convert(&keys[i], keys[i].fallback, &c->values[i], why,
			sizeof(why)) < 0 &&
		    keys[i].type != CONF_USER)
			abort();
	}
	return c;
}

void
conf_free(struct conf *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < NKEYS; i++)
		free(c->values[i].text);
	free(c);
}

static bool
blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns the list with FILE.local's entries added; NULL with why. Keyword and
 * list together are at most as long as a line may be, so that the output of -T
 * can be read back. */
static char *
added(const char *keyword, const char *list, const char *more, char *why,
    size_t whylen)
{
	size_t n = strlen(list) + 1 + strlen(more) + 1;
	char *s;

	snprintf(why, whylen, "out of memory");
	if (strlen(keyword) + n > CONF_LINE_MAX) {
		snprintf(why, whylen,
		    "longer than a line of %d bytes with what it adds to",
		    CONF_LINE_MAX);
		return NULL;
	}
	if ((s = malloc(n)) != NULL)
		snprintf(s, n, "%s,%s", list, more);
	return s;
}

/* Parses one line without its newline: keyword, white space, value. */
static int
parse_line(
    struct conf *c, const char *name, unsigned line, char *s, struct err *e)
{
	struct value v;
	char *word, *value, *end, why[256];
	size_t i;

	end = s + strlen(s);
	while (blank(*s))
		s++;
	while (end > s && blank(end[-1]))
		*--end = '\0';
	if (*s == '\0' || *s == '#')
		return 0;
	word = s;
	while (*s != '\0' && !blank(*s))
		s++;
	value = s;
	while (blank(*value))
		value++;
	*s = '\0';
	for (i = 0; i < NKEYS; i++)
		if (belongs(&keys[i], c->process) &&
		    strcmp(keys[i].name, word) == 0)
			break;
	if (i == NKEYS)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s:%u: unknown keyword: %s", name, line, word);
	if (c->values[i].line != 0 && c->values[i].local == c->local)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s:%u: duplicate keyword: %s (first in line %u)", name,
		    line, word, c->values[i].line);
	if (*value == '\0')
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s:%u: %s: missing value", name, line, word);
	if (keys[i].type != CONF_STRING && keys[i].type != CONF_DENY &&
	    strpbrk(value, " \t") != NULL)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s:%u: %s: surplus value; a comment needs a line of its "
		    "own",
		    name, line, word);
	memset(&v, 0, sizeof(v));
	if (convert(&keys[i], value, &v, why, sizeof(why)) < 0)
		return err_set(e, FAILURE_INVALID_PARAMS, "%s:%u: %s: %s", name,
		    line, word, why);
	snprintf(why, sizeof(why), "out of memory");
	if (c->local && keys[i].type == CONF_DENY &&
	    c->values[i].text[0] != '\0')
		v.text =
		    added(word, c->values[i].text, value, why, sizeof(why));
	else
		v.text = strdup(value);
	if (v.text == NULL)
		return err_set(e, FAILURE_INVALID_PARAMS, "%s:%u: %s: %s", name,
		    line, word, why);
	v.line = line;
	v.local = c->local;
	free(c->values[i].text);
	c->values[i] = v;
	return 0;
}

/* Splits text into lines and refuses bytes that no setting can hold. */
int
conf_parse(struct conf *c, const char *name, const uint8_t *text, size_t n,
    struct err *e)
{
	char line[CONF_LINE_MAX + 1];
	unsigned number = 0;
	size_t len;
	const uint8_t *nl;

	while (n > 0) {
		number++;
		nl = memchr(text, '\n', n);
		len = nl != NULL ? (size_t)(nl - text) : n;
		if (len > CONF_LINE_MAX)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "%s:%u: line longer than %d bytes", name, number,
			    CONF_LINE_MAX);
		if (!utf8_valid(text, len))
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "%s:%u: not UTF-8", name, number);
		for (size_t i = 0; i < len; i++)
			if ((text[i] < 0x20 && text[i] != '\t') ||
			    text[i] == 0x7f)
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "%s:%u: control character 0x%02x", name,
				    number, text[i]);
		memcpy(line, text, len);
		line[len] = '\0';
		if (parse_line(c, name, number, line, e) < 0)
			return -1;
		len += nl != NULL ? 1 : 0;
		text += len;
		n -= len;
	}
	return 0;
}

int
conf_parse_local(struct conf *c, const char *name, const uint8_t *text,
    size_t n, struct err *e)
{
	int rc;

	c->local = c->has_local = true;
	rc = conf_parse(c, name, text, n, e);
	c->local = false;
	return rc;
}

bool
conf_has_local(const struct conf *c)
{
	return c->has_local;
}

const char *
conf_no_user(const struct conf *c, const char **user)
{
	for (size_t i = 0; i < NKEYS; i++)
		if (belongs(&keys[i], c->process) &&
		    keys[i].type == CONF_USER && !c->values[i].resolved) {
			*user = c->values[i].text;
			return keys[i].name;
		}
	return NULL;
}

/* Returns the value of a keyword. Aborts if the keyword is missing or its type
 * is not in the bit set `types`. */
static const struct value *
get(const struct conf *c, const char *keyword, unsigned types)
{
	for (size_t i = 0; i < NKEYS; i++)
		if (belongs(&keys[i], c->process) &&
		    strcmp(keys[i].name, keyword) == 0) {
			if ((types & 1u << keys[i].type) == 0)
				break;
			return &c->values[i];
		}
	fprintf(stderr, "%s: conf: no such setting of this type: %s\n",
	    c->process, keyword);
	abort();
}

const char *
conf_str(const struct conf *c, const char *keyword)
{
	return get(
	    c, keyword, 1u << CONF_STRING | 1u << CONF_PATH | 1u << CONF_DENY)
	    ->text;
}

int64_t
conf_int(const struct conf *c, const char *keyword)
{
	return get(
	    c, keyword, 1u << CONF_INT | 1u << CONF_SIZE | 1u << CONF_DURATION)
	    ->number;
}

bool
conf_bool(const struct conf *c, const char *keyword)
{
	return get(c, keyword, 1u << CONF_BOOL)->number != 0;
}

/* Returns (uid_t)-1, which no peer can have, for a default user that this
 * machine does not have. */
uid_t
conf_user(const struct conf *c, const char *keyword)
{
	const struct value *v = get(c, keyword, 1u << CONF_USER);

	return v->resolved ? (uid_t)v->number : (uid_t)-1;
}

int
conf_address(const struct conf *c, const char *keyword, char *host,
    size_t hostlen, uint16_t *port)
{
	return parse_address(
	    get(c, keyword, 1u << CONF_ADDRESS)->text, host, hostlen, port);
}

void
conf_dump(const struct conf *c, struct buf *b)
{
	for (size_t i = 0; i < NKEYS; i++) {
		if (!belongs(&keys[i], c->process))
			continue;
		/* A line can't hold an empty value. So a comment shows such a
		 * value, and the dump can be read back. */
		if (c->values[i].text[0] == '\0')
			buf_putf(b, "# %s is not set\n", keys[i].name);
		else
			buf_putf(b, "%s %s\n", keys[i].name, c->values[i].text);
	}
}

/* Writes text for mdoc(7), which gives a meaning to a leading dot, a leading
 * quote and each backslash. */
static void
man_text(struct buf *b, const char *s)
{
	if (*s == '.' || *s == '\'')
		buf_puts(b, "\\&");
	for (; *s != '\0'; s++) {
		if (*s == '\\')
			buf_puts(b, "\\e");
		else
			buf_putc(b, *s);
		/* A line may be broken after a comma of a list. A sentence
		 * begins a new line. */
		if (*s == ',' && s[1] != ' ' && s[1] != '\0')
			buf_puts(b, "\\:");
		else if (*s == '.' && s[1] == ' ' && s[2] >= 'A' &&
		    s[2] <= 'Z') {
			buf_putc(b, '\n');
			s++;
		}
	}
	buf_putc(b, '\n');
}

void
conf_man(const char *process, struct buf *b)
{
	static const char *const type_names[] = {"text", "path", "yes | no",
	    "number", "size", "duration", "user", "address : port", "text"};
	char range[CONF_RANGE_MAX];
	const struct key *k;

	buf_puts(b, ".Bl -tag -width Ds\n");
	for (size_t i = 0; i < NKEYS; i++) {
		k = &keys[i];
		if (!belongs(k, process))
			continue;
		buf_putf(b, ".It Ic %s Ar %s\n", k->name, type_names[k->type]);
		man_text(b, k->text);
		if (k->type == CONF_INT || k->type == CONF_SIZE ||
		    k->type == CONF_DURATION) {
			conf_amount_range(k->type, k->min, k->max, k->unit,
			    range, sizeof(range));
			buf_putf(b, "F%s.\n", range + 1);
		} else if (k->unit[0] != '\0')
			buf_putf(b, "One of %s.\n", k->unit);
		else if (k->type == CONF_DENY)
			buf_puts(b, "A file of one's own adds to it.\n");
		if (k->fallback[0] == '\0')
			buf_puts(b, "Not set by default.\n");
		else if (strlen(k->fallback) > CONF_MAN_LINE) {
			/* Text without blanks can't be justified. */
			buf_puts(b, "Default:\n.Bd -ragged -compact\n");
			man_text(b, k->fallback);
			buf_puts(b, ".Ed\n");
		} else {
			buf_puts(b, "Default: ");
			man_text(b, k->fallback);
		}
	}
	buf_puts(b, ".El\n");
}
