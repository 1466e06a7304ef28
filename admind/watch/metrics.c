/*
 * /metrics: counters of this process and gauges, in Prometheus' text format
 * (prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4).
 *
 * METRICS_GET comes from admind-http, which has checked a login or the metrics
 * token. admind does not check them again, but the text names no principal, no
 * tool and no argument. So an admind-http that was taken over learns only the
 * amount of activity, without any login.
 */
#include <string.h>

#include "activity.h"
#include "ids.h"
#include "log.h"
#include "op.h"
#include "outcome.h"

/* Bounds of the histogram, in seconds; +Inf follows the last. */
static const struct {
	const char *text;
	uint64_t us;
} bounds[METRICS_BUCKETS] = {{"0.005", 5000}, {"0.01", 10000}, {"0.025", 25000},
    {"0.05", 50000}, {"0.1", 100000}, {"0.25", 250000}, {"0.5", 500000},
    {"1", 1000000}, {"2.5", 2500000}, {"5", 5000000}, {"10", 10000000},
    {"30", 30000000}, {"60", 60000000}};

/* Returns one row. Counting open rows is cheap: they have a small index. */
static const struct db_stmt gauges = {"metrics_gauges",
    "SELECT (SELECT count(*) FROM mcpbox.executions WHERE state = 'open'),"
    " (SELECT count(*) FROM mcpbox.approval_requests WHERE state = 'pending'),"
    " (SELECT count(*) FROM mcpbox.servers WHERE deleted_at IS NULL),"
    " (SELECT count(*) FROM mcpbox.tools WHERE deleted_at IS NULL),"
    " (SELECT count(DISTINCT version_id) FROM mcpbox.callable),"
    " (SELECT seq FROM mcpbox.audit_head),"
    " (SELECT coalesce(max(seq), 0) FROM mcpbox.audit_anchors),"
    " (SELECT count(*) FROM mcpbox.tasks"
    " WHERE state IN ('working', 'input_required'))",
    DB_FAST};
static const struct {
	const char *name, *help;
} gauge_names[] = {
    {"mcpbox_executions_open", "Calls that have begun and not ended."},
    {"mcpbox_approvals_pending", "Requests that wait for a person."},
    {"mcpbox_servers", "Servers."},
    {"mcpbox_tools", "Tools, prompts and resources."},
    {"mcpbox_versions_callable", "Versions that may be called now."},
    {"mcpbox_audit_seq", "Rows of the audit log."},
    {"mcpbox_audit_anchored_seq", "Newest row of it that the vault signed."},
    {"mcpbox_tasks_active", "Tasks that work or wait for their client."},
};
enum { NGAUGES = sizeof(gauge_names) / sizeof(gauge_names[0]) };

void
metrics_ended(struct admind *a, enum outcome outcome, enum failure failure,
    uint64_t started_us, uint64_t ended_us, uint64_t cpu_us)
{
	struct metrics *m = a->metrics;
	uint64_t took;
	int i;

	if (m == NULL || outcome < OUTCOME_DONE || outcome > OUTCOME_LOST ||
	    failure >= FAILURE_COUNT)
		return;
	m->outcome[outcome]++;
	if (failure != FAILURE_NONE)
		m->failure[failure]++;
	m->cpu_us += cpu_us;
	if (started_us == 0 || ended_us < started_us)
		return;
	took = ended_us - started_us;
	m->duration_us += took;
	for (i = 0; i < METRICS_BUCKETS && took > bounds[i].us; i++)
		;
	m->bucket[i]++;
}

void
metrics_network(
    struct admind *a, uint32_t connections, uint32_t refused, uint64_t bytes)
{
	struct metrics *m = a->metrics;

	if (m == NULL)
		return;
	m->connections += connections;
	m->net_refused += refused;
	m->net_bytes += bytes;
}

static void
head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_putf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
number(struct buf *b, const char *type, const char *name, const char *help,
    uint64_t n)
{
	head(b, name, type, help);
	buf_putf(b, "%s %llu\n", name, (unsigned long long)n);
}

/* Writes only failures that have happened: the rest would be some hundred lines
 * of zeros. */
static void
by_failure(struct buf *b, const char *name, const char *help,
    const uint64_t count[FAILURE_COUNT])
{
	head(b, name, "counter", help);
	for (int i = 1; i < FAILURE_COUNT; i++)
		if (count[i] > 0)
			buf_putf(b, "%s{failure_mode=\"%s\"} %llu\n", name,
			    failure_info((enum failure)i)->name,
			    (unsigned long long)count[i]);
}

static void
durations(struct buf *b, const struct metrics *m)
{
	static const char name[] = "mcpbox_call_duration_seconds";
	uint64_t n = 0;

	head(b, name, "histogram", "From RUN to the end, of calls that ran.");
	for (int i = 0; i < METRICS_BUCKETS; i++) {
		n += m->bucket[i];
		buf_putf(b, "%s_bucket{le=\"%s\"} %llu\n", name, bounds[i].text,
		    (unsigned long long)n);
	}
	n += m->bucket[METRICS_BUCKETS];
	buf_putf(
	    b, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)n);
	buf_putf(b, "%s_sum %.6f\n%s_count %llu\n", name,
	    (double)m->duration_us / 1e6, name, (unsigned long long)n);
}

