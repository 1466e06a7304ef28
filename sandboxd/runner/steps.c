/*
 * The confinement, one named step after the other.
 *
 * The order is the design (docs/ARCHITECTURE.md, "The runner"); another one
 * fails or is weaker. Mounts come first because they need capabilities;
 * limits before the ids change, since a call's uid may not raise them again;
 * bounding set and securebits need the capabilities that the id change takes
 * away; Landlock and seccomp need no_new_privs; seccomp is last because
 * everything before it uses calls that it refuses.
 *
 * The header stands between the two lists: what lies above it is done before
 * the runner knows anything about its call, so that it can wait ready.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "filter.h"
#include "ipc_io.h"
#include "runner.h"

struct step {
	const char *name;
	int (*run)(struct runner *);
};

static char failed_path[RUNNER_PATH_MAX];

void
steps_path(const char *path)
{
	(void)snprintf(failed_path, sizeof(failed_path), "%s", path);
}

const char *
steps_failed_path(void)
{
	return failed_path;
}

/* A session of its own: no terminal could ever be taken over. */
static int
step_setsid(struct runner *r)
{
	(void)r;
	return setsid() == (pid_t)-1 ? -1 : 0;
}

/* Everything behind the descriptors that were made here on purpose. */
static int
step_close_range(struct runner *r)
{
	return (int)syscall(
	    SYS_close_range, (unsigned)r->first_free_fd, ~0U, 0);
}

static int
step_seccomp(struct runner *r)
{
	return filter_load(r->zygote->filter);
}

static const struct step prepare[] = {
    {"reseed", reseed_child},
    {"oom_score", limits_oom}, /* while the pool's proc is there */
    {"setsid", step_setsid},
    {"hostname", mounts_hostname},
    {"proc", mounts_proc},
    {"tmp", mounts_tmp},
    {"etc", mounts_etc},
    {"pivot_root", mounts_pivot},
    {NULL, NULL},
};

static const struct step finish[] = {
    {"etc_files", mounts_etc_files},
    {"cwd", mounts_cwd}, /* while /tmp is still root's to enter */
    {"tmp_limits", mounts_tmp_limits},
    {"rlimits", limits_set},
    {"close_range", step_close_range},
    {"bounding_set", privileges_bounding},
    {"securebits", privileges_securebits},
    {"ids", privileges_ids},
    {"capabilities", privileges_drop},
    {"dumpable", privileges_dumpable},
    {"no_new_privs", privileges_no_new},
    {"landlock", fsrules_apply},
    {"seccomp", step_seccomp},
    {NULL, NULL},
};

static int
run(const struct step *s, struct runner *r)
{
	struct ipc_confine_failed m = {0};

	for (; s->name != NULL; s++) {
		steps_path("");
		errno = 0;
		if (s->run(r) == 0)
			continue;
		m.error = (uint32_t)errno;
		m.step = ipc_str(s->name);
		m.path = ipc_str(failed_path);
		(void)ipc_write(
		    RUNNER_CHANNEL_FD, IPC_CONFINE_FAILED, 0, &m, NULL);
		return -1;
	}
	return 0;
}

int
steps_prepare(struct runner *r)
{
	return run(prepare, r);
}

int
steps_finish(struct runner *r)
{
	return run(finish, r);
}
