/*
 * Security argument.
 *
 * Each byte here was chosen by a stranger. JSON goes through the pre-scan that
 * all of our parsers have (json_parse: depth, numbers, UTF-8, duplicates)
 * before json-c sees it. A text is kept only if it is printable ASCII and
 * within a bound. So no copy is longer than its field, and no text is a
 * terminal's command. Nothing is executed, opened or followed.
 */
#include <string.h>
#include <strings.h>

#include <json-c/json.h>

#include "remote_read.h"

#include "buf.h"
#include "crypto.h"
#include "ids.h"
#include "json.h"

enum { JWK_MEMBER_MAX = 1024 }; /* n of RSA with 4096 bits has 683 */

/* Copies a text whose characters are all from `least` to ~ and that fits. */
static void
take(const char *s, size_t n, char least, char *out, size_t max)
{
	if (n > max)
		return;
	for (size_t i = 0; i < n; i++)
		if (s[i] < least || s[i] > '~')
			return;
	memcpy(out, s, n);
	out[n] = '\0';
}

static void
take_member(
    struct json_object *o, const char *name, char least, char *out, size_t max)
{
	struct json_object *v;

	if (json_object_object_get_ex(o, name, &v) &&
	    json_object_is_type(v, json_type_string))
		take(json_object_get_string(v),
		    (size_t)json_object_get_string_len(v), least, out, max);
}

static struct json_object *
member(struct json_object *o, const char *name, enum json_type type)
{
	struct json_object *v = NULL;

	return json_object_is_type(o, json_type_object) &&
		json_object_object_get_ex(o, name, &v) &&
		json_object_is_type(v, type)
	    ? v
	    : NULL;
}

static bool
is(struct json_object *o, const char *name, const char *value)
{
	struct json_object *v = member(o, name, json_type_string);

	return v != NULL && strcmp(json_object_get_string(v), value) == 0;
}

int
remote_read_thumb(struct json_object *jwk, char out[REMOTE_THUMB_LEN + 1])
{
	/* The members that count, in the order of their names. */
	static const struct {
		const char *kty, *members[4];
	} kinds[] = {{"EC", {"crv", "kty", "x", "y"}},
	    {"OKP", {"crv", "kty", "x"}}, {"RSA", {"e", "kty", "n"}}};
	char value[JWK_MEMBER_MAX + 1];
	struct ipc_hash hash;
	struct buf b;
	int rc = -1;

	buf_init(&b, 4 * (JWK_MEMBER_MAX + REMOTE_WORD_MAX));
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (!is(jwk, "kty", kinds[k].kty))
			continue;
		rc = 0;
		for (size_t i = 0; i < 4 && kinds[k].members[i] != NULL; i++) {
			value[0] = '\0';
			take_member(jwk, kinds[k].members[i], '!', value,
			    JWK_MEMBER_MAX);
			/* No value of a good key needs an escape. */
			if (value[0] == '\0' || strpbrk(value, "\"\\") != NULL)
				rc = -1;
			buf_putf(&b, "%s\"%s\":\"%s\"", i == 0 ? "{" : ",",
			    kinds[k].members[i], value);
		}
		buf_putc(&b, '}');
	}
	if (rc == 0 && !b.failed) {
		sha256(b.p, b.len, &hash);
		(void)b64url_encode(hash.b, sizeof(hash.b), out);
	}
	rc = b.failed ? -1 : rc;
	buf_free(&b);
	return rc;
}

/* Tells whether a key can be the signer of a token that we take. Issuers show
 * keys for other purposes, too. */
static bool
signs(struct json_object *jwk)
{
	return !is(jwk, "use", "enc") &&
	    (is(jwk, "kty", "RSA") ||
		(is(jwk, "kty", "EC") && is(jwk, "crv", "P-256")) ||
		(is(jwk, "kty", "OKP") && is(jwk, "crv", "Ed25519")));
}

uint32_t
remote_read_keys(
    struct json_object *set, struct remote_key keys[REMOTE_KEYS_MAX])
{
	struct json_object *list = member(set, "keys", json_type_array), *jwk;
	uint32_t n = 0;

	for (size_t i = 0; list != NULL && n < REMOTE_KEYS_MAX &&
	    i < json_object_array_length(list);
	    i++) {
		jwk = json_object_array_get_idx(list, i);
		memset(&keys[n], 0, sizeof(keys[n]));
		if (!json_object_is_type(jwk, json_type_object) ||
		    !signs(jwk) || remote_read_thumb(jwk, keys[n].thumb) == -1)
			continue;
		take_member(jwk, "kid", '!', keys[n].kid, REMOTE_WORD_MAX);
		n++;
	}
	return n;
}

