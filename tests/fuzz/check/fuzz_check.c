/*
 * admind-check's questions on arbitrary bytes. The first byte chooses; the
 * rest is split at its first newline into schema and arguments, or tool name
 * and arguments, or a prompt and what fills it. Whatever the verdict, its list
 * of errors must be JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "forms.h"
#include "json.h"
#include "specs.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *line;
	struct ipc_bytes a, b;
	struct check c;

	if (n == 0 || (line = memchr(data + 1, '\n', n - 1)) == NULL)
		return 0;
	a = ipc_bytes(data + 1, (size_t)(line - data - 1));
	b = ipc_bytes(line + 1, n - a.n - 2);
	switch (data[0] % 8) {
	case 0:
		check_schema(&c, b);
		break;
	case 1:
		check_arguments(&c, a, b, (data[0] & 8) != 0);
		break;
	case 2:
		check_management(&c, a, b);
		break;
	case 4:
		check_command(&c, a, b);
		break;
	case 5:
		/* Whatever is put into a prompt, messages come out. */
		check_render(&c, a, b);
		if (c.ok && json_scan(c.fields.p, c.fields.len, NULL) == -1)
			abort();
		break;
	default:
		check_inspection(&c, b);
	}
	if (!c.ok &&
	    (c.summary[0] == '\0' ||
		json_scan(c.errors.p, c.errors.len, NULL) == -1))
		abort();
	check_free(&c);
	return 0;
}
