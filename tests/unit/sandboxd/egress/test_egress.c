/*
 * The parts of egress that need no network: address policy, foreign addresses,
 * the setting `never`, synthetic addresses, DNS messages, rights, rates and
 * reports of a net. tests/egress drives the whole.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "bounds.h"
#include "dns.h"
#include "judge.h"
#include "json_grammar.h"
#include "listeners.h"
#include "names.h"
#include "net.h"
#include "never.h"
#include "record.h"

static const struct judge_prefixes none = {.n = 0};

static struct address
addr(const char *text)
{
	struct address a;

	if (address_read(ipc_str(text), &a) != 0)
		fail_msg("no address: %s", text);
	return a;
}

static void
policy(void **state)
{
	/* First and last address of each block, and what is beside it. */
	static const struct {
		const char *text;
		enum judge_class class;
	} rows[] = {
	    {"0.0.0.0", JUDGE_NEVER},
	    {"0.255.255.255", JUDGE_NEVER},
	    {"1.0.0.0", JUDGE_PUBLIC},
	    {"9.255.255.255", JUDGE_PUBLIC},
	    {"10.0.0.0", JUDGE_LAN},
	    {"10.255.255.255", JUDGE_LAN},
	    {"11.0.0.0", JUDGE_PUBLIC},
	    {"100.63.255.255", JUDGE_PUBLIC},
	    {"100.64.0.0", JUDGE_LAN},
	    {"100.127.255.255", JUDGE_LAN},
	    {"100.128.0.0", JUDGE_PUBLIC},
	    {"100.100.100.200", JUDGE_NEVER},
	    {"100.100.100.199", JUDGE_LAN},
	    {"126.255.255.255", JUDGE_PUBLIC},
	    {"127.0.0.0", JUDGE_LOOPBACK},
	    {"127.255.255.255", JUDGE_LOOPBACK},
	    {"128.0.0.0", JUDGE_PUBLIC},
	    {"168.63.129.15", JUDGE_PUBLIC},
	    {"168.63.129.16", JUDGE_NEVER},
	    {"169.253.255.255", JUDGE_PUBLIC},
	    {"169.254.0.0", JUDGE_NEVER},
	    {"169.254.169.254", JUDGE_NEVER},
	    {"169.254.255.255", JUDGE_NEVER},
	    {"169.255.0.0", JUDGE_PUBLIC},
	    {"172.15.255.255", JUDGE_PUBLIC},
	    {"172.16.0.0", JUDGE_LAN},
	    {"172.31.255.255", JUDGE_LAN},
	    {"172.32.0.0", JUDGE_PUBLIC},
	    {"192.0.0.0", JUDGE_NEVER},
	    {"192.0.0.255", JUDGE_NEVER},
	    {"192.0.1.0", JUDGE_PUBLIC},
	    {"192.0.2.0", JUDGE_NEVER},
	    {"192.0.3.0", JUDGE_PUBLIC},
	    {"192.88.98.255", JUDGE_PUBLIC},
	    {"192.88.99.0", JUDGE_NEVER},
	    {"192.88.100.0", JUDGE_PUBLIC},
	    {"192.167.255.255", JUDGE_PUBLIC},
	    {"192.168.0.0", JUDGE_LAN},
	    {"192.168.255.255", JUDGE_LAN},
	    {"192.169.0.0", JUDGE_PUBLIC},
	    {"198.17.255.255", JUDGE_PUBLIC},
	    {"198.18.0.0", JUDGE_NEVER},
	    {"198.19.255.255", JUDGE_NEVER},
	    {"198.20.0.0", JUDGE_PUBLIC},
	    {"198.51.99.255", JUDGE_PUBLIC},
	    {"198.51.100.0", JUDGE_NEVER},
	    {"198.51.101.0", JUDGE_PUBLIC},
	    {"203.0.112.255", JUDGE_PUBLIC},
	    {"203.0.113.255", JUDGE_NEVER},
	    {"203.0.114.0", JUDGE_PUBLIC},
	    {"223.255.255.255", JUDGE_PUBLIC},
	    {"224.0.0.0", JUDGE_NEVER},
	    {"239.255.255.255", JUDGE_NEVER},
	    {"240.0.0.0", JUDGE_NEVER},
	    {"255.255.255.255", JUDGE_NEVER},

	    {"::", JUDGE_NEVER},
	    {"::1", JUDGE_LOOPBACK},
	    {"::2", JUDGE_NEVER},
	    {"::5db8:d822", JUDGE_NEVER},
	    {"::ffff:93.184.216.34", JUDGE_NEVER}, /* unwrapped before */
	    {"::ffff:0:5db8:d822", JUDGE_NEVER},
	    {"64:ff9b::5db8:d822", JUDGE_PUBLIC},
	    {"64:ff9b::7f00:1", JUDGE_NEVER},
	    {"64:ff9b::a00:1", JUDGE_NEVER},
	    {"64:ff9b::6440:1", JUDGE_NEVER},
	    {"64:ff9b:0:0:0:1:5db8:d822", JUDGE_NEVER}, /* not of the /96 */
	    {"64:ff9b:1::5db8:d822", JUDGE_NEVER},
	    {"64:ff9c::5db8:d822", JUDGE_NEVER},
	    {"100::1", JUDGE_NEVER},
	    {"1fff:ffff::1", JUDGE_NEVER},
	    {"2000::1", JUDGE_PUBLIC},
	    {"2001::1", JUDGE_NEVER},
	    {"2001:1ff:ffff::1", JUDGE_NEVER},
	    {"2001:200::1", JUDGE_PUBLIC},
	    {"2001:db7:ffff::1", JUDGE_PUBLIC},
	    {"2001:db8::1", JUDGE_NEVER},
	    {"2001:db8:ffff:ffff::1", JUDGE_NEVER},
	    {"2001:db9::1", JUDGE_PUBLIC},
	    {"2002:5db8:d822::1", JUDGE_NEVER},
	    {"2003::1", JUDGE_PUBLIC},
	    {"2606:2800:220:1::1", JUDGE_PUBLIC},
	    {"2606:2800:220:1:0:5efe:5db8:d822", JUDGE_PUBLIC},
	    {"2606:2800:220:1:0:5efe:c0a8:1", JUDGE_NEVER},
	    {"2606:2800:220:1:200:5efe:7f00:1", JUDGE_NEVER},
	    {"2606:2800:220:1:400:5efe:7f00:1", JUDGE_PUBLIC},
	    {"3ffd::1", JUDGE_PUBLIC},
	    {"3ffe::1", JUDGE_NEVER},
	    {"3fff::1", JUDGE_NEVER},
	    {"3fff:fff::1", JUDGE_NEVER},
	    {"3fff:1000::1", JUDGE_PUBLIC},
	    {"4000::1", JUDGE_NEVER},
	    {"5f00::1", JUDGE_NEVER},
	    {"fbff::1", JUDGE_NEVER},
	    {"fc00::1", JUDGE_LAN},
	    {"fdff:ffff::1", JUDGE_LAN},
	    {"fd00:ec2::254", JUDGE_NEVER},
	    {"fd00:ec2::255", JUDGE_LAN},
	    {"fd20:ce::254", JUDGE_NEVER},
	    {"fe00::1", JUDGE_NEVER},
	    {"fe80::1", JUDGE_NEVER},
	    {"febf:ffff::1", JUDGE_NEVER},
	    {"fec0::1", JUDGE_NEVER},
	    {"ff02::1", JUDGE_NEVER},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct address a = addr(rows[i].text);
		const struct judge_verdict v = judge_address(&a, &none);

		if (v.class != rows[i].class)
			fail_msg("%s: %d (%s)", rows[i].text, v.class, v.what);
		assert_true(v.what[0] != '\0' && v.source[0] != '\0');
	}
}

