#include "judge.h"

#include <arpa/inet.h>
#include <string.h>

struct block {
	uint8_t b[16];
	uint8_t bits;
	enum judge_class class;
	const char *what, *source;
};

/*
 * IPv4, from the IANA registry of special-purpose addresses; the first block
 * that matches decides. An address in no block is global unicast.
 *
 * The metadata services of clouds hand out credentials of the machine to every
 * process that can connect, so they are refused by their addresses; most are
 * link-local anyway.
 */
static const struct block v4[] = {
    {{168, 63, 129, 16}, 32, JUDGE_NEVER, "a cloud's metadata service",
	"Azure WireServer"},
    {{100, 100, 100, 200}, 32, JUDGE_NEVER, "a cloud's metadata service",
	"Alibaba Cloud"},
    {{192, 0, 0, 192}, 32, JUDGE_NEVER, "a cloud's metadata service",
	"Oracle Cloud"},
    {{169, 254, 169, 254}, 32, JUDGE_NEVER, "a cloud's metadata service",
	"AWS, Azure, Google Cloud and others"},
    {{0}, 8, JUDGE_NEVER, "this network", "RFC 1122"},
    {{10}, 8, JUDGE_LAN, "private use", "RFC 1918"},
    {{100, 64}, 10, JUDGE_LAN, "shared between carriers", "RFC 6598"},
    {{127}, 8, JUDGE_LOOPBACK, "loopback", "RFC 1122"},
    {{169, 254}, 16, JUDGE_NEVER, "link-local", "RFC 3927"},
    {{172, 16}, 12, JUDGE_LAN, "private use", "RFC 1918"},
    {{192, 0, 0}, 24, JUDGE_NEVER, "protocol assignments", "RFC 6890"},
    {{192, 0, 2}, 24, JUDGE_NEVER, "documentation", "RFC 5737"},
    {{192, 88, 99}, 24, JUDGE_NEVER, "6to4 relays", "RFC 7526"},
    {{192, 168}, 16, JUDGE_LAN, "private use", "RFC 1918"},
    {{198, 18}, 15, JUDGE_NEVER, "benchmarks", "RFC 2544"},
    {{198, 51, 100}, 24, JUDGE_NEVER, "documentation", "RFC 5737"},
    {{203, 0, 113}, 24, JUDGE_NEVER, "documentation", "RFC 5737"},
    {{224}, 4, JUDGE_NEVER, "multicast", "RFC 5771"},
    {{255, 255, 255, 255}, 32, JUDGE_NEVER, "limited broadcast", "RFC 919"},
    {{240}, 4, JUDGE_NEVER, "reserved", "RFC 1112"},
};

/* IPv6: only 2000::/3 is given out as global unicast (RFC 4291), and parts of
 * it are not. An address in no block below is refused. */
static const struct block v6[] = {
    {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54}, 128, JUDGE_NEVER,
	"a cloud's metadata service", "AWS"},
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54}, 128, JUDGE_NEVER,
	"a cloud's metadata service", "Google Cloud"},
    {{0}, 128, JUDGE_NEVER, "unspecified", "RFC 4291"},
    {{[15] = 1}, 128, JUDGE_LOOPBACK, "loopback", "RFC 4291"},
    {{[10] = 0xff, 0xff}, 96, JUDGE_NEVER, "IPv4-mapped", "RFC 4291"},
    {{0}, 96, JUDGE_NEVER, "IPv4-compatible", "RFC 4291"},
    {{0, 0x64, 0xff, 0x9b}, 96, JUDGE_PUBLIC, "IPv4 behind NAT64", "RFC 6052"},
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, JUDGE_NEVER, "NAT64 of local use",
	"RFC 8215"},
    {{0x01}, 64, JUDGE_NEVER, "discarded", "RFC 6666"},
    {{0x20, 0x01, 0, 0}, 32, JUDGE_NEVER, "Teredo", "RFC 4380"},
    {{0x20, 0x01, 0, 0x02}, 48, JUDGE_NEVER, "benchmarks", "RFC 5180"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, JUDGE_NEVER, "documentation", "RFC 3849"},
    {{0x20, 0x01}, 23, JUDGE_NEVER, "protocol assignments", "RFC 2928"},
    {{0x20, 0x02}, 16, JUDGE_NEVER, "6to4", "RFC 7526"},
    {{0x3f, 0xfe}, 16, JUDGE_NEVER, "the former 6bone", "RFC 3701"},
    {{0x3f, 0xff}, 20, JUDGE_NEVER, "documentation", "RFC 9637"},
    {{0x20}, 3, JUDGE_PUBLIC, "global unicast", "RFC 4291"},
    {{0x5f}, 16, JUDGE_NEVER, "segment routing", "RFC 9602"},
    {{0xfc}, 7, JUDGE_LAN, "unique local", "RFC 4193"},
    {{0xfe, 0x80}, 10, JUDGE_NEVER, "link-local", "RFC 4291"},
    {{0xfe, 0xc0}, 10, JUDGE_NEVER, "site-local", "RFC 3879"},
    {{0xff}, 8, JUDGE_NEVER, "multicast", "RFC 4291"},
};

