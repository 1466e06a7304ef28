/* grantreq.h against the golden vectors (argv[1]: their directory). */
#include "unit.h"

#include <assert.h>
#include <dirent.h>

#include "content_show.h"
#include "crypto.h"
#include "grantreq.h"
#include "ids.h"
#include "netgrant.h"
#include "tlv.h"

enum { LINE = 16384 };

static const char *dir;

static FILE *
open_vector(const char *name)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_non_null(f = fopen(path, "r"));
	return f;
}

static void
one_vector(const char *name)
{
	char line[LINE], want_hash[HEX32_LEN + 1] = "", json[LINE] = "",
					       error[256] = "",
					       hex[HEX32_LEN + 1];
	uint8_t raw[LINE];
	struct ipc_hash hash;
	struct grantreq g;
	struct buf out;
	struct err e;
	size_t n = 0;
	FILE *f = open_vector(name);

	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "preimage ", 9) == 0 && line[9] != '-') {
			n = strlen(line + 9) / 2;
			assert_int_equal(hex_decode(line + 9, 2 * n, raw), 0);
		} else if (strncmp(line, "sha256 ", 7) == 0) {
			snprintf(
			    want_hash, sizeof(want_hash), "%.64s", line + 7);
		} else if (strncmp(line, "json ", 5) == 0) {
			memcpy(json, line + 5, strlen(line + 5) + 1);
		} else if (strncmp(line, "error ", 6) == 0) {
			snprintf(error, sizeof(error), "%.255s", line + 6);
		}
	}
	fclose(f);
	buf_init(&out, 1 << 20);
	if (error[0] != '\0') {
		assert_int_equal(grantreq_read(raw, n, &g, &e), -1);
		assert_string_equal(e.text, error);
		assert_int_equal(e.failure, FAILURE_INVALID_PARAMS);
		assert_int_equal(grantreq_json(raw, n, &out, &e), -1);
		assert_int_equal(out.len, 0);
	} else {
		assert_int_equal(grantreq_read(raw, n, &g, &e), 0);
		assert_int_equal(content_show_json(raw, n, &out, &e), 0);
		buf_put_u8(&out, 0);
		assert_string_equal(out.p, json);
		sha256(raw, n, &hash);
		hex_encode(hash.b, sizeof(hash.b), hex);
		assert_string_equal(hex, want_hash);
		/* nothing may be missing at its end, nor be behind it */
		for (size_t cut = 0; cut < n; cut++)
			if (grantreq_read(raw, cut, &g, NULL) == 0)
				/* only whole fields of the optional tail */
				assert_true(cut > 60);
	}
	buf_free(&out);
}

static void
vectors(void **state)
{
	struct dirent *d;
	unsigned n = 0;
	DIR *all;

	assert_non_null(all = opendir(dir));
	while ((d = readdir(all)) != NULL)
		if (strstr(d->d_name, ".txt") != NULL &&
		    strcmp(d->d_name, "hosts.txt") != 0 &&
		    strcmp(d->d_name, "needs.txt") != 0) {
			one_vector(d->d_name);
			n++;
		}
	closedir(all);
	assert_true(n >= 20);
}

static void
hosts(void **state)
{
	static const char *const kinds[] = {[GRANT_HOST_BAD] = "-",
	    [GRANT_HOST_NAME] = "name",
	    [GRANT_HOST_LOCAL] = "local",
	    [GRANT_HOST_WILD] = "wild",
	    [GRANT_HOST_IP] = "ip",
	    [GRANT_HOST_ANY] = "any"};
	char line[LINE], word[8], kind[8], hex[LINE];
	uint8_t raw[LINE];
	unsigned n = 0;
	FILE *f = open_vector("hosts.txt");

	while (fgets(line, sizeof(line), f) != NULL) {
		size_t len;

		assert_int_equal(
		    sscanf(line, "%7s %7s %16000s", word, kind, hex), 3);
		len = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
		if (len > 0)
			assert_int_equal(hex_decode(hex, 2 * len, raw), 0);
		assert_string_equal(
		    kinds[grantreq_host(ipc_bytes(raw, len))], kind);
		n++;
	}
	fclose(f);
	assert_true(n >= 50);
}