/* All of IPv4 in each form of IPv6 is at most as open as by itself. */
static void
forms(void **state)
{
	static const char *const inner[] = {"127.0.0.1", "10.0.0.1",
	    "169.254.169.254", "192.168.1.1", "0.0.0.0", "224.0.0.1",
	    "255.255.255.255", "100.64.0.1", "198.18.0.1"};
	static const struct {
		uint8_t prefix[8];
		uint8_t at;
	} wraps[] = {{{0}, 12}, {{0, 0x64, 0xff, 0x9b}, 12}, {{0x20, 0x02}, 2},
	    {{0x20, 0x01}, 4}, {{0, 0x64, 0xff, 0x9b, 0, 1}, 9}};

	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
		for (size_t k = 0; k < sizeof(wraps) / sizeof(wraps[0]); k++) {
			const struct address in = addr(inner[i]);
			struct address a = {.family = AF_INET6};

			memcpy(a.b, wraps[k].prefix, 8);
			memcpy(a.b + wraps[k].at, in.b, 4);
			assert_int_equal(
			    judge_address(&a, &none).class, JUDGE_NEVER);
		}
}

static void
foreign(void **state)
{
	struct sockaddr_storage ss;
	struct address a = addr("192.0.2.1"), got;
	uint8_t bytes[128] = {0};
	uint16_t port;
	socklen_t n = address_sockaddr(&a, 8080, &ss);

	memcpy(bytes, &ss, n);
	assert_int_equal(
	    address_foreign(bytes, sizeof(bytes), AF_INET, &got, &port), 0);
	assert_true(address_equal(&a, &got));
	assert_int_equal(port, 8080);
	assert_int_equal(
	    address_foreign(bytes, 15, AF_INET, &got, &port), EINVAL);
	assert_int_equal(
	    address_foreign(bytes, n, AF_INET6, &got, &port), EAFNOSUPPORT);
	assert_int_equal(
	    address_foreign(bytes, n, AF_UNIX, &got, &port), EAFNOSUPPORT);
	assert_int_equal(
	    address_foreign(bytes, 1, AF_INET, &got, &port), EINVAL);
	bytes[0] = bytes[1] = AF_UNSPEC;
	assert_int_equal(
	    address_foreign(bytes, n, AF_INET, &got, &port), EAFNOSUPPORT);
	a = addr("::ffff:192.0.2.1");
	n = address_sockaddr(&a, 1, &ss);
	assert_int_equal(
	    address_foreign((const uint8_t *)&ss, n, AF_INET6, &got, &port), 0);
	assert_int_equal(got.family, AF_INET);
	a = addr("2001:db8::1");
	assert_int_equal(
	    address_sockaddr(&a, 1, &ss), sizeof(struct sockaddr_in6));
	assert_int_equal(
	    address_foreign((const uint8_t *)&ss, 24, AF_INET6, &got, &port),
	    0);
	assert_true(address_equal(&a, &got));
	assert_int_equal(
	    address_foreign((const uint8_t *)&ss, 23, AF_INET6, &got, &port),
	    EINVAL);
}

