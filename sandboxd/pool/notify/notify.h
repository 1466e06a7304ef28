/*
 * Notifications of seccomp(2): a system call that waits for an answer of ours
 * (seccomp_unotify(2)). For peek, which answers runners, and for mcpbox-run,
 * which answers its program.
 *
 * The caller is hostile: it may change its memory, its descriptors and its
 * threads while we look. So all that is read is a copy, and notify_valid is
 * asked after the last read: if the caller is still in its call, then process
 * and memory were the caller's all the time.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* Asks the kernel for the sizes of its structures. Call this first. 0, or -1
 * with err: the kernel has no notifications. */
int notify_start(struct err *);
/* Takes one notification; *out is valid until the next call. 1; 0: none
 * came, or the caller was killed; -1: the listener can't be read any more. */
int notify_take(int listener, const struct seccomp_notif **out);
/* Answers a call with an errno; 0: with success. */
void notify_answer(int listener, uint64_t id, int error);
/* Lets the kernel carry the call out, with arguments that it reads again. Only
 * for a caller that may make the call with any argument. */
void notify_continue(int listener, uint64_t id);
/* Tells whether the caller still waits in its call. */
bool notify_valid(int listener, uint64_t id);
/* Returns a pidfd of the thread, or of its process; the caller closes it. -1
 * with errno. */
int notify_process(uint32_t tid);
/* Returns a descriptor of the process as one of ours; -1 with errno. */
int notify_descriptor(int process, int fd);
/* Copies n bytes from the thread's memory. 0 or EFAULT. */
int notify_read(uint32_t tid, uint64_t at, void *out, size_t n);
/* Reads the number after this key in a file of proc; -1 if there is none. */
long notify_number(const char *path, const char *key, int base);

#endif
