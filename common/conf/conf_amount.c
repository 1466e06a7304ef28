#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conf_amount.h"

struct unit {
	const char *name;
	int64_t factor;
};

/* The units of each type, the largest first. */
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};
static const struct unit size_units[] = {
    {"G", 1073741824}, {"M", 1048576}, {"K", 1024}, {"", 1}, {NULL, 0}};
static const struct unit time_units[] = {
    {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0}};

static const struct unit *
units_of(enum conf_type type)
{
	return type == CONF_SIZE    ? size_units
	    : type == CONF_DURATION ? time_units
				    : no_units;
}

int
conf_amount_digits(const char *s, const char **end, int64_t *out)
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

int
conf_amount_parse(enum conf_type type, const char *s, int64_t *out)
{
	const char *end;

	if (conf_amount_digits(s, &end, out) < 0)
		return -1;
	for (const struct unit *u = units_of(type); u->name != NULL; u++)
		if (strcmp(end, u->name) == 0)
			return __builtin_mul_overflow(*out, u->factor, out) ? -1
									    : 0;
	return -1;
}

const char *
conf_amount_text(enum conf_type type, int64_t n, char out[CONF_AMOUNT_MAX])
{
	const struct unit *u = units_of(type);

	if (n == 0) {
		snprintf(out, CONF_AMOUNT_MAX, "0%s",
		    type == CONF_DURATION ? "s" : "");
		return out;
	}
	while (n % u->factor != 0)
		u++;
	snprintf(out, CONF_AMOUNT_MAX, "%" PRId64 "%s", n / u->factor, u->name);
	return out;
}

void
conf_amount_range(enum conf_type type, int64_t min, int64_t max,
    const char *unit, char *out, size_t len)
{
	char from[CONF_AMOUNT_MAX], to[CONF_AMOUNT_MAX];
	bool named = type == CONF_INT && unit[0] != '\0';

	snprintf(out, len, "from %s to %s%s%s",
	    conf_amount_text(type, min, from), conf_amount_text(type, max, to),
	    named ? " " : "", named ? unit : "");
}
