/*
 * Redaction as a filter, for test_redact_forms.py: on standard input one
 * request after another {u8 'b' bytes, 'j' JSON or 'c' cut; u32 cut; u32 n,
 * TLV of SECRETS; u32 n, text}; for each {u8 any found; u32 n, text}, or for
 * 'c' {u8 0; u32 4; u32 where}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "json_scan.h"
#include "redact.h"

static size_t
get(uint8_t **p)
{
	uint8_t head[4];
	size_t n;

	if (fread(head, 1, 4, stdin) != 4)
		exit(0);
	n = get_be32(head);
	if ((*p = malloc(n + 1)) == NULL || fread(*p, 1, n, stdin) != n)
		exit(1);
	return n;
}

int
main(void)
{
	uint8_t *secrets, *text, head[5];
	struct redact *r;
	struct buf out;
	size_t ns, nt;
	int any = 0;

	while (fread(head, 1, 5, stdin) == 5) {
		ns = get(&secrets);
		nt = get(&text);
		buf_init(&out, nt + 64);
		if ((r = redact_new(secrets, ns)) == NULL)
			return 1;
		if (head[0] == 'b')
			any = redact_bytes(r, ipc_bytes(text, nt), &out);
		else if (head[0] == 'c')
			buf_put_u32(&out,
			    (uint32_t)redact_cut(
				r, ipc_bytes(text, nt), get_be32(head + 1)));
		else if (json_scan(text, nt, NULL) == 0)
			any = redact_json(r, ipc_bytes(text, nt), &out);
		else
			return 1;
		if (out.failed)
			return 1;
		redact_free(r);
		putchar(any);
		for (int shift = 24; shift >= 0; shift -= 8)
			putchar((int)(out.len >> shift & 0xff));
		if (out.len > 0)
			(void)fwrite(out.p, 1, out.len, stdout);
		fflush(stdout);
		buf_free(&out);
		free(secrets);
		free(text);
	}
	return 0;
}