static struct judge_verdict
look_up(const struct block *t, size_t n, const uint8_t *b)
{
	for (size_t i = 0; i < n; i++)
		if (address_prefix(b, t[i].b, t[i].bits))
			return (struct judge_verdict){
			    t[i].class, t[i].what, t[i].source};
	return (struct judge_verdict){JUDGE_NEVER, "not given out", "RFC 4291"};
}

static struct judge_verdict
judge_v4(const uint8_t *b)
{
	for (size_t i = 0; i < sizeof(v4) / sizeof(v4[0]); i++)
		if (address_prefix(b, v4[i].b, v4[i].bits))
			return (struct judge_verdict){
			    v4[i].class, v4[i].what, v4[i].source};
	return (struct judge_verdict){
	    JUDGE_PUBLIC, "global unicast", "RFC 791"};
}

const uint8_t judge_prefix_bits[JUDGE_PREFIX_LENGTHS] = {
    32, 40, 48, 56, 64, 96};

void
judge_embedded(const uint8_t b[16], unsigned bits, uint8_t out[4])
{
	size_t at = bits / 8;

	/* Byte 8 is not part of the address: RFC 6052, figure 1. */
	for (unsigned k = 0; k < 4; k++, at++) {
		if (at == 8)
			at++;
		out[k] = b[at];
	}
}

/*
 * Finds the IPv4 addresses that an IPv6 address may lead to. This machine or a
 * relay can forward a packet for such an IPv6 address, as IPv4, to the IPv4
 * address inside the IPv6 address (the inner address). So the inner address is
 * judged as well, and unless it is public, the IPv6 address is refused. A tool
 * that can't reach 10.0.0.1 does not reach it through 64:ff9b::a00:1, and a
 * grant of one spelling opens no other.
 */
static size_t
inside(const uint8_t *b, const struct judge_prefixes *nat64,
    uint8_t out[JUDGE_INSIDE][4])
{
	static const struct {
		uint8_t prefix[8];
		uint8_t bits;
		uint8_t at[4]; /* positions of the IPv4 address's bytes */
	} forms[] = {
	    /* IPv4-mapped and -compatible, but not :: and ::1 */
	    {{0}, 64, {12, 13, 14, 15}},
	    /* NAT64: RFC 6052's /96; RFC 8215's prefix as /48, /56, /64 */
	    {{0, 0x64, 0xff, 0x9b}, 32, {12, 13, 14, 15}},
	    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, {6, 7, 9, 10}},
	    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, {7, 9, 10, 11}},
	    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, {9, 10, 11, 12}},
	    /* 6to4, RFC 3056 */
	    {{0x20, 0x02}, 16, {2, 3, 4, 5}},
	    /* Teredo, RFC 4380: the server's address; the client's is found
	     * below */
	    {{0x20, 0x01, 0, 0}, 32, {4, 5, 6, 7}},
	};
	size_t n = 0;

	if (memcmp(b, (const uint8_t[15]){0}, 15) == 0 && b[15] <= 1)
		return 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (address_prefix(b, forms[i].prefix, forms[i].bits)) {
			for (unsigned k = 0; k < 4; k++)
				out[n][k] = b[forms[i].at[k]];
			n++;
		}
	if (address_prefix(b, forms[6].prefix, forms[6].bits)) {
		for (unsigned k = 0; k < 4; k++)
			out[n][k] = b[12 + k] ^ 0xff;
		n++;
	}
	/* ISATAP, RFC 5214: interface id [0,2]00:5efe:a.b.c.d in any prefix */
	if ((b[8] & ~0x02) == 0 && b[9] == 0 && b[10] == 0x5e &&
	    b[11] == 0xfe) {
		memcpy(out[n], b + 12, 4);
		n++;
	}
	/* The NAT64 prefix of a provider can't be in the table above, because
	 * in all other networks that prefix is global unicast. */
	for (size_t i = 0; i < nat64->n; i++)
		if (address_prefix(
			b, nat64->prefix[i].b, nat64->prefix[i].bits)) {
			judge_embedded(b, nat64->prefix[i].bits, out[n]);
			n++;
		}
	return n;
}

size_t
judge_inside(const struct address *a, const struct judge_prefixes *nat64,
    struct address out[JUDGE_INSIDE])
{
	uint8_t inner[JUDGE_INSIDE][4];
	size_t n = a->family == AF_INET6 ? inside(a->b, nat64, inner) : 0;

	for (size_t i = 0; i < n; i++)
		out[i] = address_v4(inner[i]);
	return n;
}

struct judge_verdict
judge_address(const struct address *a, const struct judge_prefixes *nat64)
{
	struct judge_verdict v, in;
	uint8_t inner[JUDGE_INSIDE][4];
	size_t n;

	if (a->family == AF_INET)
		return judge_v4(a->b);
	n = inside(a->b, nat64, inner);
	v = look_up(v6, sizeof(v6) / sizeof(v6[0]), a->b);
	for (size_t i = 0; i < n; i++)
		if ((in = judge_v4(inner[i])).class != JUDGE_PUBLIC) {
			/* The verdict on the inner address explains the refusal
			 * better than v does. */
			in.class = JUDGE_NEVER;
			return in;
		}
	return v;
}
