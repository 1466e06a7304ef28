#include <sys/stat.h>

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "ipc.h"

enum {
	CONF_FILE_MAX = 256 * 1024, /* far above any file a person writes */
	CONF_LINE_MAX = 4096,
	CONF_HOST_MAX = 64 /* an IPv6 address in text, INET6_ADDRSTRLEN 46 */
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
	unsigned line;  /* where it was set; 0: the default */
	char *text;     /* as written */
	int64_t number; /* INT, SIZE, DURATION, BOOL, resolved USER */
	bool resolved;  /* USER: number holds a uid */
};

struct conf {
	const char *process;
	struct value values[NKEYS]; /* only rows of this process are filled */
};

static bool
belongs(const struct key *k, const char *process)
{
	return strcmp(k->process, "*") == 0 || strcmp(k->process, process) == 0;
}

/* Digits only, no sign, no overflow past int64_t. *end is behind them. */
static int
parse_digits(const char *s, const char **end, int64_t *out)
{
	int64_t v = 0;

	if (*s < '0' || *s > '9')
		return -1;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, *s - '0', &v))
			return -1;
	*end = s;
	*out = v;
	return 0;
}

struct unit {
	const char *name;
	int64_t factor;
};

/* A number with one of these units behind it, at once. */
static int
parse_unit(const char *s, const struct unit *units, int64_t *out)
{
	const char *end;

	if (parse_digits(s, &end, out) < 0)
		return -1;
	for (; units->name != NULL; units++)
		if (strcmp(end, units->name) == 0)
			return __builtin_mul_overflow(*out, units->factor, out)
			    ? -1
			    : 0;
	return -1;
}

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};
static const struct unit size_units[] = {
    {"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}, {NULL, 0}};
static const struct unit time_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {NULL, 0}};

/* HOST:PORT with a numeric host, an IPv6 one in brackets. */
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
	if (parse_digits(colon + 1, &end, &number) < 0 || *end != '\0' ||
	    number > UINT16_MAX)
		return -1;
	*port = (uint16_t)number;
	return 0;
}

/* Is s one of the words of "a|b|c"? */
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
 * A user name becomes a uid. Test instances run by number and have no passwd
 * entries. (uid_t)-1 is no user: it means "unchanged" to setresuid(2).
 */
static int
resolve_user(const char *s, int64_t *uid)
{
	const char *end;
	struct passwd *pw;

	if (parse_digits(s, &end, uid) == 0 && *end == '\0')
		return *uid < UINT32_MAX ? 0 : -1;
	if ((pw = getpwnam(s)) == NULL)
		return -1;
	*uid = pw->pw_uid;
	return 0;
}

/* Checks one value's form. 0, or -1 with what is wrong in why. */
static int
convert(const struct key *k, const char *s, struct value *v, char *why,
    size_t whylen)
{
	char host[CONF_HOST_MAX];
	uint16_t port;
	int rc = 0;

	switch (k->type) {
	case CONF_STRING:
		if (k->unit[0] != '\0' && !is_choice(k->unit, s)) {
			snprintf(why, whylen, "must be one of %s", k->unit);
			return -1;
		}
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
		if ((rc = parse_unit(s, no_units, &v->number)) < 0)
			snprintf(why, whylen, "must be a whole number");
		break;
	case CONF_SIZE:
		if ((rc = parse_unit(s, size_units, &v->number)) < 0)
			snprintf(why, whylen,
			    "must be a size: a number, then nothing, K, M or "
			    "G");
		break;
	case CONF_DURATION:
		if ((rc = parse_unit(s, time_units, &v->number)) < 0)
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
		snprintf(why, whylen,
		    "must be from %" PRId64 " to %" PRId64 "%s%s", k->min,
		    k->max, k->unit[0] != '\0' ? " " : "", k->unit);
		return -1;
	}
	return 0;
}

/*
 * Defaults are converted by the same code, so a wrong default in the table is
 * found by the first start (and by a unit test over all processes). A default
 * user that this machine doesn't have is no error yet: conf_load refuses it
 * unless the file names another.
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

/* One line without its newline: keyword, white space, value. */
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
	if (c->values[i].line != 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s:%u: duplicate keyword: %s (first in line %u)", name,
		    line, word, c->values[i].line);
	if (*value == '\0')
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s:%u: %s: missing value", name, line, word);
	if (keys[i].type != CONF_STRING && strpbrk(value, " \t") != NULL)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s:%u: %s: surplus value; a comment needs a line of its "
		    "own",
		    name, line, word);
	memset(&v, 0, sizeof(v));
	if (convert(&keys[i], value, &v, why, sizeof(why)) < 0)
		return err_set(e, FAILURE_INVALID_PARAMS, "%s:%u: %s: %s", name,
		    line, word, why);
	if ((v.text = strdup(value)) == NULL)
		return err_set(e, FAILURE_INTERNAL, "%s: out of memory", name);
	v.line = line;
	free(c->values[i].text);
	c->values[i] = v;
	return 0;
}

