/* fetch.h: the hosts that a run may reach which fetches an issuer's keys, or
 * sends telemetry or a notification. */
#include "fetch.h"

#include "bounds.h"
#include "context.h"
#include "crypto.h"
#include "ids.h"
#include "ipc.h"
#include "stored.h"
#include "tlv.h"
#include "unit.h"

static struct keys keys;
static struct access newest;

/* The kind of run that is tested, and the secret that admind brings for it;
 * len 0: none. */
static uint8_t kind;
static const char *secret_name;
static struct buf secret;

static const char document[] =
    "{\"resource\":\"https://mcp.example.org/mcp\",\"issuers\":[{\"name\":"
    "\"home\",\"issuer\":\"https://id.example.org/realm\",\"discovery\":true,"
    "\"key_hosts\":[\"keys.example.org:8443\",\"192.168.1.5\",\"*\",\"a\\/b\"]"
    ",\"clients\":[\"say \\\"evil.example\\\" here\",\"udp:dns.example:53\"]},"
    "{\"name\":\"v6\",\"issuer\":\"https://[fd12::1]:8443\"},"
    "{\"name\":\"plain\",\"issuer\":\"http://127.0.0.1\"}]}";

/* Seals a document as the successor of the newest. */
static void
sealed(const char *text, struct buf *seal)
{
	struct access made;
	struct ipc_hash h;
	struct err e;

	buf_init(seal, ACCESS_SEAL_MAX);
	sha256(text, strlen(text), &h);
	assert_int_equal(access_make(&keys, &newest, 0, &h, ipc_str("anna"),
			     now_us(), seal, &made, &e),
	    0);
}

/* Makes the context of a run. hosts: up to two, NULL: none. Returns the
 * failure; the hosts that it may reach and its specification go to have. */
static enum failure
made(const char *text, const struct buf *seal, const char *url,
    const char *host, char have[1024])
{
	struct buf material, out;
	struct tlv_reader r;
	struct tlv f;
	struct err e = {.failure = FAILURE_NONE};

	have[0] = '\0';
	buf_init(&material, IPC_BLOB_MAX);
	buf_init(&out, IPC_BLOB_MAX);
	tlv_put(&material, CTX_ACCESS_SEAL, seal->p, seal->len);
	tlv_puts(&material, CTX_ACCESS_DOCUMENT, text);
	tlv_puts(&material, CTX_KEYS_URL, url);
	if (host != NULL)
		tlv_puts(&material, CTX_KEYS_HOST, host);
	if (secret.len > 0) {
		tlv_puts(&material, CTX_SECRET_NAME, secret_name);
		tlv_put(&material, CTX_SECRET_VALUE, secret.p, secret.len);
	}
	if (fetch_put(&out, &keys, &newest, kind,
		ipc_bytes(material.p, material.len), &e) == 0) {
		assert_false(out.failed);
		tlv_open(&r, out.p, out.len);
		while (tlv_next(&r, &f) == 1)
			snprintf(have + strlen(have), 1024 - strlen(have),
			    "%s%.*s;",
			    f.tag == CTX_REQUIRE     ? "r "
				: f.tag == CTX_GRANT ? "g "
						     : "",
			    (int)f.n, (const char *)f.p);
	}
	buf_free(&material);
	buf_free(&out);
	return e.failure;
}

static void
hosts_of_the_document(void **state)
{
	struct buf seal;
	char have[1024];

	sealed(document, &seal);
	assert_int_equal(
	    made(document, &seal, "https://id.example.org/realm", NULL, have),
	    FAILURE_NONE);
	assert_string_equal(have,
	    "r tcp id.example.org 443;g tcp id.example.org 443;keys;"
	    "{\"url\":\"https://id.example.org/realm\",\"hosts\":["
	    "\"tcp id.example.org 443\"]};");
	assert_int_equal(made(document, &seal, "https://[fd12::1]:8443",
			     "keys.example.org:8443", have),
	    FAILURE_NONE);
	assert_string_equal(have,
	    "r tcp fd12::1 8443;g tcp fd12::1 8443;"
	    "r tcp keys.example.org 8443;g tcp keys.example.org 8443;keys;"
	    "{\"url\":\"https://[fd12::1]:8443\",\"hosts\":["
	    "\"tcp fd12::1 8443\",\"tcp keys.example.org 8443\"]};");
	assert_int_equal(made(document, &seal, "https://id.example.org/realm",
			     "192.168.1.5", have),
	    FAILURE_NONE);
	assert_non_null(strstr(have, "g tcp 192.168.1.5 443;"));
	buf_free(&seal);
}