static void
processes(struct buf *b, const struct admind *a)
{
	static const char name[] = "mcpbox_process_up";
	const struct {
		const char *process;
		bool up;
	} p[] = {{"admind-check", ipc_client_peer(a->check) != NULL},
	    {"admind-vault", ipc_client_peer(a->vault) != NULL},
	    {"sandboxd", ipc_client_peer(a->sandboxd) != NULL},
	    {"postgresql", db_is_up(a->db)}};

	head(b, name, "gauge", "1: admind reaches it.");
	for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++)
		buf_putf(
		    b, "%s{process=\"%s\"} %d\n", name, p[i].process, p[i].up);
}

static void
put_all(struct buf *b, struct admind *a, const struct pg_result *rows)
{
	const struct metrics *m = a->metrics;

	head(b, "mcpbox_build_info", "gauge", "Of this node's admind.");
	buf_putf(b, "mcpbox_build_info{version=\"%s\"} 1\n", MCPBOX_VERSION);
	number(b, "gauge", "mcpbox_start_time_seconds",
	    "Unix time at which admind began, and with it every counter.",
	    a->started_us / 1000000);
	head(b, "mcpbox_calls_total", "counter",
	    "Executions that ended on this node.");
	for (int i = OUTCOME_DONE; i <= OUTCOME_LOST; i++)
		buf_putf(b, "mcpbox_calls_total{outcome=\"%s\"} %llu\n",
		    outcome_name((enum outcome)i),
		    (unsigned long long)m->outcome[i]);
	by_failure(b, "mcpbox_call_failures_total",
	    "Of them, those that were not done, by reason.", m->failure);
	by_failure(b, "mcpbox_calls_refused_total",
	    "Calls that became no execution, by reason.", m->refused);
	durations(b, m);
	head(b, "mcpbox_call_cpu_seconds_total", "counter",
	    "Processor time of runners.");
	buf_putf(
	    b, "mcpbox_call_cpu_seconds_total %.6f\n", (double)m->cpu_us / 1e6);
	number(b, "counter", "mcpbox_call_connections_total",
	    "Network connections that calls made.", m->connections);
	number(b, "counter", "mcpbox_call_connections_refused_total",
	    "Network connections that were refused to calls by policy.",
	    m->net_refused);
	number(b, "counter", "mcpbox_call_network_bytes_total",
	    "Bytes of connections of calls, both directions.", m->net_bytes);
	head(b, "mcpbox_arguments_valid_total", "counter",
	    "Arguments of calls that were found valid, or known to be.");
	buf_putf(b,
	    "mcpbox_arguments_valid_total{by=\"check\"} %llu\n"
	    "mcpbox_arguments_valid_total{by=\"memory\"} %llu\n",
	    (unsigned long long)m->judged, (unsigned long long)m->remembered);
	number(b, "counter", "mcpbox_auth_failures_total",
	    "Credentials that were missing or wrong.", m->auth_failed);
	number(b, "counter", "mcpbox_activity_dropped_total",
	    "Entries of the activity log that were too many.",
	    m->activity_dropped);
	number(b, "counter", "mcpbox_activity_lines_dropped_total",
	    "Lines that a listener to the live tail did not get.",
	    m->lines_dropped);
	number(b, "gauge", "mcpbox_jobs", "Calls admind works on.", a->njobs);
	number(b, "gauge", "mcpbox_sandbox_executions",
	    "Executions the sandbox answers for.", a->live.count);
	number(b, "gauge", "mcpbox_endings_waiting",
	    "Endings that wait for the database.", a->ncloses);
	number(b, "gauge", "mcpbox_records_backlog",
	    "Records not yet counted and searchable, about.",
	    a->upkeep.backlog);
	number(b, "gauge", "mcpbox_activity_listeners",
	    "Who listens to the live tail.", follow_count(a));
	processes(b, a);
	for (int i = 0; rows != NULL && i < NGAUGES; i++)
		number(b, "gauge", gauge_names[i].name, gauge_names[i].help,
		    (uint64_t)db_int(rows, 0, i));
}

static void
answer(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_metrics m;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	put_all(&b, op->a, err == NULL && db_nrows(rows) == 1 ? rows : NULL);
	m.text = ipc_bytes(b.p, b.len);
	if (b.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		op_answer(op, IPC_METRICS, &m);
	buf_free(&b);
}

int
metrics_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_metrics_get m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	/* If the database is away, only the gauges of this statement are
	 * missing. */
	if ((op = op_new(l, m.request)) != NULL)
		db_query(l->a->db, &gauges, NULL, answer, op);
	return 0;
}
