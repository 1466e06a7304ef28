/* The NAT64 prefixes of a network: found in answers, and what they embed judged
 * (nat64.h). tests/egress/test_nat64.py has the asking. */
#include "unit.h"

#include "nat64.h"

static const struct judge_prefixes none = {.n = 0};

static struct address
addr(const char *text)
{
	struct address a;

	if (address_read(ipc_str(text), &a) != 0)
		fail_msg("no address: %s", text);
	return a;
}

/* RFC 6052, section 2.4: each length; what it embeds is judged. */
static void
nat64(void **state)
{
	static const struct {
		const char *arpa, *public, *private;
		unsigned bits;
	} rows[] = {
	    {"2a00:122:c000:aa::", "2a00:122:5db8:d822::",
		"2a00:122:c0a8:0101::", 32},
	    {"2a00:122:3c0:0:aa::", "2a00:122:35d:b8d8:22::",
		"2a00:122:3c0:a801:1::", 40},
	    {"2a00:122:344:c000:0:aa00::", "2a00:122:344:5db8:d8:2200::",
		"2a00:122:344:c0a8:1:100::", 48},
	    {"2a00:122:344:1c0:0:aa::", "2a00:122:344:15d:b8:d822::",
		"2a00:122:344:1c0:a8:101::", 56},
	    {"2a00:122:344:155:c0:0:aa00:0", "2a00:122:344:155:5d:b8d8:2200:0",
		"2a00:122:344:155:c0:a801:100:0", 64},
	    {"2a00:122:344:155:66:77:c000:ab",
		"2a00:122:344:155:66:77:5db8:d822",
		"2a00:122:344:155:66:77:c0a8:101", 96},
	};
	struct judge_prefixes p;
	struct address a, list[9], in[JUDGE_INSIDE];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		list[0] = addr("192.0.0.170");
		list[1] = addr(rows[i].arpa);
		nat64_learn(list, 2, &p);
		assert_int_equal(p.n, 1);
		assert_int_equal(p.prefix[0].bits, rows[i].bits);
		a = addr(rows[i].public);
		assert_int_equal(judge_address(&a, &p).class, JUDGE_PUBLIC);
		assert_int_equal(judge_inside(&a, &p, in), 1);
		list[2] = addr("93.184.216.34");
		assert_true(address_equal(&in[0], &list[2]));
		a = addr(rows[i].private);
		assert_int_equal(judge_address(&a, &none).class, JUDGE_PUBLIC);
		assert_int_equal(judge_address(&a, &p).class, JUDGE_NEVER);
		assert_string_equal(judge_address(&a, &p).source, "RFC 1918");
		/* Outside of it nothing changes. */
		a = addr("2606:4700::c0a8:101");
		assert_int_equal(judge_address(&a, &p).class, JUDGE_PUBLIC);
		assert_int_equal(judge_inside(&a, &p, in), 0);
	}
	/* No prefix in other answers; each once; a bound. */
	list[0] = addr("2a00:122::c000:a9");
	nat64_learn(list, 1, &p);
	assert_int_equal(p.n, 0);
	nat64_learn(list, 0, &p);
	assert_int_equal(p.n, 0);
	list[0] = addr("2a00:122::c000:aa");
	list[1] = addr("2a00:122::c000:ab");
	nat64_learn(list, 2, &p);
	assert_int_equal(p.n, 1);
	for (unsigned i = 0; i < 9; i++) {
		list[i] = addr("2a00:122::c000:aa");
		list[i].b[2] = (uint8_t)i;
	}
	nat64_learn(list, 9, &p);
	assert_int_equal(p.n, JUDGE_PREFIXES_MAX);
	/* One of local use: it stays what it is, and never gets more. */
	list[0] = addr("fd00:64::c000:aa");
	nat64_learn(list, 1, &p);
	a = addr("fd00:64::5db8:d822");
	assert_int_equal(judge_address(&a, &p).class, JUDGE_LAN);
	a = addr("fd00:64::7f00:1");
	assert_int_equal(judge_address(&a, &p).class, JUDGE_NEVER);
	/* A forged one opens nothing. */
	list[0] = addr("fe80::c000:aa");
	nat64_learn(list, 1, &p);
	a = addr("fe80::5db8:d822");
	assert_int_equal(judge_address(&a, &p).class, JUDGE_NEVER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nat64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
