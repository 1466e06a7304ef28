/*
 * The file trees that runners see, and the mounts that make one a runner's own.
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
int etc_names(struct runner *); /* a step: names resolve, where hosts are
				 * granted */

/* certs.c: the host's certificate authorities, in that /etc. Likewise. */
#define CERTS_DIR "/etc/ssl/certs"
int certs_build(void);

/* toolbox.c: the root of commands. A file that may be executed there: one of
 * the configured programs, or a dynamic loader. */
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
/* In the zygote: open the store (before its own mounts cover it), and make the
 * places in the root. */
void modules_store(struct zygote *, const char *path);
int modules_places(void);
/* Open and close the modules around each fork; modules_mount is the step
 * between them in the child. */
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
/* Adds flags by mount_setattr(2): never drops a flag that the host's
 * administrator locked. recursive: the whole tree at path. */
int mounts_restrict(const char *path, uint64_t attrs, bool recursive);

#endif
