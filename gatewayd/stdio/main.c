/*
 * mcpbox-stdio: for MCP hosts that can only start a program. See
 * mcpbox-stdio(1).
 *
 * It runs as the host's user and has no right that this user doesn't have. The
 * server decides for each request what the request may do. mcpbox-stdio still
 * gives up what it doesn't need: it can't gain privileges and starts no other
 * program. It speaks only to the address that it was given: it follows no
 * redirect and uses no proxy.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bridge.h"

#define DEFAULT_URL "http://127.0.0.1:8002/mcp"

enum { TOKEN_MAX = 4096 }; /* as gatewayd's CREDENTIAL_MAX */

static _Noreturn void
usage(FILE *to, int status)
{
	fputs("usage: mcpbox-stdio [--url URL] [--unix-socket PATH] "
	      "[--token-file FILE]\n",
	    to);
	exit(status);
}

/*
 * Tells whether other users may read or write a token's file. The token is all
 * that its holder needs to call tools as this user. So such a file is refused,
 * as ssh(1) refuses a key: hosts hide a warning on standard error. The group's
 * rights count only if the file is this user's, because its owner can change
 * them. A file of another user may be shared with this user by its group, or by
 * an ACL, whose mask is shown as the group's rights (systemd's credentials).
 * The mode of a pipe says nothing, so only regular files are judged.
 */
static bool
is_shared(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return true;
	return S_ISREG(st.st_mode) &&
	    ((st.st_mode & S_IRWXO) != 0 ||
		(st.st_uid == geteuid() && (st.st_mode & S_IRWXG) != 0));
}

/* Reads a token from the first line of a file. 0 or -1. */
static int
read_token(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (f == NULL) {
		perror(path);
		return -1;
	}
	if (is_shared(fileno(f))) {
		fprintf(stderr,
		    "mcpbox-stdio: other users may read or write %s, which has "
		    "a token: chmod 600 it\n",
		    path);
		fclose(f);
		return -1;
	}
	if (fgets(out, (int)size, f) == NULL)
		out[0] = '\0';
	fclose(f);
	n = strcspn(out, "\r\n");
	out[n] = '\0';
	for (const char *p = out; *p != '\0'; p++)
		if (*p <= ' ' || *p > '~')
			n = 0;
	if (n > 0)
		return 0;
	fprintf(stderr, "mcpbox-stdio: %s holds no token in its first line\n",
	    path);
	return -1;
}

/* Opens the standard descriptors that are closed. Otherwise libcurl's sockets
 * would take their numbers, and answers would go to the server. 0 or -1. */
static int
open_standard(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"url", required_argument, NULL, 'u'},
	    {"unix-socket", required_argument, NULL, 's'},
	    {"token-file", required_argument, NULL, 't'},
	    {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'V'},
	    {NULL, 0, NULL, 0},
	};
	static char token[TOKEN_MAX + 2];
	struct bridge b = {.url = DEFAULT_URL};
	struct transfer *t;
	int c, rc = 1;

	while ((c = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (c) {
		case 'u':
			b.url = optarg;
			break;
		case 's':
			b.socket = optarg;
			break;
		case 't':
			if (read_token(optarg, token, sizeof(token)) < 0)
				return 2;
			b.token = token;
			break;
		case 'h':
			usage(stdout, 0);
		case 'V':
			puts("mcpbox-stdio " MCPBOX_VERSION);
			return 0;
		default:
			usage(stderr, 2);
		}
	}
	if (optind != argc ||
	    (strncmp(b.url, "http://", 7) != 0 &&
		strncmp(b.url, "https://", 8) != 0))
		usage(stderr, 2);
	if (open_standard() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
		perror("mcpbox-stdio");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	TAILQ_INIT(&b.transfers);
	buf_init(&b.in, BRIDGE_LINE_MAX + 64 * 1024);
	buf_init(&b.out, BRIDGE_OUT_HIGH + 2 * (size_t)BRIDGE_ANSWER_MAX);
	if (curl_global_init(CURL_GLOBAL_ALL) == CURLE_OK &&
	    (b.multi = curl_multi_init()) != NULL) {
		rc = bridge_run(&b) == 0 ? 0 : 1;
		while ((t = TAILQ_FIRST(&b.transfers)) != NULL)
			transfer_free(t);
		curl_multi_cleanup(b.multi);
	}
	buf_free(&b.in);
	buf_free(&b.out);
	free(b.initialize);
	marked_free(&b.marked);
	explicit_bzero(token, sizeof(token));
	return rc;
}
