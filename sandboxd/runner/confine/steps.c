/*
 * The confinement, one named step after the other.
 *
 * The order is the design: another order fails or is weaker. Mounts come first
 * because they need capabilities. Limits come before the id change, because a
 * call's uid may not raise them again. The bounding set and the securebits need
 * the capabilities that the id change takes away. Landlock and seccomp need
 * no_new_privs. seccomp is last because the steps before it use calls that
 * seccomp refuses.
 *
 * All steps are done before the runner knows anything about its call. So a
 * waiting runner holds no right that a call could want to have.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confinement.h"
#include "filter.h"
#include "interpreter.h"
#include "ipc_io.h"
#include "root.h"
#include "runner.h"
#include "steps_path.h"

struct step {
	const char *name;
	int (*run)(struct runner *);
};

/*
 * Makes the runner's own session. No process of the call can make another one,
 * because the filter refuses setsid(2). A session without a terminal has no
 * terminal that could be taken over. A kernel with autogroups gives each
 * session an equal share of the processors, however many processes it has
 * (sched(7)). So all processes and threads of a call have one share together.
 * When each process had a session of its own, 62 processes took 62 shares
 * (decision 0072).
 */
static int
step_setsid(struct runner *r)
{
	(void)r;
	return setsid() == (pid_t)-1 ? -1 : 0;
}

/* Closes all descriptors above those that a runner has on purpose
 * (runner.h). */
static int
step_close_range(struct runner *r)
{
	return (int)syscall(SYS_close_range,
	    r->fork->network != 0 ? RUNNER_DOOR_FD + 1 : RUNNER_FDS, ~0U, 0);
}

static int
step_seccomp(struct runner *r)
{
	if (r->fork->network != 0)
		return door_filter(r);
	return filter_load(r->fork->kind == RUNNER_COMMAND
		? r->zygote->command_filter
		: r->zygote->filter);
}

static const struct step steps[] = {
    {"oom_score", limits_oom}, /* while the pool's /proc is mounted */
    {"setsid", step_setsid},
    {"cgroup_namespace", fork_cgroup},
    {"hostname", mounts_hostname},
    {"names", etc_names},
    {"toolbox", toolbox_mounts},
    {"proc", mounts_proc},
    {"tmp", mounts_tmp},
    {"pivot_root", mounts_pivot},
    {"interpreter", python_child}, /* makes the last descriptors */
    {"close_range", step_close_range},
    {"rlimits", limits_fixed},
    {"bounding_set", privileges_bounding},
    {"securebits", privileges_securebits},
    {"ids", privileges_ids},
    {"capabilities", privileges_drop},
    {"cwd", mounts_cwd}, /* only the call's own uid may enter */
    {"dumpable", privileges_dumpable},
    {"no_new_privs", privileges_no_new},
    {"landlock", fsrules_apply},
    {"seccomp", step_seccomp},
    {NULL, NULL},
};

int
steps_run(struct runner *r)
{
	struct ipc_confine_failed m = {0};
	const struct step *s;

	for (s = steps; s->name != NULL; s++) {
		steps_path("");
		errno = 0;
		if (s->run(r) == 0)
			continue;
		m.error = (uint32_t)errno;
		m.step = ipc_str(s->name);
		m.path = ipc_str(steps_failed_path());
		(void)ipc_write(
		    RUNNER_CHANNEL_FD, IPC_CONFINE_FAILED, 0, &m, NULL);
		return -1;
	}
	return 0;
}

void
steps_layers(
    struct buf *out, int landlock_abi, const char *failed, const char *why)
{
	const struct step *s;
	const char *state = "enforced";

	if (failed != NULL && strcmp(failed, "namespaces") == 0) {
		buf_putf(out, "runner-namespaces=missing %s\n", why);
		state = NULL;
	} else
		/* The root that all runners share was built earlier, so the
		 * mounts are enforced. */
		buf_puts(out,
		    "runner-namespaces=enforced\nrunner-mounts=enforced\n");
	for (s = steps; s->name != NULL; s++)
		if (state == NULL)
			buf_putf(
			    out, "runner-%s=missing not reached\n", s->name);
		else if (failed != NULL && strcmp(failed, s->name) == 0) {
			buf_putf(out, "runner-%s=missing %s\n", s->name, why);
			state = NULL;
		} else
			buf_putf(out, "runner-%s=%s\n", s->name,
			    s->run == fsrules_apply && landlock_abi == 0
				? "missing"
				: state);
	/* Below ABI 6 the namespaces alone keep abstract sockets and signals
	 * apart. That is enough, but one layer fewer. */
	buf_putf(out, "runner-landlock-scope=%s\n",
	    landlock_abi >= 6 && state != NULL ? "enforced" : "missing");
}
