/* netgrant.h: lines, lists, and what covers what. */
#include "unit.h"

#include "netgrant.h"

static bool
covers(const char *line, bool declared, enum netgrant_proto proto,
    const char *host, bool is_address, unsigned port)
{
	struct netgrant g;

	assert_int_equal(netgrant_read(ipc_str(line), &g, NULL), 0);
	return netgrant_covers(
	    &g, declared, proto, ipc_str(host), is_address, (uint16_t)port);
}

static void
lines(void **state)
{
	static const char *const good[] = {"tcp a.example 0",
	    "udp a.example 53", "tcp * 443", "tcp *.b.example 65535",
	    "tcp 192.168.1.5 8123", "tcp 2001:db8::1 443", "tcp printer 9100"};
	static const char *const bad[] = {"", "tcp", "tcp a.example",
	    "tcp a.example ", "tcp a.example 080", "tcp a.example 65536",
	    "tcp a.example -1", "tcp a.example 80 ", " tcp a.example 80",
	    "tcp  a.example 80", "TCP a.example 80", "sctp a.example 80",
	    "tcp A.example 80", "tcp a.example. 80", "tcp *.example 80",
	    "tcp ** 80", "tcp a_b.example 80", "tcp 0x7f.1 80",
	    "tcp 192.168.001.5 80", "tcp 2001:DB8::1 80", "tcp [::1] 80",
	    "tcp \xc3\xbc.example 80", "tcp a.example 80\n"};
	struct netgrant g;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (netgrant_read(ipc_str(good[i]), &g, NULL) != 0)
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (netgrant_read(ipc_str(bad[i]), &g, NULL) == 0)
			fail_msg("taken: %s", bad[i]);
}

static void
lists(void **state)
{
	static const char text[] = "tcp a.example 80\nudp b.example 53\n";
	struct ipc_bytes list = ipc_str(text);
	struct netgrant g;

	assert_int_equal(netgrant_next(&list, &g, NULL), 1);
	assert_int_equal(g.port, 80);
	assert_int_equal(netgrant_next(&list, &g, NULL), 1);
	assert_int_equal(g.proto, NETGRANT_UDP);
	assert_int_equal(netgrant_next(&list, &g, NULL), 0);
	list = ipc_str("tcp a.example 80");
	assert_int_equal(netgrant_next(&list, &g, NULL), -1);
	list = ipc_str("\n");
	assert_int_equal(netgrant_next(&list, &g, NULL), -1);
	assert_true(netgrant_names(ipc_str(text), ipc_str("b.example")));
	assert_false(netgrant_names(ipc_str(text), ipc_str("c.example")));
	assert_false(netgrant_names(ipc_str(""), ipc_str("c.example")));
}

static void
ports(void **state)
{
	const enum netgrant_proto tcp = NETGRANT_TCP, udp = NETGRANT_UDP;

	/* without one: 80 and 443 of a grant, any of a declaration */
	assert_true(covers("tcp a.example 0", false, tcp, "a.example", 0, 80));
	assert_true(covers("tcp a.example 0", false, tcp, "a.example", 0, 443));
	assert_false(covers("tcp a.example 0", false, tcp, "a.example", 0, 22));
	assert_true(covers("tcp a.example 0", true, tcp, "a.example", 0, 22));
	/* UDP has no ports that go without saying */
	assert_false(covers("udp a.example 0", false, udp, "a.example", 0, 80));
	assert_true(covers("udp a.example 0", true, udp, "a.example", 0, 53));
	assert_true(covers("tcp a.example 22", false, tcp, "a.example", 0, 22));
	assert_false(covers("tcp a.example 22", true, tcp, "a.example", 0, 80));
	assert_false(covers("tcp a.example 53", true, udp, "a.example", 0, 53));
	assert_false(covers("udp a.example 53", true, tcp, "a.example", 0, 53));
}

static void
hosts(void **state)
{
	const enum netgrant_proto tcp = NETGRANT_TCP;

	assert_false(covers("tcp a.example 0", false, tcp, "b.example", 0, 80));
	assert_false(
	    covers("tcp a.example 0", false, tcp, "x.a.example", 0, 80));
	assert_true(
	    covers("tcp *.a.example 0", false, tcp, "x.a.example", 0, 80));
	assert_true(
	    covers("tcp *.a.example 0", false, tcp, "y.x.a.example", 0, 80));
	assert_false(
	    covers("tcp *.a.example 0", false, tcp, "a.example", 0, 80));
	assert_false(
	    covers("tcp *.a.example 0", false, tcp, ".a.example", 0, 80));
	assert_false(
	    covers("tcp *.a.example 0", false, tcp, "xa.example", 0, 80));
	assert_true(covers("tcp * 0", false, tcp, "any.example", 0, 443));
	assert_true(covers("tcp * 0", false, tcp, "192.0.2.1", 1, 443));
	assert_true(covers("tcp 192.0.2.1 0", false, tcp, "192.0.2.1", 1, 80));
	/* a name that looks like the address is none */
	assert_false(covers("tcp 192.0.2.1 0", false, tcp, "192.0.2.1", 0, 80));
	assert_false(covers("tcp a.example 0", false, tcp, "a.example", 1, 80));
	assert_false(
	    covers("tcp 192.0.2.1 0", false, tcp, "192.0.2.11", 1, 80));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines),
	    cmocka_unit_test(lists),
	    cmocka_unit_test(ports),
	    cmocka_unit_test(hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
