/* See settings.h. */
#include <unistd.h>

#include "log.h"
#include "settings.h"

/* Fills in the limits of a call whose version or server sets none. */
static void
default_limits(const struct conf *c, uint64_t limit[LIMIT_COUNT])
{
	static const struct {
		enum limit limit;
		const char *keyword;
	} rows[] = {
	    {LIMIT_MEMORY_BYTES, "memory"},
	    {LIMIT_PROCESSES, "processes"},
	    {LIMIT_TMP_BYTES, "tmp_size"},
	    {LIMIT_RESULT_BYTES, "result_size"},
	    {LIMIT_CPU_MS, "cpu_time"},
	    {LIMIT_FILES, "files"},
	    {LIMIT_FILE_BYTES, "file_size"},
	    {LIMIT_STDOUT_BYTES, "stdout_size"},
	    {LIMIT_LOG_RATE, "log_rate"},
	    {LIMIT_PROGRESS_RATE, "progress_rate"},
	    {LIMIT_CONNECTIONS, "connections"},
	    {LIMIT_NETWORK_BYTES, "network_bytes"},
	    {LIMIT_NETWORK_RATE, "network_rate"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		limit[rows[i].limit] = (uint64_t)conf_int(c, rows[i].keyword);
}

/* Returns the configured memory budget, or half of the machine's memory. The
 * budget counts where no cgroup limits the memory of a call as a whole. */
static uint64_t
memory_budget(const struct conf *c)
{
	uint64_t set = (uint64_t)conf_int(c, "memory_budget");
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	if (set != 0 || pages <= 0 || size <= 0)
		return set;
	return (uint64_t)pages * (uint64_t)size / 2;
}

static int
installer(const struct conf *c, struct depot_conf *d, struct err *e)
{
	d->timeout_ms = (uint64_t)conf_int(c, "module_time");
	return depot_configure(d, conf_str(c, "module_index"),
	    conf_str(c, "module_files_hosts"), conf_str(c, "module_advisories"),
	    (uint64_t)conf_int(c, "module_wheel_size"), e);
}

int
settings_check(const struct conf *c, struct err *e)
{
	struct depot_conf d = {0};
	int rc = installer(c, &d, e);

	buf_free(&d.spec);
	buf_free(&d.hosts);
	return rc;
}

const struct depot_conf *
settings_installer(const struct conf *c)
{
	static struct depot_conf d;
	struct err e;

	if (installer(c, &d, &e) != 0)
		log_fatal("config", "modules: %s", e.text);
	return &d;
}

void
settings_calls(const struct conf *c, struct calls_conf *out)
{
	*out = (struct calls_conf){
	    .queue = (unsigned)conf_int(c, "queue"),
	    .queue_wait_ms = (uint64_t)conf_int(c, "queue_wait"),
	    .cpu_percent = (uint32_t)conf_int(c, "cpu_percent"),
	    .memory_budget = memory_budget(c),
	    .waiting_min = (unsigned)conf_int(c, "pool_min"),
	    .waiting_max = (unsigned)conf_int(c, "pool_max"),
	    .waiting_memory = (uint64_t)conf_int(c, "pool_memory"),
	    .forks = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
	    .parked_max = (unsigned)conf_int(c, "parked_max"),
	    .ask_timeout_ms = (uint64_t)conf_int(c, "ask_timeout"),
	};
	default_limits(c, out->limit);
}