static void
never_list(void **state)
{
	static const char *const bad[] = {"x", "10.0.0.1/33", "10.0.0.1:0",
	    "10.0.0.1:65536", "10.0.0.1:", "[::1", "[::1]x", "[::1]:x",
	    "::1/129", "10.0.0.1,,10.0.0.2", " ", "10.0.0.1/"};
	struct never v;
	struct address a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (never_read(bad[i], &v, NULL) == 0)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(never_read("", &v, NULL), 0);
	assert_int_equal(v.n, 0);
	assert_int_equal(never_read("10.0.0.1, 10.1.0.0/16 ,192.0.2.1:5432,"
				    "[2001:db8::1]:5432,2001:db8:1::/48",
			     &v, NULL),
	    0);
	assert_int_equal(v.n, 5);
	a = addr("10.0.0.1");
	assert_true(never_has(&v, &a, 1));
	a = addr("10.0.0.2");
	assert_false(never_has(&v, &a, 1));
	a = addr("10.1.255.255");
	assert_true(never_has(&v, &a, 65535));
	a = addr("192.0.2.1");
	assert_true(never_has(&v, &a, 5432));
	assert_false(never_has(&v, &a, 5433));
	a = addr("2001:db8::1");
	assert_true(never_has(&v, &a, 5432));
	assert_false(never_has(&v, &a, 80));
	a = addr("2001:db8:1:ffff::1");
	assert_true(never_has(&v, &a, 80));
}

