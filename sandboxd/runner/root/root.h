/*
 * The file trees that runners see, and the mounts that a runner adds to its
 * own.
 */
#ifndef ROOT_H
#define ROOT_H

#include "runner.h"

/* Builds the root that all runners share (template.c), once, in the zygote.
 * modules: path of the module store, commands: the list for toolbox.c. */
int template_build(
    struct zygote *, const char *modules, const char *commands, struct err *);
/* Paths of the device nodes of a root; ends with NULL. */
extern const char *const template_devices[];
/* Builds the root's /etc, under RUNNER_BASE (etc.c). 0, or -1 with errno and
 * steps_path. */
int etc_build(void);
int etc_names(struct runner *); /* a step: makes names resolve if hosts are
				 * granted */

/* certs.c: copies the host's certificate authorities into the root's /etc. 0,
 * or -1 with errno and steps_path. */
#define CERTS_DIR "/etc/ssl/certs"
int certs_build(void);

/* toolbox.c: the root of commands. A toolbox_file may be executed in that root:
 * it is one of the configured programs, or a dynamic loader. */
struct toolbox_file {
	char *path;
	uint8_t digest[32]; /* SHA-256 of its bytes in the toolbox */
	bool loader;
};
/* Builds the toolbox at TOOLBOX_BASE, in the zygote's mount namespace.
 * commands: paths on the host, separated by commas or blanks. */
int toolbox_build(struct zygote *, const char *commands, struct err *);
/* Finds a program by name; NULL if it is not on the list. */
const struct toolbox_file *toolbox_find(
    const struct zygote *, struct ipc_bytes name);
/* Returns the i-th file; NULL after the last. */
const struct toolbox_file *toolbox_file(const struct zygote *, size_t i);
int toolbox_mounts(struct runner *); /* a step */

/* modules.c: granted modules. */
/* Opens the store in the zygote, before the zygote's own mounts cover it. */
void modules_store(struct zygote *, const char *path);
/* Makes the directories for modules in the root. 0, or -1 with errno. */
int modules_places(void);
/* The zygote calls modules_open before each fork and modules_close after it.
 * The child calls modules_mount: 0, or -1 with errno and steps_path. */
void modules_open(const struct zygote *, const struct ipc_fork *);
void modules_close(const struct ipc_fork *);
int modules_mount(struct runner *);
size_t modules_count(const struct ipc_fork *);

/* mounts.c: steps. 0, or -1 with errno. */
int mounts_proc(struct runner *);
int mounts_tmp(struct runner *);
int mounts_pivot(struct runner *);
int mounts_hostname(struct runner *);
int mounts_cwd(struct runner *);
/* Adds flags by mount_setattr(2), which keeps flags that the host's
 * administrator locked. recursive: the whole tree at path. */
int mounts_restrict(const char *path, uint64_t attrs, bool recursive);

#endif
