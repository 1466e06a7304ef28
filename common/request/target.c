#include <arpa/inet.h>
#include <string.h>

#include "target.h"

enum {
	WORDS_MAX = 5,
	MAIL_MAX = 254, /* RFC 5321, section 4.5.3.1.3, without < and > */
	ROOM_MAX = 255  /* Matrix: appendices, 4.2 "Common Identifier Format" */
};

/* A kind's word, its number of words without the secret, and whether it is
 * useless without a secret. */
static const struct form {
	const char *word;
	unsigned words;
	bool secret;
	const char *port; /* NULL: the URL's scheme tells */
} forms[] = {
    [TARGET_WEBHOOK] = {"webhook", 2, true, NULL},
    [TARGET_NTFY] = {"ntfy", 2, false, NULL},
    [TARGET_MATRIX] = {"matrix", 3, true, NULL},
    [TARGET_SMTP] = {"smtp", 4, false, "587"},
    [TARGET_SMTPS] = {"smtps", 4, false, "465"},
};

static bool
starts(struct ipc_bytes s, const char *with)
{
	size_t n = strlen(with);

	return s.n >= n && memcmp(s.p, with, n) == 0;
}

static struct ipc_bytes
after(struct ipc_bytes s, size_t n)
{
	return ipc_bytes(s.p + n, s.n - n);
}

/* Splits the text at its spaces. Returns the number of words, or 0 if there are
 * too many, an empty one, or another byte than ! to ~ without " and \. */
static unsigned
split(struct ipc_bytes text, struct ipc_bytes *word)
{
	unsigned n = 0;
	size_t from = 0;

	for (size_t i = 0; i <= text.n; i++) {
		if (i < text.n && text.p[i] != ' ') {
			if (text.p[i] < '!' || text.p[i] > '~' ||
			    text.p[i] == '"' || text.p[i] == '\\')
				return 0;
			continue;
		}
		if (i == from || n == WORDS_MAX)
			return 0;
		word[n++] = ipc_bytes(text.p + from, i - from);
		from = i + 1;
	}
	return n;
}

/* Takes "secret=SERVER/NAME" apart. */
static bool
take_secret(struct ipc_bytes word, struct target *t)
{
	struct ipc_bytes s = after(word, strlen("secret="));
	const uint8_t *slash = s.n > 0 ? memchr(s.p, '/', s.n) : NULL;

	if (slash == NULL)
		return false;
	t->server = ipc_bytes(s.p, (size_t)(slash - s.p));
	t->secret = after(s, t->server.n + 1);
	return t->server.n > 0 && t->secret.n > 0 &&
	    memchr(t->secret.p, '/', t->secret.n) == NULL;
}

bool
target_is_local(struct ipc_bytes host)
{
	bool v6 = host.n > 0 && host.p[0] == '[';
	char text[INET6_ADDRSTRLEN];
	const uint8_t *end =
	    host.n > 0 ? memchr(host.p, v6 ? ']' : ':', host.n) : NULL;
	size_t n = end != NULL ? (size_t)(end - host.p) : host.n;
	struct in6_addr a6;
	struct in_addr a4;
	uint32_t a;

	if (host.n == 0 || n - v6 >= sizeof(text) || (v6 && end == NULL))
		return false;
	memcpy(text, host.p + v6, n - v6);
	text[n - v6] = '\0';
	if (v6)
		return inet_pton(AF_INET6, text, &a6) == 1 &&
		    (IN6_IS_ADDR_LOOPBACK(&a6) ||
			(a6.s6_addr[0] & 0xfe) == 0xfc);
	if (inet_pton(AF_INET, text, &a4) != 1)
		return false;
	a = ntohl(a4.s_addr);
	return a >> 24 == 10 || a >> 24 == 127 || a >> 20 == 0xac1 ||
	    a >> 16 == 0xc0a8;
}

/* Takes the host out of https://HOST[:PORT][/PATH], or http. No user name, no
 * fragment. */