static void
synthetic(void **state)
{
	struct names t = {0};
	struct address a, b;
	char name[32];

	assert_int_equal(names_address(&t, "a.example", &a), 0);
	assert_int_equal(names_address(&t, "b.example", &b), 0);
	assert_false(address_equal(&a, &b));
	assert_int_equal(names_address(&t, "a.example", &b), 0);
	assert_true(address_equal(&a, &b));
	assert_true(names_synthetic(&a));
	assert_int_equal(judge_address(&a, &none).class, JUDGE_NEVER);
	assert_string_equal(names_of(&t, &a), "a.example");
	b = addr("240.0.0.3");
	assert_null(names_of(&t, &b));
	b = addr("240.0.0.0");
	assert_null(names_of(&t, &b));
	b = addr("93.184.216.34");
	assert_null(names_of(&t, &b));
	b = addr("255.255.255.255");
	assert_false(names_synthetic(&b));
	for (int i = 2; i < NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "n%d.example", i);
		assert_int_equal(names_address(&t, name, &b), 0);
	}
	assert_int_equal(names_address(&t, "more.example", &b), -1);
	assert_int_equal(names_address(&t, "a.example", &b), 0);
	names_free(&t);
}

static size_t
question(uint8_t *m, const char *name, unsigned type)
{
	size_t n = 12, len;

	memset(m, 0, 12);
	m[1] = 7;
	m[2] = 1;
	m[5] = 1;
	for (; *name != '\0'; name += len + (name[len] == '.')) {
		len = strcspn(name, ".");
		m[n++] = (uint8_t)len;
		memcpy(m + n, name, len);
		n += len;
	}
	m[n++] = 0;
	m[n++] = (uint8_t)(type >> 8);
	m[n++] = (uint8_t)type;
	m[n++] = 0;
	m[n++] = 1;
	return n;
}

static void
messages(void **state)
{
	uint8_t m[DNS_MESSAGE_MAX + 64] = {0}, out[DNS_ANSWER_MAX];
	const struct address a = addr("240.0.0.1");
	struct dns_question q;
	size_t n = question(m, "WWW.Example", DNS_TYPE_A), len;

	assert_int_equal(dns_question(m, n, &q), 0);
	assert_string_equal(q.name, "www.example");
	assert_int_equal(q.type, DNS_TYPE_A);
	len = dns_answer(m, &q, DNS_NOERROR, &a, out);
	assert_int_equal(len, n + 16);
	assert_memory_equal(out, m, 2);
	assert_int_equal(get_be16(out + 2), 0x8180);
	assert_int_equal(get_be16(out + 6), 1);
	assert_memory_equal(out + 12, m + 12, n - 12);
	assert_memory_equal(out + len - 4, a.b, 4);
	len = dns_answer(m, &q, DNS_NXDOMAIN, NULL, out);
	assert_int_equal(len, n);
	assert_int_equal(out[3] & 15, DNS_NXDOMAIN);
	assert_int_equal(dns_answer(m, NULL, DNS_FORMERR, NULL, out), 12);

	/* Every truncation is no question; what is behind one is passed over.
	 */
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
		    dns_question(m, i, &q), i < 12 ? -1 : DNS_FORMERR);
	assert_int_equal(dns_question(m, n + 11, &q), 0);
	assert_int_equal(dns_question(m, DNS_MESSAGE_MAX + 1, &q), DNS_FORMERR);
	n = question(m, "bad name.example", DNS_TYPE_A);
	assert_int_equal(dns_question(m, n, &q), 0);
	assert_string_equal(q.name, "");
	n = question(m, "_service._tcp.example", 33);
	assert_int_equal(dns_question(m, n, &q), 0);
	assert_string_equal(q.name, "_service._tcp.example");
	n = question(m, "a.example", DNS_TYPE_A);
	m[12] = 0xc0; /* a pointer */
	assert_int_equal(dns_question(m, n, &q), DNS_FORMERR);
	m[12] = 0x40;
	assert_int_equal(dns_question(m, n, &q), DNS_FORMERR);
	n = question(m, "a.example", DNS_TYPE_A);
	m[2] = 0x81; /* an answer */
	assert_int_equal(dns_question(m, n, &q), -1);
	m[2] = 0x29; /* UPDATE */
	assert_int_equal(dns_question(m, n, &q), DNS_NOTIMP);
	n = question(m, "a.example", DNS_TYPE_A);
	m[n - 1] = 3; /* class CHAOS */
	assert_int_equal(dns_question(m, n, &q), DNS_NOTIMP);
	n = question(m, "a.example", DNS_TYPE_A);
	m[5] = 2;
	assert_int_equal(dns_question(m, n, &q), DNS_FORMERR);
}

