/*
 * mcpbox-run: runs a program confined to the current folder. See DESIGN.md.
 */
#include <sys/auxv.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "explain.h"
#include "helper.h"
#include "outside.h"
#include "plan.h"
#include "rules.h"

/* Paths that were set aside; a run can make each kept path once. */
enum { ASIDE_MAX = PLAN_KEPT_MAX * (PLAN_PATH_MAX + 256) };

static int
fail(const struct err *e)
{
	(void)fprintf(stderr, "mcpbox-run: %s\n", e->text);
	return PLAN_FAILED;
}

/* Closes all descriptors but 0, 1 and 2, and makes sure that these are open:
 * a file that took the place of one would be the program's output. */
static int
tidy_descriptors(struct err *e)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd != -1 && fd < 3);
	if (fd == -1 || syscall(SYS_close_range, 3, ~0U, 0) == -1)
		return err_sys(e, FAILURE_INTERNAL, "descriptors");
	return 0;
}

static void
on_aside(void *arg, const char *path, const char *aside)
{
	struct buf *b = arg;

	buf_put(b, path, strlen(path) + 1);
	buf_put(b, aside != NULL ? aside : "",
	    aside != NULL ? strlen(aside) + 1 : 1);
}

static void
say_aside(const struct buf *b)
{
	const char *at = (const char *)b->p;
	const char *const end = at + b->len;
	const char *name;

	for (; at < end; at = name + strlen(name) + 1) {
		name = at + strlen(at) + 1;
		if (*name == '\0')
			(void)fprintf(stderr,
			    "mcpbox-run: the program made %s, which could not "
			    "be renamed: remove it before you work there\n",
			    at);
		else
			(void)fprintf(stderr,
			    "mcpbox-run: the program made %s, on which "
			    "programs outside act: it is now %s (--allow-hooks "
			    "leaves it)\n",
			    at, name);
	}
}

static void
say_denied(const struct helper *h)
{
	char port[8];

	for (size_t i = 0; i < h->ndenied; i++) {
		(void)snprintf(port, sizeof(port), ":%u", h->denied[i].port);
		(void)fprintf(stderr, "mcpbox-run: no connection to %s%s: %s\n",
		    h->denied[i].host, h->denied[i].port != 0 ? port : "",
		    h->denied[i].why);
	}
}

static int
run(const struct plan *p)
{
	static struct helper helper;
	struct plan_report r = {0};
	struct buf aside;
	struct err e;
	int rc;

	buf_init(&aside, ASIDE_MAX);
	if (helper_open(&helper, p, &e) == -1) {
		helper_close(&helper);
		return fail(&e);
	}
	rc = outside_run(p, &helper, &r, &e);
	(void)kept_settle(p, on_aside, &aside);
	r.aside = &aside;
	r.denied = helper.denied;
	r.ndenied = helper.ndenied;
	if (rc == -1)
		r.status = fail(&e);
	if (p->json)
		explain_report(p, &r);
	else {
		say_denied(&helper);
		say_aside(&aside);
	}
	buf_free(&aside);
	return r.status;
}

int
main(int argc, char **argv)
{
	static struct plan p;
	struct plan_layers layers = {.landlock = rules_abi()};
	struct cgroup cgroup;
	struct err e;
	int rc;

	/* A set-user-ID or file capability on this program would lend its
	 * rights to each caller's command line. */
	if (getauxval(AT_SECURE) != 0) {
		(void)err_set(&e, FAILURE_FORBIDDEN,
		    "this program must not be set-user-ID: chmod u-s it");
		return fail(&e);
	}
	if (tidy_descriptors(&e) == -1)
		return fail(&e);
	for (int i = 1; i < argc && argv[i][0] == '-'; i++)
		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "--version") == 0)
			return options_read(&p, argc, argv, &e) == 1 ? 0
								     : fail(&e);
	if (plan_init(&p, &e) == -1 || options_read(&p, argc, argv, &e) == -1 ||
	    folders_cwd(&p, &e) == -1 || kept_find(&p, &e) == -1 ||
	    environ_close(&p, &e) == -1)
		return fail(&e);
	if (p.explain) {
		layers.cgroup = cgroup_make(&cgroup, &p);
		cgroup_remove(&cgroup);
		explain_print(&p, &layers);
		rc = 0;
	} else
		rc = run(&p);
	plan_free(&p);
	return rc;
}
