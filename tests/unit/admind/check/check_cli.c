/*
 * For the oracles: lines "hex(schema) hex(value)"; answers "ok", or "no" (the
 * value is invalid), "schema" (the schema is refused) or "limit", and what was
 * said. The values are arguments, or results of any type if there is an argv.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static unsigned
nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct ipc_bytes
unhex(char *s)
{
	size_t n = strlen(s) / 2;
	uint8_t *p = (uint8_t *)s;

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(nibble(s[2 * i]) << 4 | nibble(s[2 * i + 1]));
	return ipc_bytes(p, n);
}

static void
say(const char *word, const struct check *c)
{
	printf("%s ", word);
	/* It quotes names, which may have line ends in them. */
	for (const char *p = c->ok ? "" : c->summary; *p != '\0'; p++)
		putchar((unsigned char)*p < ' ' ? ' ' : *p);
	putchar(' ');
	for (size_t i = 0; i < c->errors.len; i++)
		putchar(c->errors.p[i]);
	putchar('\n');
	(void)fflush(stdout);
}

static const char *
word(const struct check *c)
{
	if (c->ok)
		return "ok";
	/* A stored schema that is none is the suite's own fault. */
	return c->failure == FAILURE_LIMIT   ? "limit"
	    : c->failure == FAILURE_INTERNAL ? "schema"
					     : "no";
}

int
main(int argc, char **argv)
{
	char *line = NULL, *second;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct ipc_bytes schema, arguments;
		struct check c;

		line[n - 1] = '\0';
		if ((second = strchr(line, ' ')) == NULL)
			return 1;
		*second++ = '\0';
		schema = unhex(line);
		arguments = unhex(second);
		if (argc == 1) {
			check_schema(&c, schema);
			if (!c.ok) {
				say("schema", &c);
				check_free(&c);
				continue;
			}
			check_free(&c);
		}
		check_arguments(&c, schema, arguments, argc > 1);
		say(word(&c), &c);
		check_free(&c);
	}
	free(line);
	return 0;
}