/* A name of 253 characters is one; of 254 none. */
static void
long_names(void **state)
{
	uint8_t m[DNS_MESSAGE_MAX] = {0};
	struct dns_question q;
	char name[300];
	size_t n;

	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	n = question(m, name, DNS_TYPE_A);
	assert_int_equal(dns_question(m, n, &q), 0);
	assert_string_equal(q.name, name);
	name[253] = 'a';
	name[254] = '\0';
	n = question(m, name, DNS_TYPE_A);
	assert_int_equal(dns_question(m, n, &q), DNS_FORMERR);
}

static struct net *
open_net(struct egress *g, const char *requires, const char *grants)
{
	char hosts[1024];
	struct ipc_net_open m = {.net = 7,
	    .connections = 10,
	    .bytes = 1000,
	    .bytes_minute = 500,
	    .requires_len = (uint32_t)strlen(requires)};
	struct err e;

	memset(g, 0, sizeof(*g));
	for (size_t i = 0; i < EGRESS_CHAINS; i++)
		TAILQ_INIT(&g->chains[i]);
	TAILQ_INIT(&g->ready);
	snprintf(hosts, sizeof(hosts), "%s%s", requires, grants);
	m.hosts = ipc_str(hosts);
	return net_open(g, NULL, &m, &e);
}

static void
rights(void **state)
{
	static struct egress g;
	struct ipc_net_open bad = {.net = 8, .requires_len = 1};
	struct err e;
	struct net *n;

	assert_null(open_net(&g, "tcp a.example 0\n", "rubbish\n"));
	assert_null(open_net(&g, "tcp a.example 0", "\n"));
	assert_null(net_open(&g, NULL, &bad, &e));
	n = open_net(&g, "tcp a.example 0\ntcp 10.0.0.1 0\ntcp c.example 0\n",
	    "tcp a.example 0\ntcp b.example 0\ntcp 10.0.0.1 8080\n");
	assert_non_null(n);
	assert_ptr_equal(net_find(&g, 7), n);
	assert_null(net_find(&g, 8));
	assert_int_equal(
	    net_covers(n, NETGRANT_TCP, "a.example", false, 80), NET_RIGHT);
	assert_int_equal(
	    net_covers(n, NETGRANT_TCP, "a.example", false, 22), NET_UNGRANTED);
	assert_int_equal(net_covers(n, NETGRANT_TCP, "b.example", false, 80),
	    NET_UNDECLARED);
	assert_int_equal(
	    net_covers(n, NETGRANT_TCP, "c.example", false, 80), NET_UNGRANTED);
	assert_int_equal(
	    net_literal(n, NETGRANT_TCP, "10.0.0.1", 8080), NET_RIGHT);
	assert_int_equal(
	    net_literal(n, NETGRANT_TCP, "10.0.0.1", 80), NET_UNGRANTED);
	assert_int_equal(net_resolves(n, "a.example"), NET_RIGHT);
	assert_int_equal(net_resolves(n, "c.example"), NET_UNGRANTED);
	assert_int_equal(net_resolves(n, "b.example"), NET_UNDECLARED);
	assert_int_equal(net_resolves(n, "d.example"), NET_NEITHER);
	assert_int_equal(
	    net_covers(n, NETGRANT_TCP, "d.example", false, 80), NET_NEITHER);
	assert_non_null(strstr(net_missing(NET_UNDECLARED), "`requires`"));
	assert_null(strstr(net_missing(NET_UNDECLARED), "granted"));
	assert_non_null(
	    strstr(net_missing(NET_UNGRANTED), "mcpbox_request_network"));
	assert_null(strstr(net_missing(NET_UNGRANTED), "`requires`"));
	for (enum net_right r = NET_RIGHT; r <= NET_NEITHER; r++)
		assert_true(
		    strlen("by UDP ") + strlen(net_missing(r)) < RECORD_REASON);
	assert_int_equal(net_grants(n, ipc_str("nonsense"), &e), -1);
	assert_int_equal(net_resolves(n, "a.example"), NET_RIGHT);
	assert_int_equal(net_grants(n, ipc_str(""), &e), 0);
	assert_int_equal(net_resolves(n, "a.example"), NET_UNGRANTED);
	net_free(n);
	assert_null(net_find(&g, 7));
}

