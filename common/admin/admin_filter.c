#include "admin_filter.h"

#include <string.h>

#include "ids.h"
#include "tlv.h"
#include "utf8.h"

static const struct {
	const char *name;
	enum admin_filter_type type;
} filters[] = {
#define WORD                  ADMIN_FILTER_WORD
#define NAME                  ADMIN_FILTER_NAMED
#define UUID                  ADMIN_FILTER_UUID
#define HASH                  ADMIN_FILTER_HASHED
#define TIME                  ADMIN_FILTER_TIME
#define TEXT                  ADMIN_FILTER_TEXT
#define F(SYMBOL, name, type) {#name, type},
#include "admin_filter.def"
#undef F
#undef WORD
#undef NAME
#undef UUID
#undef HASH
#undef TIME
#undef TEXT
};

const char *
admin_filter_name(enum admin_filter f)
{
	return filters[f].name;
}

int
admin_filter_find(const char *name, size_t n)
{
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		if (strlen(filters[i].name) == n &&
		    memcmp(filters[i].name, name, n) == 0)
			return i;
	return -1;
}

static bool
digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return true;
}

/*
 * Accepts 2026-01-02T03:04:05Z, perhaps with a fraction of 1 to 6 digits.
 * PostgreSQL decides whether the day exists. This check keeps all other forms
 * from PostgreSQL's parser, which also reads "infinity" and "tomorrow" as
 * times.
 */
static bool
time_ok(const char *s, size_t n)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd";

	if (n < sizeof(form) || s[n - 1] != 'Z')
		return false;
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'd' ? !digits(s + i, 1) : s[i] != form[i])
			return false;
	s += sizeof(form) - 1;
	n -= sizeof(form); /* the form and the Z */
	return n == 0 ||
	    (n >= 2 && n <= 7 && *s == '.' && digits(s + 1, n - 1));
}

static bool
text_ok(const uint8_t *s, size_t n)
{
	size_t characters = 0;

	if (!utf8_valid(s, n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < 0x20 || s[i] == 0x7f)
			return false;
		characters += (s[i] & 0xc0) != 0x80;
	}
	return characters <= ADMIN_TEXT_CHARS;
}

bool
admin_filter_ok(enum admin_filter f, const void *text, size_t n)
{
	const char *s = text;
	struct ipc_id id;

	if (n == 0 || n > ADMIN_FILTER_MAX)
		return false;
	switch (filters[f].type) {
	case ADMIN_FILTER_WORD:
		for (size_t i = 0; i < n; i++)
			if (!digits(s + i, 1) && s[i] != '_' &&
			    (s[i] < 'a' || s[i] > 'z'))
				return false;
		return n <= ADMIN_WORD_MAX;
	case ADMIN_FILTER_NAMED:
		for (size_t i = 0; i < n; i++)
			if (!digits(s + i, 1) && (s[i] < 'a' || s[i] > 'z') &&
			    (s[i] < 'A' || s[i] > 'Z') &&
			    (s[i] == '\0' || strchr("_.@:*-", s[i]) == NULL))
				return false;
		return n <= ADMIN_TEXT_CHARS;
	case ADMIN_FILTER_UUID:
		return uuid_parse(s, n, &id) == 0;
	case ADMIN_FILTER_HASHED:
		for (size_t i = 0; i < n; i++)
			if (!digits(s + i, 1) && (s[i] < 'a' || s[i] > 'f'))
				return false;
		return n == HEX32_LEN;
	case ADMIN_FILTER_TIME:
		return time_ok(s, n);
	case ADMIN_FILTER_TEXT:
		return text_ok(text, n);
	}
	return false;
}

void
admin_filter_put(struct buf *b, enum admin_filter f, const char *text)
{
	tlv_puts(b, (uint8_t)(f + 1), text);
}

int
admin_filter_read(
    struct ipc_bytes list, struct ipc_bytes out[ADMIN_FILTER_COUNT])
{
	struct tlv_reader r;
	struct tlv t;
	int rc;

	memset(out, 0, ADMIN_FILTER_COUNT * sizeof(out[0]));
	tlv_open(&r, list.p, list.n);
	while ((rc = tlv_next(&r, &t)) == 1) {
		if (t.tag == 0 || t.tag > ADMIN_FILTER_COUNT ||
		    out[t.tag - 1].n != 0 ||
		    !admin_filter_ok((enum admin_filter)(t.tag - 1), t.p, t.n))
			return -1;
		out[t.tag - 1] = ipc_bytes(t.p, t.n);
	}
	return rc;
}
