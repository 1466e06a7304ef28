/* See times.h. */
#include <sys/resource.h>

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "times.h"

uint64_t
times_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void
times_add(struct times *t, uint64_t begin)
{
	uint64_t passed = (times_now() - begin) / 100;
	size_t size;
	void *p;

	if (t->n == t->size) {
		size = t->size == 0 ? 4096 : 2 * t->size;
		p = reallocarray(t->us10, size, sizeof(*t->us10));
		if (p == NULL)
			err(1, "times");
		t->us10 = p;
		t->size = size;
	}
	t->us10[t->n++] = passed > UINT32_MAX ? UINT32_MAX : (uint32_t)passed;
}

static int
compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double
at(const struct times *t, double part)
{
	size_t i = (size_t)((double)t->n * part);

	if (t->n == 0)
		return 0;
	return t->us10[i < t->n ? i : t->n - 1] / 10.0;
}

static double
cpu_us(int who)
{
	struct rusage r;

	if (getrusage(who, &r) == -1)
		err(1, "getrusage");
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
	    (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

void
times_print(struct times *t, double seconds)
{
	const double n = t->n == 0 ? 1 : (double)t->n;

	if (t->n != 0)
		qsort(t->us10, t->n, sizeof(*t->us10), compare);
	(void)printf("\"n\": %zu, \"seconds\": %.6f, \"rate\": %.2f, "
		     "\"cpu_us\": %.2f, \"p50\": %.1f, \"p90\": %.1f, "
		     "\"p99\": %.1f, \"max\": %.1f",
	    t->n, seconds, seconds > 0 ? (double)t->n / seconds : 0,
	    (cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN)) / n, at(t, 0.5),
	    at(t, 0.9), at(t, 0.99), at(t, 1));
}

unsigned long
times_number(const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || n < min || n > max)
		errx(2, "%s: not a number from %lu to %lu", text, min, max);
	return n;
}
