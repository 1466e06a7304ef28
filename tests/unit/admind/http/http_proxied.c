/* admind-http after a proxy, with the peers of test_http_api.c. */
#include "unit.h"

#include "http_client.h"
#include "http_proxied.h"

/* The halves of the login's token that the played vault gives. */
#define HALF   "ttttttttttttttttttttttttttttttttttttttttttt"
#define CSRF   "ccccccccccccccccccccccccccccccccccccccccccc"
#define HEADER "X-CSRF-Token: " CSRF
#define LOGIN  "Cookie: mcpbox_session=" HALF "\r\n" HEADER
#define JSON   "\r\nContent-Type: application/json"

static void
expect(int got, int status, const char *holds)
{
	if (got != status || strstr(answer, holds) == NULL)
		fail_msg("want %d with %s, got: %s", status, holds, answer);
}

#define BY_PROXY "Host: panel.example:8443\r\nX-Forwarded-Proto: https"
#define SECURE   "Cookie: __Host-mcpbox_session=" HALF "\r\n" HEADER

/* Through a proxy at a name of panel_origins: other names of cookies, and all
 * refusals as before. */
void
http_proxied(void **state)
{
	static const char good[] =
	    "{\"username\":\"admin\",\"password\":\"pass word\"}";

	(void)state;
	expect(
	    http("POST", "/api/login",
		BY_PROXY "\r\nOrigin: https://panel.example:8443" JSON, good),
	    200, "\"csrf_token\":\"" CSRF "\"");
	assert_non_null(strstr(answer,
	    "\r\nSet-Cookie: __Host-mcpbox_session=" HALF
	    "; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=3"));
	assert_non_null(strstr(answer,
	    "\r\nSet-Cookie: __Host-mcpbox_device=DEV-ice_1; Path=/; "
	    "Secure; HttpOnly; SameSite=Strict; Max-Age=34560000"));
	assert_null(strstr(answer, "Strict-Transport-Security"));
	expect(
	    http("GET", "/api/me", BY_PROXY "\r\n" SECURE, NULL), 200, "admin");
	/* A cookie that came without the prefix may have been planted. */
	expect(http("GET", "/api/me", BY_PROXY "\r\n" LOGIN, NULL), 401,
	    "unauthenticated");
	expect(http("GET", "/api/me", SECURE, NULL), 401, "unauthenticated");
	expect(http("GET", "/api/me", "Host: panel.example\r\n" SECURE, NULL),
	    403, "forbidden_origin");
	expect(http("POST", "/api/login",
		   BY_PROXY "\r\nOrigin: http://panel.example:8443" JSON, good),
	    403, "forbidden_origin");
	expect(http("POST", "/api/login",
		   BY_PROXY "\r\nSec-Fetch-Site: same-site" JSON, good),
	    403, "forbidden_origin");
	expect(
	    http("POST", "/api/login",
		"Host: 127.0.0.1:8000\r\nX-Forwarded-Host: "
		"panel.example:8443\r\nOrigin: https://panel.example:8443" JSON,
		good),
	    403, "forbidden_origin");
	expect(http("GET", "/api/panel", BY_PROXY, NULL), 200,
	    "{\"origins\":[\"https://panel.example:8443\"]}");
	expect(http("GET", "/api/panel", "Host: 127.0.0.1", NULL), 200,
	    "{\"origins\":[\"https://panel.example:8443\"]}");
	expect(http("POST", "/api/logout", BY_PROXY "\r\n" SECURE, NULL), 204,
	    "Set-Cookie: __Host-mcpbox_session=; Path=/; Secure; HttpOnly; "
	    "SameSite=Strict; Max-Age=0\r\n");
}