/* Nothing that is not a whole string of the document, and no wildcard. */
static void
no_other_host(void **state)
{
	static const char *const urls[] = {"https://id.example.org/real",
	    "https://id.example.org", "https://evil.example", "",
	    "https://mcp.example.org/mcp\",\"issuers", "http://127.0.0.1",
	    "home"};
	static const char *const hosts[] = {"evil.example", "*",
	    "*.example.org", "udp:dns.example:53", "keys.example.org",
	    "example.org:8443", "a/b", "a\\/b", "", ":", "192.168.1.5:8443"};
	struct buf seal;
	char have[1024];

	sealed(document, &seal);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		if (made(document, &seal, urls[i], NULL, have) == FAILURE_NONE)
			fail_msg("%s", urls[i]);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (made(document, &seal, "https://id.example.org/realm",
			hosts[i], have) == FAILURE_NONE)
			fail_msg("%s", hosts[i]);
	buf_free(&seal);
}

/* Only the newest document of ours. */
static void
no_other_document(void **state)
{
	static const char other[] = "{\"issuer\":\"https://evil.example\"}";
	struct buf first, second, material, out;
	char have[1024];
	struct err e;

	sealed(document, &first);
	assert_int_equal(
	    made(other, &first, "https://evil.example", NULL, have),
	    FAILURE_HASH_MISMATCH);
	first.p[first.len - 1] ^= 1;
	assert_int_equal(
	    made(document, &first, "https://id.example.org/realm", NULL, have),
	    FAILURE_NOT_APPROVED);
	first.p[first.len - 1] ^= 1;
	sealed("{}", &second);
	assert_int_not_equal(
	    made("{}", &second, "https://id.example.org/realm", NULL, have),
	    FAILURE_NONE);
	/* The vault has seen the second now. */
	assert_int_equal(
	    made(document, &first, "https://id.example.org/realm", NULL, have),
	    FAILURE_CONFLICT);
	buf_init(&material, 4096);
	buf_init(&out, 4096);
	assert_int_equal(fetch_put(&out, &keys, &newest, kind,
			     ipc_bytes(material.p, material.len), &e),
	    -1);
	assert_int_equal(fetch_put(&out, &keys, NULL, kind,
			     ipc_bytes(material.p, material.len), &e),
	    -1);
	assert_int_equal(out.len, 0);
	buf_free(&first);
	buf_free(&second);
}

/* A run that fetches keys or exchanges a code goes to an issuer, or to the
 * address of its keys, and to no other https address of the document. */
static void
keys_come_from_issuers(void **state)
{
	static const char doc[] =
	    "{\"resource\":\"https://mcp.example.org/mcp\",\"issuers\":["
	    "{\"name\":\"home\",\"issuer\" :\n\"https://id.example.org\","
	    "\"jwks_url\":\"https://keys.example.org/jwks\","
	    "\"audiences\":[\"https://a.example\",\"issuer\","
	    "\"https://b.example\"],"
	    "\"clients\":[\"\\\"issuer\\\":\\\"https://c.example\\\"\","
	    "\"say \\\"issuer\\\":\",\"https://d.example\"],"
	    "\"jwks\":{\"issuer\":\"https://"
	    "m.example\",\"keys\":[{\"jwks_url\":"
	    "\"https://n.example\"}]},"
	    "\"key_hosts\":[\"e.example\"],\"sign_in\":{\"redirect\":"
	    "\"https://f.example/api/signin/callback\"}},"
	    "{\"xissuer\":\"https://g.example\","
	    "\"issuers\":\"https://h.example\","
	    "\"\\\"jwks_url\":\"https://i.example\"}],"
	    "\"telemetry\":{\"endpoint\":\"https://j.example\"},"
	    "\"rules\":[{\"issuer\":\"https://k.example\"}],"
	    "\"issuer\":\"https://l.example\"}";
	static const char *const good[] = {
	    "https://id.example.org", "https://keys.example.org/jwks"};
	static const char *const others[] = {"https://mcp.example.org/mcp",
	    "https://a.example", "https://b.example", "https://c.example",
	    "https://d.example", "https://e.example",
	    "https://f.example/api/signin/callback", "https://g.example",
	    "https://h.example", "https://i.example", "https://j.example",
	    "https://k.example", "https://l.example", "https://m.example",
	    "https://n.example", "issuer"};
	struct buf seal;
	char have[1024];

	sealed(doc, &seal);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (made(doc, &seal, good[i], "e.example", have) !=
			FAILURE_NONE ||
		    strstr(have, "g tcp e.example 443;keys;") == NULL)
			fail_msg("%s: %s", good[i], have);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (made(doc, &seal, others[i], NULL, have) !=
		    FAILURE_FORBIDDEN)
			fail_msg("%s", others[i]);
	buf_free(&seal);
}

