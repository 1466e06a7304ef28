#include <sys/random.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ids.h"

static const char b64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/*
 * Asks the kernel until all bytes are there. Once the kernel's pool is ready,
 * only EINTR can happen. Any other error means that there is no randomness at
 * all, and a process that would hand out guessable tokens must not go on.
 */
void
random_bytes(void *p, size_t n)
{
	uint8_t *out = p;
	ssize_t got;

	while (n > 0) {
		if ((got = getrandom(out, n, 0)) < 0) {
			if (errno == EINTR)
				continue;
			abort();
		}
		out += got;
		n -= (size_t)got;
	}
}

void
id_random(struct ipc_id *id)
{
	random_bytes(id->b, sizeof(id->b));
}

/*
 * Makes an id of 48 bits of Unix time in ms, version, 12 bits of the fraction
 * below the millisecond (so that ids of one process sort by time, RFC 9562
 * section 6.2 method 3), variant, 62 random bits.
 */
void
uuid_v7(struct ipc_id *id)
{
	uint64_t us, ms;
	unsigned fraction;

	random_bytes(id->b, sizeof(id->b));
	us = now_us();
	ms = us / 1000;
	fraction = (unsigned)((us % 1000) * 4096 / 1000);
	for (int i = 0; i < 6; i++)
		id->b[i] = (uint8_t)(ms >> (40 - 8 * i));
	id->b[6] = (uint8_t)(0x70 | (fraction >> 8));
	id->b[7] = (uint8_t)fraction;
	id->b[8] = (uint8_t)(0x80 | (id->b[8] & 0x3f));
}

void
uuid_text(const struct ipc_id *id, char out[UUID_TEXT_LEN + 1])
{
	char *o = out;

	for (size_t i = 0; i < sizeof(id->b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*o++ = '-';
		*o++ = hex_char(id->b[i] >> 4);
		*o++ = hex_char(id->b[i]);
	}
	*o = '\0';
}

int
uuid_parse(const char *s, size_t n, struct ipc_id *id)
{
	struct ipc_id r;
	size_t at = 0;
	int hi, lo;

	if (n != UUID_TEXT_LEN)
		return -1;
	for (size_t i = 0; i < sizeof(r.b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			if (s[at++] != '-')
				return -1;
		hi = hex_digit(s[at++]);
		lo = hex_digit(s[at++]);
		if (hi < 0 || lo < 0)
			return -1;
		r.b[i] = (uint8_t)(hi << 4 | lo);
	}
	*id = r;
	return 0;
}

void
hex_encode(const void *p, size_t n, char *out)
{
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = hex_char(in[i] >> 4);
		out[2 * i + 1] = hex_char(in[i]);
	}
	out[2 * n] = '\0';
}

int
hex_decode(const char *s, size_t n, void *out)
{
	uint8_t *o = out;

	if (n % 2 != 0)
		return -1;
	/* All digits are checked first, so that a failure leaves the output
	 * untouched. */
	for (size_t i = 0; i < n; i++)
		if (hex_digit(s[i]) < 0 || (s[i] >= 'A' && s[i] <= 'F'))
			return -1;
	for (size_t i = 0; i < n / 2; i++)
		o[i] = (uint8_t)hex_number((const uint8_t *)s + 2 * i, 2);
	return 0;
}

size_t
b64url_encode(const void *p, size_t n, char *out)
{
	const uint8_t *in = p;
	uint32_t v;
	size_t o = 0;

	for (size_t i = 0; i < n; i += 3) {
		/* Three bytes become four digits; a tail of one or two bytes
		 * becomes two or three digits, its spare bits zero. */
		v = (uint32_t)in[i] << 16;
		if (i + 1 < n)
			v |= (uint32_t)in[i + 1] << 8;
		if (i + 2 < n)
			v |= in[i + 2];
		out[o++] = b64_alphabet[v >> 18];
		out[o++] = b64_alphabet[v >> 12 & 63];
		if (i + 1 < n)
			out[o++] = b64_alphabet[v >> 6 & 63];
		if (i + 2 < n)
			out[o++] = b64_alphabet[v & 63];
	}
	out[o] = '\0';
	return o;
}

static int
b64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '-')
		return 62;
	if (c == '_')
		return 63;
	return -1;
}

/*
 * Decodes four digits to three bytes. A single digit at the end is refused, and
 * spare bits must be zero. So a token has only one spelling, and no second
 * spelling can slip past a comparison or a cache of its text.
 */
long
b64url_decode(const char *s, size_t n, void *out)
{
	uint8_t *o = out;
	uint32_t acc = 0;
	unsigned bits = 0;
	size_t len = 0;
	int v;

	if (n % 4 == 1)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if ((v = b64_value(s[i])) < 0)
			return -1;
		acc = acc << 6 | (uint32_t)v;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			o[len++] = (uint8_t)(acc >> bits);
			acc &= (1u << bits) - 1;
		}
	}
	if (acc != 0)
		return -1;
	return (long)len;
}

uint64_t
now_us(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		abort();
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
now_boot_ms(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0)
		abort();
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/*
 * gmtime_r(3) is not used: at its first call glibc reads /etc/localtime, and a
 * confined process may not open that file. Days become a date by counting from
 * 1 March of year 0, so that the leap day comes last in its year; an era is 400
 * years.
 */
void
time_text(uint64_t unix_us, char out[TIME_TEXT_LEN + 1])
{
	uint64_t days, era, doe, yoe, doy, mp, secs;
	unsigned year, month, day;

	/* RFC 3339 can write no later time than 9999-12-31T23:59:59.999Z, so
	 * this time is written for every later time. */
	if (unix_us > UINT64_C(253402300799999999))
		unix_us = UINT64_C(253402300799999999);
	secs = unix_us / 1000000;
	days = secs / 86400 + 719468;
	era = days / 146097;
	doe = days % 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	day = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
	month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
	year = (unsigned)(yoe + era * 400 + (month <= 2 ? 1 : 0));
	snprintf(out, TIME_TEXT_LEN + 1, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
	    year % 10000, month % 100, day % 100, (unsigned)(secs / 3600 % 24),
	    (unsigned)(secs / 60 % 60), (unsigned)(secs % 60),
	    (unsigned)(unix_us / 1000 % 1000));
}

bool
ct_equal(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t diff = 0;

	for (size_t i = 0; i < n; i++)
		diff |= (uint8_t)(x[i] ^ y[i]);
	return diff == 0;
}
