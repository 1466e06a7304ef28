/* See plan.h. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netgrant.h"
#include "plan.h"

/* Defaults. --processes and --tmp name others. */
enum {
	/* Enough for a parallel build of a large project; a fork bomb ends
	 * there, and the machine goes on. */
	PROCESSES = 4096,
};
/* Memory, since it is a tmpfs; a build of a large package needs some hundred
 * megabytes. */
static const uint64_t tmp_default = UINT64_C(1) << 30;

/* Finds the home folder without symbolic links. A home that does not exist
 * is used as it is named: it is only a name inside. */
static char *
real_home(const char *path)
{
	char *real;

	if (path == NULL || *path != '/')
		return NULL;
	if ((real = realpath(path, NULL)) == NULL)
		real = strdup(path);
	return real;
}

int
plan_init(struct plan *p, struct err *e)
{
	struct passwd *pw;
	char *own = NULL;
	char number[16];

	memset(p, 0, sizeof(*p));
	p->uid = getuid();
	p->gid = getgid();
	p->processes = PROCESSES;
	p->tmp = tmp_default;
	buf_init(&p->net, PLAN_HOSTS_MAX * (NETGRANT_LINE_MAX + 1));
	p->nfolders = 1; /* folders_cwd fills [0] in */
	if (p->uid == 0 || geteuid() != p->uid || getegid() != p->gid)
		return err_set(e, FAILURE_FORBIDDEN,
		    "this is for ordinary users: run it as the user whose "
		    "folder this is (runuser -u NAME -- mcpbox-run ...)");
	pw = getpwuid(p->uid);
	(void)snprintf(number, sizeof(number), "%u", (unsigned)p->uid);
	p->user = strdup(pw != NULL ? pw->pw_name : number);
	own = real_home(pw != NULL ? pw->pw_dir : NULL);
	p->home = real_home(getenv("HOME"));
	if (p->home == NULL && own != NULL)
		p->home = strdup(own);
	/* An empty folder over "/" would hide the whole root. */
	if (p->home == NULL || strcmp(p->home, "/") == 0) {
		free(p->home);
		p->home = strdup("/home/run");
	}
	if (p->user == NULL || p->home == NULL ||
	    (p->homes[0] = strdup(p->home)) == NULL) {
		free(own);
		return err_set(e, FAILURE_BUSY, "no memory");
	}
	if (own != NULL && strcmp(own, "/") != 0 && strcmp(own, p->home) != 0)
		p->homes[1] = own;
	else
		free(own);
	return 0;
}

void
plan_free(struct plan *p)
{
	size_t i;

	buf_free(&p->net);
	free(p->user);
	free(p->home);
	free(p->homes[0]);
	free(p->homes[1]);
	for (i = 0; i < p->nfolders; i++)
		free(p->folder[i].path);
	for (i = 0; i < p->nfiles; i++)
		free(p->file[i].path);
	for (i = 0; i < p->nkept; i++)
		free(p->kept[i].path);
	for (i = 0; i < p->nenv; i++)
		free(p->env[i]);
	memset(p, 0, sizeof(*p));
}