static bool
take_url(struct ipc_bytes url, struct target *t)
{
	struct ipc_bytes s;
	size_t n;

	t->port = starts(url, "https://") ? "443" : "80";
	if (starts(url, "https://"))
		s = after(url, strlen("https://"));
	else if (starts(url, "http://"))
		s = after(url, strlen("http://"));
	else
		return false;
	for (n = 0; n < s.n && s.p[n] != '/' && s.p[n] != '?'; n++)
		if (s.p[n] == '@')
			return false;
	t->url = url;
	t->host = ipc_bytes(s.p, n);
	return n > 0 && memchr(s.p, '#', s.n) == NULL;
}

/* Tells whether this is one e-mail address in its common form: no comment, no
 * quoted string, nothing that separates addresses or headers. */
static bool
is_mail(struct ipc_bytes s)
{
	static const char out[] = "<>()[],;:";
	const uint8_t *at;

	if (s.n > MAIL_MAX || (at = memchr(s.p, '@', s.n)) == NULL)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (memchr(out, s.p[i], sizeof(out) - 1) != NULL)
			return false;
	return at > s.p && at < s.p + s.n - 1 &&
	    memchr(at + 1, '@', s.n - (size_t)(at + 1 - s.p)) == NULL;
}

static const char *
read_words(const struct ipc_bytes *word, struct target *t)
{
	switch (t->kind) {
	case TARGET_WEBHOOK:
	case TARGET_NTFY:
	case TARGET_MATRIX:
		if (!take_url(word[1], t))
			return "must have a URL as its second word: "
			       "https://HOST[:PORT][/PATH], without a user "
			       "name and without #";
		if (t->url.p[strlen("http")] == ':' &&
		    !target_is_local(t->host))
			return "must begin its URL with https:// (http:// only "
			       "for an address of the local network or of this "
			       "machine, as http://192.168.1.5:8080)";
		if (t->kind == TARGET_MATRIX &&
		    (word[2].p[0] != '!' || word[2].n > ROOM_MAX))
			return "must have a room's ID as its third word, as "
			       "!opaque:example.org: an alias (#) can be moved "
			       "to another room";
		return NULL;
	case TARGET_SMTP:
	case TARGET_SMTPS:
		t->host = word[1];
		if (!is_mail(word[2]) || !is_mail(word[3]))
			return "must have two e-mail addresses as its third "
			       "and fourth word: from whom, and to whom";
		return NULL;
	}
	return "is of no known kind";
}

const char *
target_read(struct ipc_bytes text, struct target *t)
{
	struct ipc_bytes word[WORDS_MAX];
	const struct form *f = NULL;
	unsigned n;

	memset(t, 0, sizeof(*t));
	if (text.n == 0 || text.n > TARGET_TEXT_MAX ||
	    (n = split(text, word)) == 0)
		return "must have 1 to 512 characters: at most 5 words of ! to "
		       "~ without \" and \\, one space between two";
	t->words = text;
	for (unsigned i = 0; i + 1 < n; i++)
		if (starts(word[i], "secret="))
			return "must have secret=SERVER/NAME as its last word";
	if (starts(word[n - 1], "secret=")) {
		if (!take_secret(word[n - 1], t))
			return "must name its secret as secret=SERVER/NAME";
		n--;
		t->words.n = n == 0
		    ? 0
		    : (size_t)(word[n - 1].p + word[n - 1].n - text.p);
	}
	for (unsigned i = 0; n > 0 && i < sizeof(forms) / sizeof(forms[0]); i++)
		if (ipc_streq(word[0], forms[i].word)) {
			t->kind = (enum target_kind)i;
			f = &forms[i];
		}
	if (f == NULL)
		return "must begin with webhook, ntfy, matrix, smtp or smtps";
	if (n != f->words)
		return "must be one of: webhook URL secret=S/N; ntfy URL "
		       "[secret=S/N]; matrix URL ROOM secret=S/N; smtp or "
		       "smtps HOST[:PORT] FROM TO [secret=S/N]";
	if (f->secret && t->secret.n == 0)
		return "must end with secret=SERVER/NAME: the key that signs, "
		       "or the token";
	t->port = f->port;
	return read_words(word, t);
}
