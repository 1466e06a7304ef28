/*
 * For json_oracle.py: reads lines of hex, answers each with what json_scan
 * says: "ok", or "no" and the rule.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static int
nibble(int c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

int
main(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		size_t len = (size_t)(n - 1) / 2;
		uint8_t *p = malloc(len + 1);
		struct err e;

		if (p == NULL)
			return 1;
		for (size_t i = 0; i < len; i++)
			p[i] = (uint8_t)(nibble(line[2 * i]) << 4 |
			    nibble(line[2 * i + 1]));
		if (json_scan(p, len, &e) == 0)
			puts("ok");
		else
			printf("no %s\n", e.text);
		free(p);
	}
	free(line);
	return 0;
}