/* Splits into lines and refuses bytes that no setting can hold. */
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

/*
 * Who can write this file decides what the process does, so it must belong to
 * root or to the process's own user, and nobody else may write it. The checks
 * are made on the open descriptor: the path can't be swapped in between.
 */
int
conf_load(struct conf *c, const char *path, struct err *e)
{
	struct stat st;
	uint8_t *text = NULL;
	size_t n = 0;
	ssize_t got;
	int fd, rc = -1;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0)
		return err_sys(e, FAILURE_INTERNAL, "%s", path);
	if (fstat(fd, &st) < 0) {
		err_sys(e, FAILURE_INTERNAL, "%s", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, FAILURE_INTERNAL, "%s: not a regular file", path);
		goto out;
	}
	if ((st.st_uid != 0 && st.st_uid != geteuid()) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		err_set(e, FAILURE_INTERNAL,
		    "%s: others may write it; it must belong to root or to the "
		    "process's user, mode 0644 or less",
		    path);
		goto out;
	}
	if (st.st_size > CONF_FILE_MAX) {
		err_set(e, FAILURE_INTERNAL, "%s: larger than %d bytes", path,
		    CONF_FILE_MAX);
		goto out;
	}
	if ((text = malloc((size_t)st.st_size + 1)) == NULL) {
		err_set(e, FAILURE_INTERNAL, "%s: out of memory", path);
		goto out;
	}
	while (n < (size_t)st.st_size) {
		got = read(fd, text + n, (size_t)st.st_size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err_sys(e, FAILURE_INTERNAL, "%s", path);
			goto out;
		}
		if (got == 0)
			break;
		n += (size_t)got;
	}
	if (conf_parse(c, path, text, n, e) < 0)
		goto out;
	for (size_t i = 0; i < NKEYS; i++)
		if (belongs(&keys[i], c->process) &&
		    keys[i].type == CONF_USER && !c->values[i].resolved) {
			err_set(e, FAILURE_INTERNAL,
			    "%s: %s: no such user: %s (the default); name "
			    "another or make it",
			    path, keys[i].name, c->values[i].text);
			goto out;
		}
	rc = 0;
out:
	free(text);
	close(fd);
	return rc;
}

/* The row of a getter's keyword. Not there, or of another type: abort. */
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
	return get(c, keyword, 1u << CONF_STRING | 1u << CONF_PATH)->text;
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

/* An unresolved default is (uid_t)-1, which no peer can have. */
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
		/* An empty default can't be written as a line: show it as a
		 * comment, so that the dump can be read back. */
		if (c->values[i].text[0] == '\0')
			buf_putf(b, "# %s is not set\n", keys[i].name);
		else
			buf_putf(b, "%s %s\n", keys[i].name, c->values[i].text);
	}
}

/* mdoc(7) gives a leading dot, quote and backslash a meaning. */
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
	}
	buf_putc(b, '\n');
}

void
conf_man(const char *process, struct buf *b)
{
	static const char *const type_names[] = {"text", "path", "yes | no",
	    "number", "size", "duration", "user", "address : port"};
	const struct key *k;

	buf_puts(b, ".Bl -tag -width Ds\n");
	for (size_t i = 0; i < NKEYS; i++) {
		k = &keys[i];
		if (!belongs(k, process))
			continue;
		buf_putf(b, ".It Ic %s Ar %s\n", k->name, type_names[k->type]);
		man_text(b, k->text);
		if (k->type == CONF_INT || k->type == CONF_SIZE ||
		    k->type == CONF_DURATION)
			buf_putf(b, "From %" PRId64 " to %" PRId64 "%s%s.\n",
			    k->min, k->max, k->unit[0] != '\0' ? " " : "",
			    k->unit);
		else if (k->unit[0] != '\0')
			buf_putf(b, "One of %s.\n", k->unit);
		if (k->fallback[0] == '\0')
			buf_puts(b, "Not set by default.\n");
		else {
			buf_puts(b, "Default: ");
			man_text(b, k->fallback);
		}
	}
	buf_puts(b, ".El\n");
}
