/*
 * A struct sockaddr out of a runner, and the verdict on it: an address that is
 * taken is one, by whichever socket it came; and an IPv6 address with an IPv4
 * one inside is public only if that is. The last 32 bytes are two addresses of
 * ipv4only.arpa: whatever prefixes they tell open nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "nat64.h"
#include "never.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
judge(const uint8_t *data, size_t n, sa_family_t family,
    const struct judge_prefixes *nat64)
{
	static const struct judge_prefixes none = {.n = 0};
	enum judge_class without, with;
	struct address a, in[JUDGE_INSIDE], back;
	char text[ADDRESS_TEXT];
	uint16_t port;
	size_t inside;

	if (address_foreign(data, n, family, &a, &port) != 0)
		return;
	if (a.family != AF_INET && (a.family != AF_INET6 || family != AF_INET6))
		abort();
	address_text(&a, text);
	if (address_read(ipc_str(text), &back) != 0 ||
	    !address_equal(&a, &back))
		abort();
	without = judge_address(&a, &none).class;
	with = judge_address(&a, nat64).class;
	if (with != without && with != JUDGE_NEVER)
		abort();
	inside = judge_inside(&a, nat64, in);
	if (inside > JUDGE_INSIDE)
		abort();
	for (size_t i = 0; i < inside; i++)
		if (judge_address(&in[i], nat64).class != JUDGE_PUBLIC &&
		    with != JUDGE_NEVER)
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const sa_family_t families[] = {AF_INET, AF_INET6};
	uint8_t whole[128] = {0};
	struct address told[2] = {{.family = AF_INET6}, {.family = AF_INET6}};
	struct judge_prefixes nat64 = {.n = 0};
	struct never v;
	char text[256];

	if (n >= 32) {
		memcpy(told[0].b, data + n - 32, 16);
		memcpy(told[1].b, data + n - 16, 16);
		nat64_learn(told, 2, &nat64);
	}
	judge(data, n, AF_INET, &nat64);
	judge(data, n, AF_INET6, &nat64);
	/* The same behind a family that fits. */
	for (size_t i = 0; i < 2; i++) {
		memcpy(whole, &families[i], sizeof(families[i]));
		memcpy(whole + 2, data, n < 126 ? n : 126);
		judge(whole, sizeof(whole), families[i], &nat64);
	}
	if (n < sizeof(text)) {
		memcpy(text, data, n);
		text[n] = '\0';
		(void)never_read(text, &v, NULL);
	}
	return 0;
}
