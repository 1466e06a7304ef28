/*
 * Bounds connections by the limit of open files. Clients must not be able to
 * take the descriptors that the rest of a process needs: a process that can't
 * connect to its database serves no one.
 */
#include <sys/resource.h>

#include "httpd.h"

unsigned
httpd_files(unsigned connections, unsigned reserved)
{
	struct rlimit files;
	rlim_t need = (rlim_t)connections + reserved;

	/* On most systems the soft limit is 1024 only for the sake of programs
	 * that call select(2), so it is raised. */
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= need)
		return connections;
	files.rlim_cur = need < files.rlim_max ? need : files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= need)
		return connections;
	/* If there are few descriptors, half of them are kept for other uses of
	 * the process. */
	if (files.rlim_cur / 2 >= reserved)
		return (unsigned)files.rlim_cur - reserved;
	return files.rlim_cur >= 2 ? (unsigned)files.rlim_cur / 2 : 1;
}
