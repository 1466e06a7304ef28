/*
 * Replays a corpus without libFuzzer: each file of the directory given as
 * argument goes once through the target, so that what a fuzzer once found is an
 * ordinary test ever after. Fails if the directory is missing or empty.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

enum { INPUT_MAX = 8 * 1024 * 1024 }; /* twice the largest IPC blob */

static int
replay(int dir, const char *name)
{
	uint8_t *p = NULL;
	size_t n = 0;
	ssize_t got;
	int fd, rc = -1;

	if ((fd = openat(dir, name, O_RDONLY | O_CLOEXEC)) == -1 ||
	    (p = malloc(INPUT_MAX)) == NULL)
		goto out;
	while ((got = read(fd, p + n, INPUT_MAX - n)) > 0)
		n += (size_t)got;
	if (got == -1)
		goto out;
	/* An exact copy, so that a sanitizer sees reads past the end. */
	{
		uint8_t *exact = malloc(n + (n == 0));

		if (exact == NULL)
			goto out;
		for (size_t i = 0; i < n; i++)
			exact[i] = p[i];
		LLVMFuzzerTestOneInput(exact, n);
		free(exact);
	}
	rc = 0;
out:
	if (rc == -1)
		perror(name);
	free(p);
	if (fd != -1)
		close(fd);
	return rc;
}

int
main(int argc, char **argv)
{
	DIR *d;
	struct dirent *e;
	unsigned files = 0;

	if (argc != 2 || (d = opendir(argv[1])) == NULL) {
		fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
		return 2;
	}
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (replay(dirfd(d), e->d_name) == -1)
			return 1;
		files++;
	}
	closedir(d);
	printf("%u inputs\n", files);
	return files == 0;
}
