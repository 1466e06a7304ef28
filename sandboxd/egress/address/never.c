#include "never.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRY_TEXT = 64 }; /* more than any address with brackets and port */

static int
number(const char *s, unsigned long max, unsigned long *out)
{
	char *end;

	if (*s < '0' || *s > '9')
		return -1;
	*out = strtoul(s, &end, 10);
	return *end == '\0' && *out <= max ? 0 : -1;
}

/* Reads one entry; changes text. */
static int
entry(char *text, struct never_entry *out)
{
	struct never_entry en = {0};
	unsigned long bits, port = 0;
	char *host = text, *rest, *slash;

	if (*text == '[') {
		host = text + 1;
		if ((rest = strchr(host, ']')) == NULL)
			return -1;
		*rest++ = '\0';
		if (*rest == ':' && number(rest + 1, 65535, &port) < 0)
			return -1;
		if (*rest != ':' && *rest != '\0')
			return -1;
	} else if ((rest = strchr(text, ':')) != NULL &&
	    strchr(rest + 1, ':') == NULL) {
		*rest = '\0';
		if (number(rest + 1, 65535, &port) < 0 || port == 0)
			return -1;
	}
	if ((slash = strchr(host, '/')) != NULL)
		*slash = '\0';
	if (address_read(ipc_str(host), &en.address) < 0)
		return -1;
	en.bits = en.address.family == AF_INET ? 32 : 128;
	if (slash != NULL) {
		if (number(slash + 1, en.bits, &bits) < 0)
			return -1;
		en.bits = (unsigned)bits;
	}
	en.port = (uint16_t)port;
	*out = en;
	return 0;
}

int
never_read(const char *text, struct never *out, struct err *e)
{
	struct never v = {.n = 0};
	char one[ENTRY_TEXT];
	size_t len, n;

	for (; *text != '\0'; text += len + (text[len] == ',')) {
		text += strspn(text, " ");
		n = len = strcspn(text, ",");
		while (n > 0 && text[n - 1] == ' ')
			n--;
		if (n == 0 || n >= sizeof(one) || v.n == NEVER_MAX)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "never: an empty or too long entry, or too many");
		memcpy(one, text, n);
		one[n] = '\0';
		if (entry(one, &v.entries[v.n]) < 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "never: \"%.*s\" is no ADDRESS[/BITS][:PORT]",
			    (int)n, text);
		v.n++;
	}
	*out = v;
	return 0;
}

bool
never_has(const struct never *v, const struct address *a, uint16_t port)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct never_entry *en = &v->entries[i];

		if (en->address.family == a->family &&
		    (en->port == 0 || en->port == port) &&
		    address_prefix(en->address.b, a->b, en->bits))
			return true;
	}
	return false;
}