/* What authors write, and the line that it is. */
static void
needs(void **state)
{
	char line[LINE], hex[2048];
	uint8_t raw[1024];
	struct netgrant g;
	unsigned n = 0;
	struct buf b;
	struct err e;
	FILE *f = open_vector("needs.txt");

	while (fgets(line, sizeof(line), f) != NULL) {
		const char *want = strchr(line, ' ') + 1;
		size_t len;

		line[strcspn(line, "\n")] = '\0';
		assert_int_equal(sscanf(line, "%2047s", hex), 1);
		len = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
		if (len > 0)
			assert_int_equal(hex_decode(hex, 2 * len, raw), 0);
		buf_init(&b, 512);
		buf_puts(&b, "before ");
		if (strcmp(want, "-") == 0) {
			assert_int_equal(
			    grantreq_need(ipc_bytes(raw, len), &b, &e), -1);
			assert_int_equal(e.failure, FAILURE_INVALID_PARAMS);
			assert_int_equal(b.len, 7);
		} else {
			assert_int_equal(
			    grantreq_need(ipc_bytes(raw, len), &b, &e), 0);
			assert_int_equal(b.len, 7 + strlen(want));
			assert_memory_equal(b.p + 7, want, strlen(want));
			/* what is written here is read there */
			assert_int_equal(
			    netgrant_read(
				ipc_bytes(b.p + 7, b.len - 7), &g, &e),
			    0);
		}
		buf_free(&b);
		n++;
	}
	fclose(f);
	assert_true(n >= 80);
}

/* What is shown of a grant is what an author may write of it. */
static void
as_text(void **state)
{
	static const struct {
		const char *proto, *host;
		uint64_t port;
		const char *text;
	} rows[] = {{"tcp", "example.org", 0, "example.org"},
	    {"tcp", "example.org", 8443, "example.org:8443"},
	    {"udp", "example.org", 53, "udp:example.org:53"},
	    {"tcp", "2001:db8::1", 0, "2001:db8::1"},
	    {"tcp", "2001:db8::1", 443, "[2001:db8::1]:443"},
	    {"udp", "2001:db8::1", 53, "udp:[2001:db8::1]:53"},
	    {"tcp", "*", 0, "*"}, {"tcp", "*", 8080, "*:8080"}};
	struct buf b, line;
	char want[300];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct grantreq g = {.proto = ipc_str(rows[i].proto),
		    .host = ipc_str(rows[i].host),
		    .port = rows[i].port};

		buf_init(&b, 300);
		buf_init(&line, 300);
		grantreq_host_text(&g, &b);
		assert_int_equal(b.len, strlen(rows[i].text));
		assert_memory_equal(b.p, rows[i].text, b.len);
		assert_int_equal(
		    grantreq_need(ipc_bytes(b.p, b.len), &line, NULL), 0);
		snprintf(want, sizeof(want), "%s %s %u", rows[i].proto,
		    rows[i].host, (unsigned)rows[i].port);
		assert_int_equal(line.len, strlen(want));
		assert_memory_equal(line.p, want, line.len);
		buf_free(&b);
		buf_free(&line);
	}
}

static void
affected(void **state)
{
	uint8_t hash[32] = {0};
	struct grantreq g;
	struct buf b;

	buf_init(&b, GRANTREQ_MAX + 64);
	buf_put(&b, "mcpbox grant 1", 15);
	tlv_put_u64(&b, GRANTREQ_KIND, GRANT_NETWORK);
	tlv_put(&b, GRANTREQ_REQUEST, hash, 16);
	tlv_put(&b, GRANTREQ_SERVER_ID, hash, 16);
	tlv_puts(&b, GRANTREQ_SERVER_NAME, "demo");
	tlv_puts(&b, GRANTREQ_PROTO, "tcp");
	tlv_puts(&b, GRANTREQ_HOST, "example.org");
	tlv_put_u64(&b, GRANTREQ_PORT, 1);
	for (unsigned i = 0; i < GRANTREQ_AFFECTED_MAX; i++) {
		hash[0] = (uint8_t)(i >> 8);
		hash[1] = (uint8_t)i;
		tlv_put(&b, GRANTREQ_AFFECTED, hash, 32);
	}
	assert_false(b.failed);
	assert_int_equal(grantreq_read(b.p, b.len, &g, NULL), 0);
	assert_int_equal(g.naffected, GRANTREQ_AFFECTED_MAX);
	assert_memory_equal(
	    grantreq_affected(&g, GRANTREQ_AFFECTED_MAX - 1), hash, 32);
	/* one more */
	hash[0] = 0xff;
	tlv_put(&b, GRANTREQ_AFFECTED, hash, 32);
	assert_int_equal(grantreq_read(b.p, b.len, &g, NULL), -1);
	buf_free(&b);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vectors),
	    cmocka_unit_test(hosts),
	    cmocka_unit_test(needs),
	    cmocka_unit_test(as_text),
	    cmocka_unit_test(affected),
	};

	assert(argc == 2);
	dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