/* A run that sends telemetry goes to the value of a member "endpoint", and
 * nowhere else: it sends bytes that admind chooses. */
static void
telemetry_goes_to_its_endpoint(void **state)
{
	static const char doc[] =
	    "{\"issuers\":[{\"name\":\"home\",\"issuer\":"
	    "\"https://id.example.org\",\"clients\":[\"https://a.example\","
	    "\"say \\\"endpoint\\\":\",\"https://b.example\","
	    "\"\\\"endpoint\\\":\\\"https://c.example\\\"\",\"endpoint\"]},"
	    "{\"xendpoint\":\"https://d.example\","
	    "\"endpoints\":\"https://e.example\","
	    "\"\\\"endpoint\":\"https://f.example\"}],"
	    "\"telemetry\":{\"endpoint\" :\n\"http://192.168.1.5:4318\","
	    "\"hosts\":[\"192.168.1.6:4318\"]},"
	    "\"endpoint\":\"https://g.example\","
	    "\"issuers2\":[{\"jwks\":{\"endpoint\":\"https://h.example\"}}]}";
	static const char usual[] =
	    "{\"telemetry\":{\"endpoint\":\"http://10.0.0.1\","
	    "\"hosts\":[\"10.0.0.2\"]}}";
	static const char *const others[] = {"https://id.example.org",
	    "https://a.example", "https://b.example", "https://c.example",
	    "https://d.example", "https://e.example", "https://f.example",
	    "https://g.example", "https://h.example", "http://192.168.1.6:4318",
	    "192.168.1.6:4318", "endpoint"};
	struct buf seal;
	char have[1024];

	kind = CONTEXT_TELEMETRY;
	sealed(doc, &seal);
	assert_int_equal(made(doc, &seal, "http://192.168.1.5:4318",
			     "192.168.1.6:4318", have),
	    FAILURE_NONE);
	assert_string_equal(have,
	    "r tcp 192.168.1.5 4318;g tcp 192.168.1.5 4318;"
	    "r tcp 192.168.1.6 4318;g tcp 192.168.1.6 4318;telemetry;"
	    "{\"url\":\"http://192.168.1.5:4318\",\"hosts\":["
	    "\"tcp 192.168.1.5 4318\",\"tcp 192.168.1.6 4318\"]};");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (made(doc, &seal, others[i], NULL, have) == FAILURE_NONE)
			fail_msg("%s", others[i]);
	assert_int_equal(
	    made(doc, &seal, "http://192.168.1.5:4318", "evil.example", have),
	    FAILURE_FORBIDDEN);
	buf_free(&seal);
	/* The usual ports. */
	sealed(usual, &seal);
	assert_int_equal(
	    made(usual, &seal, "http://10.0.0.1", "10.0.0.2", have),
	    FAILURE_NONE);
	assert_non_null(strstr(have, "g tcp 10.0.0.1 80;"));
	assert_non_null(strstr(have, "g tcp 10.0.0.2 443;"));
	/* Keys are fetched by https alone. */
	kind = CONTEXT_KEYS;
	assert_int_equal(made(usual, &seal, "http://10.0.0.1", NULL, have),
	    FAILURE_FORBIDDEN);
	buf_free(&seal);
}

/* Stores a value as a secret of a server. */
static void
store(const char *server, const char *name, const char *value)
{
	const struct stored_place at = {
	    STORED_SECRETS, ipc_str(server), ipc_str(name)};
	struct err e;

	secret_name = name;
	assert_int_equal(
	    stored_seal(&keys, &at, value, strlen(value), &secret, &e), 0);
}

/* A run gets the one host of a text "notify", and the secret that the same text
 * names; admind can't bring another one, nor put it before another host. */