static void
rates(void **state)
{
	static struct egress g;
	struct net *n = open_net(&g, "", "");

	net_count(n, 400);
	assert_false(n->over);
	net_count(n, 200);
	assert_true(n->told_rate && n->over && !n->told_bytes);
	net_count(n, 500);
	assert_true(n->told_bytes);
	assert_int_equal(n->bytes, 1100);
	/* A minute later the window is empty. */
	n->at_s -= NET_RATE_SECONDS;
	net_count(n, 1);
	assert_int_equal(n->minute, 1);
	n->at_s -= NET_RATE_SECONDS - 1;
	net_count(n, 1);
	assert_true(n->minute <= 2);
	net_free(n);
}

static void
reports(void **state)
{
	struct records t;
	struct record *r;
	struct buf b;
	char host[NAMES_NAME_MAX + 1];

	records_init(&t);
	buf_init(&b, NET_REPORT_MAX);
	assert_int_equal(records_json(&t, &b), 0);
	assert_int_equal(b.len, 2);
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	for (int i = 0; i < 500; i++) {
		r = record_new(host, (uint16_t)(i + 1), i % 2);
		records_add(&t, r,
		    i % 3 == 0       ? RECORD_CONNECTED
			: i % 3 == 1 ? RECORD_REFUSED
				     : RECORD_FAILED,
		    "\xff\"quoted\" and long enough to fill its room");
		record_drop(r);
	}
	assert_int_equal(t.made, RECORD_MADE_MAX);
	assert_int_equal(t.other, RECORD_OTHER_MAX);
	buf_clear(&b);
	assert_int_equal(records_json(&t, &b), 0);
	assert_true(b.len <= NET_REPORT_MAX && b.len > NET_REPORT_MAX / 2);
	assert_true(json_grammar_valid(b.p, b.len));
	records_free(&t);
	/* A refusal that stands there already does not stand there twice. */
	records_init(&t);
	for (int i = 0; i < 5; i++) {
		r = record_new("a.example", 80, false);
		records_add(&t, r, RECORD_REFUSED, "no");
		record_drop(r);
	}
	assert_int_equal(t.other, 1);
	records_free(&t);
	buf_free(&b);
}

struct seen {
	struct address bound;
	uid_t user;
	int n;
};

static bool
remember(void *arg, const struct address *bound, uid_t user)
{
	struct seen *s = arg;

	s->bound = *bound;
	s->user = user;
	s->n++;
	return true;
}

/* A listener of ours is found by both ways, with its address and user. */
static void
own_listener(void **state)
{
	const struct address a = addr("127.0.0.1");
	struct sockaddr_storage ss;
	socklen_t n = address_sockaddr(&a, 0, &ss);
	struct sockaddr_in in;
	struct listeners l;
	struct seen s = {0};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(sock, (struct sockaddr *)&ss, n), 0);
	assert_int_equal(listen(sock, 1), 0);
	assert_int_equal(getsockname(sock, (struct sockaddr *)&in, &n), 0);
	listeners_open(&l);
	assert_int_equal(
	    listeners_find(&l, NETGRANT_TCP, ntohs(in.sin_port), remember, &s),
	    1);
	assert_int_equal(s.user, geteuid());
	assert_true(address_equal(&s.bound, &a));
	memset(&s, 0, sizeof(s));
	assert_int_equal(listeners_find_proc(&l, NETGRANT_TCP,
			     ntohs(in.sin_port), remember, &s),
	    1);
	assert_int_equal(s.user, geteuid());
	assert_true(address_equal(&s.bound, &a));
	close(sock);
	s.n = 0;
	assert_int_equal(
	    listeners_find(&l, NETGRANT_TCP, ntohs(in.sin_port), remember, &s),
	    0);
	assert_int_equal(listeners_find_proc(&l, NETGRANT_TCP,
			     ntohs(in.sin_port), remember, &s),
	    0);
	assert_int_equal(s.n, 0);
	listeners_close(&l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(policy),
	    cmocka_unit_test(forms),
	    cmocka_unit_test(foreign),
	    cmocka_unit_test(never_list),
	    cmocka_unit_test(synthetic),
	    cmocka_unit_test(messages),
	    cmocka_unit_test(long_names),
	    cmocka_unit_test(rights),
	    cmocka_unit_test(rates),
	    cmocka_unit_test(reports),
	    cmocka_unit_test(own_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
