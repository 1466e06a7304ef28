/*
 * Prints the settings of every process as the body of mcpbox.conf(5), from
 * the one table that the parser reads.
 */
#include <stdio.h>

#include "conf.h"

int
main(void)
{
	static const char *const processes[] = {"gatewayd", "admind",
	    "admind-http", "admind-check", "admind-vault", "sandboxd",
	    "sandboxd-spawn", "sandboxd-store", "egress", "mcpboxctl"};
	struct buf b;

	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++) {
		buf_putf(&b, ".Ss %s.conf\n", processes[i]);
		conf_man(processes[i], &b);
	}
	if (b.failed || fwrite(b.p, 1, b.len, stdout) != b.len)
		return 1;
	buf_free(&b);
	return 0;
}
