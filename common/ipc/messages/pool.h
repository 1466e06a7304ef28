/*
 * Between sandboxd and sandboxd-spawn, sandboxd-store, pool-init and the
 * zygotes: the pool, its runners, the module store.
 */
#ifndef IPC_MESSAGES_POOL_H
#define IPC_MESSAGES_POOL_H

/* clang-format off */
#define IPC_MESSAGES_POOL(M) \
M(140, POOL_START, pool_start, REQ, SANDBOXD, SPAWN, OPEN, 0, "start a pool; a running one ends first") \
M(141, POOL_STARTED, pool_started, ANS, SPAWN, SANDBOXD, OPEN, 0, "the socket to its pool-init") \
M(142, STORE_PUT, store_put, REQ, SANDBOXD, STORE, OPEN, 0, "the next bytes of a tree for the module store (sandboxd/store/tree.h); answered by OK, STORED behind the last, or REFUSED") \
M(143, STORED, stored, ANS, STORE, SANDBOXD, OPEN, 0, "the tree is an entry of the store") \
M(144, STORE_DROP, store_drop, EVT, SANDBOXD, STORE, OPEN, 0, "what came of this tree so far is wanted no more") \
M(145, STORE_ASK, store_ask, REQ, ADMIND|SANDBOXD, SANDBOXD|STORE, OPEN, 0, "which of these entries are in this node's store?") \
M(146, STORE_SAYS, store_says, ANS, SANDBOXD|STORE, ADMIND|SANDBOXD, OPEN, 0, "those that are") \
M(147, MODULE_STORED, module_stored, PART, SANDBOXD, ADMIND, OPEN, 0, "of a run of kind MODULE, before its result: what the store took") \
M(150, FORK, fork, EVT, SANDBOXD|POOL, POOL|ZYGOTE, OPEN, 0, "fork a runner for this slot") \
M(151, FORKED, forked, EVT, ZYGOTE, POOL, OPEN, 0, "the runner's pidfd") \
M(152, FORK_FAILED, fork_failed, EVT, ZYGOTE|POOL, POOL|SANDBOXD, OPEN, 0, "no runner: step and errno") \
M(153, KILL, kill, EVT, SANDBOXD, POOL, OPEN, 0, "SIGKILL the runner of this slot and generation") \
M(154, EXITED, exited, EVT, POOL, SANDBOXD, OPEN, 0, "the runner was reaped") \
M(155, POOL_REPORT, pool_report, EVT, POOL|ZYGOTE|PEEK, SANDBOXD|POOL, OPEN, 0, "a zygote, or peek, is ready: which layers hold in the pool") \
M(156, RECYCLE, recycle, EVT, SANDBOXD, POOL, OPEN, 0, "start another zygote; once it reported it gets the FORKs and the old one ends") \
M(157, LEAF, leaf, EVT, POOL, ZYGOTE, OPEN, 0, "the cgroup of a slot, once: FORKs for it are born there") \
M(158, LIMIT, limit, EVT, SANDBOXD, POOL, OPEN, 0, "other limits than FORK's for the cgroup of this slot; before EXECUTE") \
M(159, LIMITED, limited, EVT, POOL, SANDBOXD, OPEN, 0, "they hold, or why not")

#define IPC_FIELDS_pool_start(F, S) F(S, u64, generation, "new for each pool")

#define IPC_FIELDS_pool_started(F, S) \
F(S, u64, generation, "as asked") \
F(S, u32, uids, "ids 1 to this are the runners', inside the pool") \
F(S, fd, channel, "socket whose other end pool-init holds")

#define IPC_FIELDS_store_put(F, S) \
F(S, id, execution, "of the installer that sends it: one tree each") \
F(S, u8, last, "1: the tree ends behind these bytes") \
F(S, bytes, data, "foreign: any bytes, cut anywhere")

#define IPC_FIELDS_stored(F, S) \
F(S, hash, digest, "the entry's name: computed by the store from what it wrote") \
F(S, u64, files, "files in it") \
F(S, u64, size, "bytes of them") \
F(S, u8, fresh, "1: it was not there before")

#define IPC_FIELDS_store_drop(F, S) F(S, id, execution, "as STORE_PUT said")

#define IPC_FIELDS_store_ask(F, S) F(S, bytes, digests, "32 bytes each, STORE_ASK_MAX at most")

#define IPC_FIELDS_store_says(F, S) F(S, bytes, there, "one byte a digest, in order: 1 it is, 0 it is not")

#define IPC_FIELDS_module_stored(F, S) \
F(S, id, execution, "the run") \
F(S, hash, digest, "as STORED said") \
F(S, u64, files, "likewise") \
F(S, u64, size, "likewise")

#define IPC_FIELDS_fork(F, S) \
F(S, u32, slot, "0 to slots-1") \
F(S, u64, generation, "of this use of the slot") \
F(S, u32, uid, "uid and gid inside the pool's user namespace") \
F(S, u8, kind, "enum runner_kind: which root and which filter") \
F(S, u8, network, "1: hosts are granted: connect(2) raises a notification, and the listener goes to peek under `generation`") \
F(S, u64, tmp_bytes, "of /tmp") \
F(S, u32, tmp_inodes, "of /tmp") \
F(S, u64, memory_bytes, "of the slot's cgroup, where there is one: of all the processes together") \
F(S, u32, processes, "of the slot's cgroup: processes and threads") \
F(S, u32, cpu_percent, "of the slot's cgroup: share of one processor") \
F(S, bytes, modules, "digests of module trees to mount, 32 bytes each, sorted") \
F(S, fd, channel, "the runner's end of its channel")

#define IPC_FIELDS_forked(F, S) \
F(S, u32, slot, "as asked") \
F(S, u64, generation, "as asked") \
F(S, fd, pidfd, "of the runner")

#define IPC_FIELDS_fork_failed(F, S) \
F(S, u32, slot, "as asked") \
F(S, u64, generation, "as asked") \
F(S, u32, error, "errno") \
F(S, str, step, "what failed")

#define IPC_FIELDS_kill(F, S) \
F(S, u32, slot, "slot") \
F(S, u64, generation, "of this use of the slot; another one is ignored")

#define IPC_FIELDS_exited(F, S) \
F(S, u32, slot, "slot") \
F(S, u64, generation, "of this use of the slot") \
F(S, u32, status, "wait status, as waitid gave it: code << 16 | status") \
F(S, u64, cpu_us, "user and system time, of the whole cgroup where there is one") \
F(S, u64, peak_kib, "largest resident set of one process") \
F(S, u64, memory_peak, "bytes the cgroup held at most; 0: not known") \
F(S, u32, oom_kills, "processes the kernel killed because the cgroup's memory was used up")

#define IPC_FIELDS_pool_report(F, S) \
F(S, str, interpreter, "cache tag and version of its Python: compiled code is good for this one only") \
F(S, str, layers, "name=enforced|degraded|missing lines")

#define IPC_FIELDS_recycle(F, S)

#define IPC_FIELDS_leaf(F, S) \
F(S, u32, slot, "slot") \
F(S, fd, directory, "the cgroup's directory")

#define IPC_FIELDS_limit(F, S) \
F(S, u32, slot, "slot") \
F(S, u64, generation, "of this use of the slot; another one is ignored") \
F(S, u64, memory_bytes, "of all the processes together") \
F(S, u32, processes, "processes and threads") \
F(S, u32, cpu_percent, "share of one processor")

#define IPC_FIELDS_limited(F, S) \
F(S, u32, slot, "as asked") \
F(S, u64, generation, "as asked") \
F(S, u32, error, "0, or errno: the runner must not get its call")
/* clang-format on */

#endif
