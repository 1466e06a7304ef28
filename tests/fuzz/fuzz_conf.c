/*
 * The configuration reader: any bytes give settings or an error with a line,
 * never a crash; what it accepted, its own dump must read back.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const char *const processes[] = {
	    "gatewayd", "admind", "sandboxd", "admind-vault"};
	struct conf *c, *d;
	struct buf dump;
	struct err e;

	if (n == 0)
		return 0;
	/* The first byte chooses the process. */
	if ((c = conf_new(processes[p[0] % 4])) == NULL)
		return 0;
	e.text[0] = '\0';
	if (conf_parse(c, "f", p + 1, n - 1, &e) < 0) {
		assert(strncmp(e.text, "f:", 2) == 0);
		conf_free(c);
		return 0;
	}
	buf_init(&dump, 1 << 20);
	conf_dump(c, &dump);
	assert(!dump.failed);
	/* Default users that don't exist here can't be read back: they are
	 * names, as the dump shows them. */
	if ((d = conf_new(processes[p[0] % 4])) != NULL &&
	    conf_parse(d, "dump", dump.p, dump.len, &e) < 0)
		assert(strstr(e.text, "no such user") != NULL);
	buf_free(&dump);
	conf_free(c);
	conf_free(d);
	return 0;
}
