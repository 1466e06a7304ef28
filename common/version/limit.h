/*
 * The limits of one call, in one table: name, unit, bounds, and the tags under
 * which a value travels.
 *
 * A limit's value is the version's (reviewed with it and part of its hash),
 * else its server's (set by an administrator), else the configured default of
 * the process that enforces it. Each of these values is within the bounds of
 * this table: the management tools' schemas, the table server_limits, REST,
 * mcpboxctl, the vault and sandboxd all judge by this table.
 */
#ifndef LIMIT_H
#define LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * LIMITS(FIRST, L): FIRST takes the first row, L the others, so that a list
 * with separators can be made. A list without separators gives one macro twice.
 * Row(SYMBOL, name, unit, min, max, context tag, version tag, reason)
 *   min, max     literals in base units; min is never 0: 0 means "not set"
 *   context tag  enum context_tag, 0: admind alone enforces it
 *   version tag  enum version_tag
 *   reason       of the bounds
 */
#define LIMITS(FIRST, L)                                                       \
	FIRST(TIMEOUT_MS, "timeout_ms", "ms", 100, 600000, 8, 24,              \
	    "Wall clock. Ten minutes: who waits longer should run a task.")    \
	L(MEMORY_BYTES, "memory_bytes", "bytes", 33554432, 17179869184, 9, 25, \
	    "Memory. An interpreter and a few imports need 32 MiB.")           \
	L(PROCESSES, "processes", "processes and threads", 1, 1024, 10, 26,    \
	    "Processes and threads. 1024 is pids.max of a whole small "        \
	    "service.")                                                        \
	L(TMP_BYTES, "tmp_bytes", "bytes", 65536, 17179869184, 11, 27,         \
	    "/tmp. It is memory, so it is bounded as memory is.")              \
	L(RESULT_BYTES, "result_bytes", "bytes", 1024, 1048576, 12, 28,        \
	    "The result. A model can use far less; an error must fit.")        \
	L(CPU_MS, "cpu_ms", "ms", 100, 3600000, 16, 29,                        \
	    "CPU time of all threads. Six cores for the longest wall clock.")  \
	L(FILES, "files", "descriptors", 16, 4096, 17, 30,                     \
	    "Open descriptors of a process. The runner itself needs a few.")   \
	L(FILE_BYTES, "file_bytes", "bytes", 4096, 17179869184, 18, 31,        \
	    "The longest file it may write; a page at least.")                 \
	L(STDOUT_BYTES, "stdout_bytes", "bytes", 1024, 65536, 19, 32,          \
	    "Standard output kept and shown. More helps no reader.")           \
	L(ARGUMENT_BYTES, "argument_bytes", "bytes", 64, 1048576, 0, 33,       \
	    "The arguments as JSON text. A frame's blob holds no more.")       \
	L(LOG_RATE, "log_rate", "lines a second", 1, 1000, 20, 34,             \
	    "Log lines. Each is a notification to the client.")                \
	L(PROGRESS_RATE, "progress_rate", "reports a second", 1, 100, 21, 35,  \
	    "Progress reports. Nobody sees more than a few a second.")         \
	L(CONNECTIONS, "connections", "connections", 1, 65536, 36, 44,         \
	    "Connections of a call, refused ones too. 64 for each of the "     \
	    "processes it may have.")                                          \
	L(NETWORK_BYTES, "network_bytes", "bytes", 1024, 1099511627776, 37,    \
	    45,                                                                \
	    "Bytes of all connections, both directions. An HTTP head must "    \
	    "fit; a terabyte is hours of a fast line.")                        \
	L(NETWORK_RATE, "network_rate", "bytes a minute", 1024, 1099511627776, \
	    38, 46,                                                            \
	    "The same in any minute, so that no call takes the line of all.")

/* Limits that a version can't set: too long code never becomes a version. */
#define LIMITS_SERVER(L)                                         \
	L(CODE_BYTES, "code_bytes", "bytes", 1000, 100000, 0, 0, \
	    "Source or spec of a tool. What a person can still review.")

enum limit {
#define L(SYMBOL, name, unit, min, max, context, version, reason) \
	LIMIT_##SYMBOL,
	LIMITS(L, L) LIMITS_SERVER(L)
#undef L
	    LIMIT_COUNT
};

struct limit_info {
	const char *name, *unit;
	uint64_t min, max;
	unsigned context, version; /* tags, or 0 */
	const char *reason;
};

const struct limit_info *limit_info(enum limit);
/* Finds a limit by name (n bytes); -1 if there is none. */
int limit_find(const void *name, size_t n);
/* Finds a limit by enum context_tag; -1 if the tag is not a limit's. */
int limit_of_context(unsigned tag);
/* Checks that the value is within bounds. 0, or -1 with FAILURE_LIMIT and a
 * sentence that names the limit, the value and the bounds. */
int limit_check(enum limit, uint64_t value, struct err *);

#endif