static void
a_target_has_its_own_secret(void **state)
{
	static const char doc[] =
	    "{\"issuers\":[{\"jwks\":{\"notify\":\"ntfy https://h.example/t "
	    "secret=alerts/HOOK\",\"keys\":[{\"kty\":\"}]\",\"notify\":"
	    "\"ntfy https://i.example/t secret=alerts/HOOK\"}]}}],"
	    "\"resource\":\"notifications\","
	    "\"notify\":\"ntfy https://j.example/t secret=alerts/HOOK\","
	    "\"notifications\":{\"targets\":["
	    "{\"name\":\"a\",\"notify\":\"webhook https://a.example/in "
	    "secret=alerts/HOOK\"},"
	    "{\"name\":\"b\",\"notify\":\"ntfy https://b.example/t\"},"
	    "{\"name\":\"c\",\"notify\":\"smtp [fd12::1] a@x.example "
	    "b@x.example secret=alerts/MAIL\"},"
	    "{\"name\":\"d\",\"notify\":\"ntfy https://*.example/t\"},"
	    "{\"name\":\"e\",\"noti\\u0066y\":\"ntfy https://e.example/t\"},"
	    "{\"name\":\"ntfy https://f.example/t\"},"
	    "{\"name\":\"\\\"notify\\\":\\\"ntfy https://g.example/t\\\"\"},"
	    "{\"name\":\"k\",\"notify\":\"ntfy http://k.example/t "
	    "secret=alerts/HOOK\"}]}}";
	static const char *const others[] = {"ntfy https://a.example/in",
	    "webhook https://a.example/in",
	    "webhook https://a.example/in secret=alerts/MAIL",
	    "ntfy https://b.example/t secret=alerts/HOOK",
	    "ntfy https://*.example/t", "ntfy https://e.example/t",
	    "ntfy https://f.example/t", "ntfy https://g.example/t", "a", "",
	    "ntfy https://h.example/t secret=alerts/HOOK",
	    "ntfy https://i.example/t secret=alerts/HOOK",
	    "ntfy https://j.example/t secret=alerts/HOOK",
	    "ntfy http://k.example/t secret=alerts/HOOK"};
	const char *hook = "webhook https://a.example/in secret=alerts/HOOK";
	struct buf seal;
	char have[1024];

	kind = CONTEXT_NOTIFY;
	sealed(doc, &seal);
	assert_int_equal(
	    made(doc, &seal, "ntfy https://b.example/t", NULL, have),
	    FAILURE_NONE);
	assert_string_equal(have,
	    "r tcp b.example 443;g tcp b.example 443;notify;"
	    "{\"target\":\"ntfy https://b.example/t\",\"hosts\":["
	    "\"tcp b.example 443\"]};");
	assert_int_equal(
	    made(doc, &seal, hook, NULL, have), FAILURE_INVALID_REQUEST);
	store("alerts", "HOOK", "whsec_abc");
	assert_int_equal(made(doc, &seal, hook, NULL, have), FAILURE_NONE);
	assert_string_equal(have,
	    "r tcp a.example 443;g tcp a.example 443;notify;whsec_abc;notify;"
	    "{\"target\":\"webhook https://a.example/in\",\"hosts\":["
	    "\"tcp a.example 443\"]};");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (made(doc, &seal, others[i], NULL, have) == FAILURE_NONE)
			fail_msg("%s", others[i]);
	/* A target without a secret gets none. */
	assert_int_equal(
	    made(doc, &seal, "ntfy https://b.example/t", NULL, have),
	    FAILURE_FORBIDDEN);
	/* A secret of another name, and the same name of another server. */
	store("alerts", "MAIL", "mail");
	assert_int_equal(made(doc, &seal, hook, NULL, have), FAILURE_FORBIDDEN);
	store("other", "HOOK", "other");
	assert_int_equal(made(doc, &seal, hook, NULL, have), FAILURE_FORBIDDEN);
	store("alerts", "MAIL", "mail");
	secret_name = "HOOK";
	assert_int_equal(made(doc, &seal, hook, NULL, have), FAILURE_FORBIDDEN);
	/* Mail, with its usual port. */
	secret_name = "MAIL";
	assert_int_equal(
	    made(doc, &seal,
		"smtp [fd12::1] a@x.example b@x.example secret=alerts/MAIL",
		NULL, have),
	    FAILURE_NONE);
	assert_string_equal(have,
	    "r tcp fd12::1 587;g tcp fd12::1 587;notify;mail;notify;"
	    "{\"target\":\"smtp [fd12::1] a@x.example b@x.example\","
	    "\"hosts\":[\"tcp fd12::1 587\"]};");
	/* No target is the address of another kind of run. */
	kind = CONTEXT_TELEMETRY;
	assert_int_not_equal(
	    made(doc, &seal, "ntfy https://b.example/t", NULL, have),
	    FAILURE_NONE);
	buf_free(&seal);
}

static int
start(void **state)
{
	kind = CONTEXT_KEYS;
	buf_free(&secret);
	buf_init(&secret, SECRET_VALUE_MAX + STORED_OVERHEAD);
	memset(&newest, 0, sizeof(newest));
	memset(&keys, 1, sizeof(keys));
	keys.also = NULL;
	return 0;
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup(f, start)
	const struct CMUnitTest tests[] = {
	    T(hosts_of_the_document),
	    T(no_other_host),
	    T(no_other_document),
	    T(keys_come_from_issuers),
	    T(telemetry_goes_to_its_endpoint),
	    T(a_target_has_its_own_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