static void
read_lists(struct json_object *o, struct remote_said *s)
{
	struct json_object *v, *list;

	list = member(o, "authorization_servers", json_type_array);
	for (size_t i = 0; list != NULL && s->nservers < REMOTE_SERVERS_MAX &&
	    i < json_object_array_length(list);
	    i++) {
		v = json_object_array_get_idx(list, i);
		if (json_object_is_type(v, json_type_string))
			take(json_object_get_string(v),
			    (size_t)json_object_get_string_len(v), '!',
			    s->servers[s->nservers++], REMOTE_URL_MAX);
	}
	list = member(o, "code_challenge_methods_supported", json_type_array);
	for (size_t i = 0; list != NULL && i < json_object_array_length(list);
	    i++) {
		v = json_object_array_get_idx(list, i);
		if (json_object_is_type(v, json_type_string) &&
		    strcmp(json_object_get_string(v), "S256") == 0)
			s->s256 = true;
	}
	s->has_keys = member(o, "keys", json_type_array) != NULL;
	s->nkeys = remote_read_keys(o, s->keys);
}

static void
read_object(struct json_object *o, struct remote_said *s)
{
	struct json_object *v;

	s->json = true;
	take_member(o, "resource", '!', s->resource, REMOTE_URL_MAX);
	take_member(o, "issuer", '!', s->issuer, REMOTE_URL_MAX);
	take_member(o, "jwks_uri", '!', s->jwks_uri, REMOTE_URL_MAX);
	read_lists(o, s);
	if ((v = member(o, "result", json_type_object)) != NULL) {
		s->result = true;
		v = member(v, "tools", json_type_array);
		s->ntools =
		    v != NULL ? (uint32_t)json_object_array_length(v) : 0;
	}
	if ((v = member(o, "error", json_type_object)) != NULL)
		take_member(v, "message", ' ', s->rpc_error, REMOTE_TEXT_MAX);
}

/* Finds the data of an event stream's last event of one line, since that is the
 * answer: progress and log lines come before. */
static void
last_event(const char **p, size_t *n)
{
	static const char mark[] = "data:";
	const char *s = *p, *end = *p + *n, *found = NULL;
	size_t len = 0;

	while (s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		size_t line = nl != NULL ? (size_t)(nl - s) : (size_t)(end - s);

		if (line > sizeof(mark) - 1 &&
		    memcmp(s, mark, sizeof(mark) - 1) == 0) {
			found = s + sizeof(mark) - 1;
			len = line - (sizeof(mark) - 1);
		}
		s += line + (nl != NULL);
	}
	*p = found != NULL ? found : *p;
	*n = found != NULL ? len : 0;
}

static bool
begins(const char *s, size_t n, const char *with)
{
	return n >= strlen(with) && strncasecmp(s, with, strlen(with)) == 0;
}

void
remote_read_body(
    const void *body, size_t n, const char *type, struct remote_said *s)
{
	const char *p = body;
	struct json_object *o = NULL;
	struct err err;

	if (begins(type, strlen(type), "text/event-stream"))
		last_event(&p, &n);
	while (n > 0 && *p != '\0' && strchr(" \t\r\n", *p) != NULL) {
		p++;
		n--;
	}
	s->html = begins(type, strlen(type), "text/html") ||
	    begins(p, n, "<!doctype html") || begins(p, n, "<html");
	if (n == 0 || *p != '{')
		return;
	if (json_parse((const uint8_t *)p, n, &o, &err) == 0 &&
	    json_object_is_type(o, json_type_object))
		read_object(o, s);
	json_object_put(o);
}

/* ---- the challenge ---- */

static bool
is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') ||
	    (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static void
parameter(const char *name, size_t nname, const char *value, size_t n,
    struct remote_said *s)
{
	const struct {
		const char *name;
		char least, *out;
		size_t max;
	} known[] = {{"realm", ' ', s->realm, REMOTE_WORD_MAX},
	    {"resource_metadata", '!', s->metadata, REMOTE_URL_MAX},
	    {"error", '!', s->error, REMOTE_WORD_MAX},
	    {"error_description", ' ', s->description, REMOTE_TEXT_MAX}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].name) == nname &&
		    strncasecmp(name, known[i].name, nname) == 0 &&
		    known[i].out[0] == '\0')
			take(value, n, known[i].least, known[i].out,
			    known[i].max);
}

/*
 * RFC 9110 section 11.6.1: schemes with parameters, name=token or
 * name="quoted". A quoted text ends at the next quotation mark; one with a
 * backslash is skipped whole, since no field of ours needs it. A word without
 * `=` after it begins another challenge.
 */
void
remote_read_challenge(const char *p, size_t n, struct remote_said *s)
{
	const char *end = p + n, *name, *value;
	bool ours = false;
	size_t nname, nvalue;

	while (p < end) {
		if (!is_token(*p)) {
			p++;
			continue;
		}
		name = p;
		while (p < end && is_token(*p))
			p++;
		nname = (size_t)(p - name);
		if (p == end || *p != '=') {
			ours = nname == 6 && !s->bearer &&
			    strncasecmp(name, "Bearer", 6) == 0;
			s->bearer = s->bearer || ours;
			continue;
		}
		p++;
		if (p < end && *p == '"') {
			bool escaped = false;

			value = ++p;
			while (p < end && *p != '"') {
				escaped = escaped || *p == '\\';
				p += *p == '\\' && p + 1 < end ? 2 : 1;
			}
			nvalue = escaped ? 0 : (size_t)(p - value);
			p += p < end;
		} else {
			value = p;
			while (p < end && is_token(*p))
				p++;
			nvalue = (size_t)(p - value);
		}
		if (ours)
			parameter(name, nname, value, nvalue, s);
	}
}
