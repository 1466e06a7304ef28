/*
 * Counts and durations of ended calls, as metrics. See otlp.h.
 *
 * A collector keeps each combination of attributes for ever, so their number
 * has a bound: the first tools that are called have a name, the others are
 * together.
 */
#include <stdio.h>
#include <string.h>

#include "otlp.h"

enum { CUMULATIVE = 2 }; /* AggregationTemporality */

/* Series that are kept free for ends without a name of their own: of tools, and
 * of failures, too (3 methods, with and without a failure). */
enum { FREE_TOOLS = 64, FREE_FAILURES = 8 };

static const char other[] = "other", other_failure[] = "_OTHER";

/* The buckets that the conventions for MCP ask for, in seconds. */
static const struct {
	const char *text;
	uint64_t us;
} bounds[OTLP_BUCKETS - 1] = {{"0.01", 10000}, {"0.02", 20000}, {"0.05", 50000},
    {"0.1", 100000}, {"0.2", 200000}, {"0.5", 500000}, {"1", 1000000},
    {"2", 2000000}, {"5", 5000000}, {"10", 10000000}, {"30", 30000000},
    {"60", 60000000}, {"120", 120000000}, {"300", 300000000}};

static void
copy(char out[OTLP_NAME_MAX + 1], struct ipc_bytes b)
{
	size_t n = b.n <= OTLP_NAME_MAX ? b.n : OTLP_NAME_MAX;

	if (n > 0)
		memcpy(out, b.p, n);
	out[n] = '\0';
}

/* Finds the series, or adds it. NULL: there are `max` already. */
static struct otlp_series *
find(struct otlp_counts *t, enum otlp_method method, const char *tool,
    const char *failure, unsigned max)
{
	struct otlp_series *s;

	for (unsigned i = 0; i < t->n; i++) {
		s = &t->series[i];
		if (s->method == method && strcmp(s->tool, tool) == 0 &&
		    strcmp(s->failure, failure) == 0)
			return s;
	}
	if (t->n >= max)
		return NULL;
	s = &t->series[t->n++];
	memset(s, 0, sizeof(*s));
	s->method = method;
	memcpy(s->tool, tool, strlen(tool) + 1);
	memcpy(s->failure, failure, strlen(failure) + 1);
	return s;
}

/* Tells whether the tool has a name of its own. Gives it one if there is room.
 */
static bool
named(struct otlp_counts *t, const char *tool)
{
	for (unsigned i = 0; i < t->ntools; i++)
		if (strcmp(t->tool[i], tool) == 0)
			return true;
	if (t->ntools == OTLP_TOOLS_MAX)
		return false;
	memcpy(t->tool[t->ntools++], tool, strlen(tool) + 1);
	return true;
}

void
otlp_count(struct otlp_counts *t, const struct otlp_call *c)
{
	char tool[OTLP_NAME_MAX + 1], failure[OTLP_NAME_MAX + 1];
	struct otlp_series *s;
	uint64_t took;
	int i;

	copy(tool, c->method == OTLP_RESOURCE ? ipc_str("") : c->tool);
	copy(failure, c->failure);
	if (!named(t, tool))
		memcpy(tool, other, sizeof(other));
	s = find(t, c->method, tool, failure, OTLP_SERIES_MAX - FREE_TOOLS);
	if (s == NULL)
		s = find(t, c->method, other, failure,
		    OTLP_SERIES_MAX - FREE_FAILURES);
	if (s == NULL)
		s = find(t, c->method, other,
		    *failure != '\0' ? other_failure : "", OTLP_SERIES_MAX);
	if (s == NULL)
		return; /* there are not so many methods */
	took = c->end_us > c->begin_us ? c->end_us - c->begin_us : 0;
	for (i = 0; i < OTLP_BUCKETS - 1 && took > bounds[i].us; i++)
		;
	s->bucket[i]++;
	s->count++;
	s->sum_us += took;
}

static void
head(struct jsonw *w, const char *name, const char *unit, const char *help,
    const char *kind)
{
	jsonw_obj(w);
	jsonw_kv_str(w, "name", name);
	jsonw_kv_str(w, "unit", unit);
	jsonw_kv_str(w, "description", help);
	jsonw_name(w, kind);
	jsonw_obj(w);
}

static void
points(struct jsonw *w)
{
	jsonw_name(w, "dataPoints");
	jsonw_arr(w);
}

static void
tail(struct jsonw *w)
{
	jsonw_arr_end(w);
	jsonw_obj_end(w);
	jsonw_obj_end(w);
}

static void
histogram(struct jsonw *w, const struct otlp_series *s, uint64_t start_us,
    uint64_t now_us)
{
	char text[48];
	int n;

	jsonw_obj(w);
	jsonw_name(w, "attributes");
	jsonw_arr(w);
	otlp_call_attrs(w, s->method, ipc_str(s->tool), ipc_str(s->failure));
	jsonw_arr_end(w);
	otlp_time(w, "startTimeUnixNano", start_us);
	otlp_time(w, "timeUnixNano", now_us);
	otlp_u64(w, "count", s->count);
	n = snprintf(text, sizeof(text), "%llu.%06llu",
	    (unsigned long long)(s->sum_us / 1000000),
	    (unsigned long long)(s->sum_us % 1000000));
	jsonw_kv_raw(w, "sum", text, (size_t)n);
	jsonw_name(w, "bucketCounts");
	jsonw_arr(w);
	for (int i = 0; i < OTLP_BUCKETS; i++) {
		snprintf(text, sizeof(text), "%llu",
		    (unsigned long long)s->bucket[i]);
		jsonw_str(w, text);
	}
	jsonw_arr_end(w);
	jsonw_name(w, "explicitBounds");
	jsonw_arr(w);
	for (int i = 0; i < OTLP_BUCKETS - 1; i++)
		jsonw_raw(w, bounds[i].text, strlen(bounds[i].text));
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

void
otlp_durations(struct jsonw *w, const struct otlp_counts *t, uint64_t now_us)
{
	if (t->n == 0)
		return; /* a metric without a point is malformed for some */
	head(w, "mcp.server.operation.duration", "s",
	    "From the request to its end, of ended calls.", "histogram");
	jsonw_kv_int(w, "aggregationTemporality", CUMULATIVE);
	points(w);
	for (unsigned i = 0; i < t->n; i++)
		histogram(w, &t->series[i], t->start_us, now_us);
	tail(w);
}

void
otlp_numbers(struct jsonw *w, const char *name, const char *unit,
    const char *help, bool sum, const struct otlp_number *list, unsigned n,
    uint64_t start_us, uint64_t now_us)
{
	if (n == 0)
		return;
	head(w, name, unit, help, sum ? "sum" : "gauge");
	if (sum) {
		jsonw_kv_int(w, "aggregationTemporality", CUMULATIVE);
		jsonw_kv_bool(w, "isMonotonic", true);
	}
	points(w);
	for (unsigned i = 0; i < n; i++) {
		jsonw_obj(w);
		jsonw_name(w, "attributes");
		jsonw_arr(w);
		if (list[i].failure != NULL)
			otlp_attr(w, "error.type", ipc_str(list[i].failure));
		jsonw_arr_end(w);
		if (sum)
			otlp_time(w, "startTimeUnixNano", start_us);
		otlp_time(w, "timeUnixNano", now_us);
		otlp_u64(w, "asInt", list[i].n);
		jsonw_obj_end(w);
	}
	tail(w);
}
