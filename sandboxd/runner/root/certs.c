/*
 * The host's certificate authorities, copied into the root that all runners
 * share. So tools trust the authorities that the host trusts. As with the rest
 * of the root, only the next zygote sees a change on the host.
 *
 * The certificates are copied in two forms, as Debian's update-ca-certificates
 * makes them. The first is a directory of certificates under the hashes of
 * their subjects (openssl-rehash(1)). From it a client reads only the one or
 * two certificates that it needs. To read a bundle of 140 certificates takes 10
 * ms. The variable SSL_CERT_DIR names the directory to OpenSSL. The second form
 * is the bundle, for programs that look for the bundle.
 *
 * Certificates are public. A file of the host that by mistake also holds a
 * private key is left out, and so is a file that the pool's user can't read. If
 * the host has no directory CERTS_DIR, tools have no authorities.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "root.h"
#include "runner.h"
#include "steps_path.h"

enum {
	/* Debian has 140; a company adds some. */
	CERTS_MAX = 1024,
	/* One certificate is 1 to 8 KiB, the bundle 220 KiB. */
	CERT_BYTES_MAX = 64 * 1024,
	BUNDLE_BYTES_MAX = 2 * 1024 * 1024,
	/* Bytes of all certificates, in the root's memory. */
	ALL_BYTES_MAX = 6 * 1024 * 1024
};

static const char bundle[] = "ca-certificates.crt";

/* Tells whether the name is like "3513523f.0": eight hexadecimal digits, a
 * point, a number. */
static bool
hashed(const char *name)
{
	return strspn(name, "0123456789abcdef") == 8 && name[8] == '.' &&
	    name[9] != '\0' &&
	    strspn(name + 9, "0123456789") == strlen(name + 9) &&
	    strlen(name) < 16;
}

/* Reads a certificate that may be shown to all. Leaves b empty if the file has
 * no certificate, or a private key. */
static void
read_public(int fd, struct buf *b)
{
	uint8_t chunk[4096];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		return;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_put(b, chunk, (size_t)n);
	if (n == -1 || b->failed ||
	    memmem(b->p, b->len, "PRIVATE KEY", 11) != NULL ||
	    memmem(b->p, b->len, "BEGIN CERTIFICATE", 17) == NULL)
		b->len = 0;
}

/* Copies a certificate or the bundle. Returns the number of bytes, 0 if the
 * file is left out, or -1 with errno if the root's memory can't take it. */
static ssize_t
copy(int dir, const char *name, size_t max)
{
	char path[RUNNER_PATH_MAX];
	struct buf b;
	int from, to = -1;
	ssize_t rc = -1;

	buf_init(&b, max);
	from = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (from == -1)
		return 0;
	read_public(from, &b);
	(void)close(from);
	(void)snprintf(path, sizeof(path), RUNNER_BASE CERTS_DIR "/%s", name);
	steps_path(path);
	if (b.len == 0)
		rc = 0;
	else if ((to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		      0444)) != -1 &&
	    write(to, b.p, b.len) == (ssize_t)b.len && fchmod(to, 0444) == 0)
		rc = (ssize_t)b.len;
	if (to != -1)
		(void)close(to);
	buf_free(&b);
	return rc;
}

int
certs_build(void)
{
	size_t n = 0, bytes = 0;
	const struct dirent *e;
	ssize_t got;
	DIR *d;
	int rc = -1;

	steps_path(CERTS_DIR);
	if (mkdir(RUNNER_BASE "/etc/ssl", 0755) == -1 ||
	    mkdir(RUNNER_BASE CERTS_DIR, 0755) == -1)
		return -1;
	d = opendir(CERTS_DIR);
	if (d == NULL)
		return 0;
	got = copy(dirfd(d), bundle, BUNDLE_BYTES_MAX);
	while (got != -1 && n < CERTS_MAX && bytes < ALL_BYTES_MAX &&
	    (e = readdir(d)) != NULL) {
		if (!hashed(e->d_name))
			continue;
		got = copy(dirfd(d), e->d_name, CERT_BYTES_MAX);
		bytes += got > 0 ? (size_t)got : 0;
		n += got > 0;
	}
	if (got != -1)
		rc = 0;
	(void)closedir(d);
	return rc;
}
