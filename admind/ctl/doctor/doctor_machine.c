#include <sys/stat.h>
#include <sys/statvfs.h>

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "setup.h"

enum {
	/* Free space. With less, a backup before a migration will not fit. */
	DISK_LOW_MB = 1024,
	DISK_NONE_MB = 100,
	CLOCK_SLACK_S = 60,
	YAMA_NONE = 3, /* no ptrace access at all (yama.rst) */
	NAMES_MAX = 512
};

/* Returns a number from /proc/sys, or `without` if the kernel has no such
 * file. */
static long
sysctl(const char *path, long without)
{
	char text[32] = "";
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return without;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	return text[0] != '\0' ? strtol(text, NULL, 10) : without;
}

/* Checks user namespaces, because a user without privileges makes the pool in a
 * user namespace. */
static void
namespaces(struct doctor *d)
{
	const char *name = "user_namespaces";

	if (sysctl("/proc/sys/user/max_user_namespaces", 1) == 0)
		doctor_row(d, name, DOCTOR_MISSING,
		    "sysctl -w user.max_user_namespaces=16384, and a file in "
		    "/etc/sysctl.d for the next start.",
		    "user.max_user_namespaces is 0: no tool can run");
	else if (sysctl("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		doctor_row(d, name, DOCTOR_MISSING,
		    "sysctl -w kernel.unprivileged_userns_clone=1, and a file "
		    "in /etc/sysctl.d for the next start.",
		    "kernel.unprivileged_userns_clone is 0: no tool can run");
	else if (sysctl("/proc/sys/kernel/"
			"apparmor_restrict_unprivileged_userns",
		     0) != 0)
		doctor_row(d, name, DOCTOR_DEGRADED,
		    "An AppArmor profile with `userns,` for "
		    "mcpbox-sandboxd-spawn (OPERATIONS.md).",
		    "kernel.apparmor_restrict_unprivileged_userns is 1: only "
		    "programs with a profile that allows it have them");
	else
		doctor_row(d, name, DOCTOR_HOLDS, "", "allowed");
}

static void
yama(struct doctor *d)
{
	long n = sysctl("/proc/sys/kernel/yama/ptrace_scope", 0);

	if (n >= YAMA_NONE)
		doctor_row(d, "yama", DOCTOR_DEGRADED,
		    "kernel.yama.ptrace_scope=2 in /etc/sysctl.d, and a "
		    "restart of the machine.",
		    "kernel.yama.ptrace_scope is %ld: calls with granted hosts "
		    "can't connect",
		    n);
	else
		doctor_row(d, "yama", DOCTOR_HOLDS, "", "ptrace_scope %ld", n);
}

static void
disk_of(struct doctor *d, const char *name, const char *path)
{
	unsigned long long mb;
	struct statvfs v;

	if (statvfs(path, &v) == -1)
		return;
	mb = (unsigned long long)v.f_bavail * v.f_frsize / (1024 * 1024);
	doctor_row(d, name,
	    mb < DISK_NONE_MB      ? DOCTOR_MISSING
		: mb < DISK_LOW_MB ? DOCTOR_DEGRADED
				   : DOCTOR_HOLDS,
	    "Make room, or a larger file system: a full one stops records, "
	    "approvals and the backup before an upgrade.",
	    "%llu MiB free in %s", mb, path);
}

static void
journal(struct doctor *d)
{
	struct stat st;

	if (stat("/var/log/journal", &st) == 0)
		doctor_row(
		    d, "journal", DOCTOR_HOLDS, "", "kept in /var/log/journal");
	else
		doctor_row(d, "journal", DOCTOR_DEGRADED,
		    "mkdir /var/log/journal && journalctl --flush",
		    "logs end with the machine's: `audit verify --journal` "
		    "compares with what was signed before");
}

/* Names the members of the group of the tunnel's socket. They may connect to
 * that socket, and so send requests that count as coming from elsewhere. */
static void
tunnel(struct doctor *d)
{
	struct group *gr = getgrnam("mcpbox-gw-tunnel");
	char names[NAMES_MAX] = "";
	struct passwd *pw;
	size_t n = 0;
	gid_t gid;

	if (gr == NULL) {
		doctor_row(d, "tunnel_group", DOCTOR_MISSING,
		    "systemd-sysusers", "there is no group mcpbox-gw-tunnel");
		return;
	}
	gid = gr->gr_gid;
	for (char **m = gr->gr_mem; *m != NULL && n < sizeof(names); m++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s",
		    n > 0 ? ", " : "", *m);
	setpwent();
	while ((pw = getpwent()) != NULL)
		if (pw->pw_gid == gid && n < sizeof(names) &&
		    strcmp(pw->pw_name, "mcpbox-gw-tunnel") != 0)
			n += (size_t)snprintf(names + n, sizeof(names) - n,
			    "%s%s", n > 0 ? ", " : "", pw->pw_name);
	endpwent();
	doctor_row(d, "tunnel_group", DOCTOR_HOLDS, "",
	    n > 0 ? "the tunnel's socket can be reached by %s"
		  : "nobody but root can reach the tunnel's socket%s",
	    names);
}

/* Compares the clock with the time of the file that setup wrote. If that time
 * is in the future, the clock is wrong. */
static void
clock_of(struct doctor *d)
{
	char path[SETUP_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/setup", d->c->state_dir);
	if (stat(path, &st) == 0 && st.st_mtime > time(NULL) + CLOCK_SLACK_S)
		doctor_row(d, "clock", DOCTOR_MISSING,
		    "Set the clock; timedatectl set-ntp true.",
		    "the clock is behind the time of setup: logins, tokens and "
		    "approvals last longer than they should");
}

static void
runners(struct doctor *d)
{
	struct setup s = {.c = d->c};
	struct err err;

	if (setup_machine_runners(&s, &err) == SETUP_FAILED)
		doctor_row(d, "runner_ids", DOCTOR_MISSING,
		    "Set another runner_uid_base in sandboxd-spawn.conf and "
		    "restart mcpbox-sandboxd-spawn.",
		    "%s", err.text);
	else
		doctor_row(d, "runner_ids", DOCTOR_HOLDS, "", "%s", s.detail);
}

void
doctor_machine(struct doctor *d)
{
	namespaces(d);
	yama(d);
	runners(d);
	tunnel(d);
	disk_of(d, "disk", d->c->state_dir);
	disk_of(d, "disk_database", "/var/lib/postgresql");
	clock_of(d);
	journal(d);
}
