/*
 * Ids and capabilities: from root inside the pool's user namespace, which is an
 * unprivileged user outside, to this call's own uid without any capability.
 *
 * The order is forced: securebits and the bounding set need CAP_SETPCAP, groups
 * and ids need CAP_SETGID and CAP_SETUID, and the id change itself clears the
 * effective and permitted sets since KEEP_CAPS and NO_SETUID_FIXUP are off and
 * locked.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "confinement.h"
#include "runner.h"

/* The pool's capabilities that the zygote keeps. A runner's bounding set begins
 * with these, so the runner has no others to drop. */
static const uint64_t zygote_caps = (1ULL << CAP_SYS_ADMIN) |
    (1ULL << CAP_SETUID) | (1ULL << CAP_SETGID) | (1ULL << CAP_SETPCAP);

/*
 * Drops all capabilities but those of zygote_caps. CAP_SYS_ADMIN is needed for
 * namespaces and mounts; CAP_SETUID, CAP_SETGID and CAP_SETPCAP are needed for
 * the steps below. All of them are valid in the pool's user namespace only.
 */
int
privileges_zygote(struct err *err)
{
	if (caps_bound(zygote_caps) == -1 || caps_set(zygote_caps) == -1)
		return err_sys(err, FAILURE_INTERNAL, "capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return err_sys(err, FAILURE_INTERNAL, "prctl");
	return 0;
}

/* Drops zygote_caps from the bounding set. The zygote dropped all others before
 * the fork. privileges_drop() reads all bits back. */
int
privileges_bounding(struct runner *r)
{
	int cap;

	(void)r;
	for (cap = 0; cap < CAPS_END; cap++)
		if ((zygote_caps & (1ULL << cap)) != 0 &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == -1)
			return -1;
	return 0;
}

int
privileges_securebits(struct runner *r)
{
	(void)r;
	return prctl(PR_SET_SECUREBITS,
	    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
		SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		SECBIT_NO_CAP_AMBIENT_RAISE |
		SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
	    0, 0, 0);
}

/*
 * Takes the call's ids. uid 0 would be the pool's root, so a FORK that asks for
 * uid 0 is refused here. sandboxd picks the uid, but the harm would be done
 * here.
 */
int
privileges_ids(struct runner *r)
{
	uid_t uid = r->fork->uid, ru, eu, su;
	gid_t gid = r->fork->uid, rg, eg, sg;

	if (uid == 0 || uid == (uid_t)-1) {
		errno = EINVAL;
		return -1;
	}
	if (setgroups(0, NULL) == -1 || setresgid(gid, gid, gid) == -1 ||
	    setresuid(uid, uid, uid) == -1)
		return -1;
	if (getresuid(&ru, &eu, &su) == -1 || getresgid(&rg, &eg, &sg) == -1)
		return -1;
	if (ru != uid || eu != uid || su != uid || rg != gid || eg != gid ||
	    sg != gid || getgroups(0, NULL) != 0) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

/* Drops all capabilities and reads the sets back. A capability that stayed for
 * any reason ends the runner here. */
int
privileges_drop(struct runner *r)
{
	(void)r;
	return caps_none();
}

/* Makes us not dumpable. Then /proc/self does not belong to the call's uid, and
 * no process of the same uid may attach by ptrace(2). If suid_dumpable is 0,
 * the id change has already made us not dumpable. */
int
privileges_dumpable(struct runner *r)
{
	(void)r;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int
privileges_no_new(struct runner *r)
{
	(void)r;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
