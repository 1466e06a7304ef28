#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "origin.h"
#include "policy.h"

/*
 * The policy of a file of the panel: it runs the panel's own files. No script
 * of an attribute, of a text or of another place runs, and no text becomes HTML
 * (the page may make no trusted type). So a hostile text that a page shows
 * wrongly still does nothing.
 *
 * The file may ask this origin and the origin of mcp_url, since the page
 * Playground is an MCP client of the local gateway (decision 0116). Only root
 * writes that setting. An attacker gains little by the second origin: a script
 * that runs here against all of the above has the person's rights already. It
 * could send the page's text to the program that listens at that address, which
 * is a program of the same machine.
 *
 * The text of the setting goes into a header. origin_read lets through no byte
 * that ends a source or a directive there, so a setting adds one source and
 * nothing else.
 */
#define BEFORE                                     \
	"default-src 'none'; script-src 'self'; "  \
	"style-src 'self'; img-src 'self' data:; " \
	"connect-src 'self'"
#define AFTER                                     \
	"; base-uri 'none'; form-action 'none'; " \
	"frame-ancestors 'none'; "                \
	"require-trusted-types-for 'script'; "    \
	"trusted-types 'none'"

static char panel_policy[sizeof(BEFORE) + 1 + ORIGIN_MAX + sizeof(AFTER)] =
    BEFORE AFTER;

/* A path as the gateway has them, without a query or a fragment. */
#define PATH_CHARS                                                       \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" \
	"-._~/"

static bool
url_ok(const char *url)
{
	size_t n = origin_read(url);

	/* A source of the policy can't be an IPv6 address (CSP3, host-part). */
	if (n == 0 || url[n] != '/' || strchr(url, '[') != NULL)
		return false;
	return url[n + strspn(url + n, PATH_CHARS)] == '\0';
}

int
policy_check(const char *mcp_url, struct err *e)
{
	if (strcmp(mcp_url, "-") == 0 || url_ok(mcp_url))
		return 0;
	return err_set(e, FAILURE_INVALID_PARAMS,
	    "mcp_url is an address such as http://127.0.0.1:8002/mcp: a host "
	    "in lower case and no IPv6 address, a path, no port 80 of http or "
	    "443 of https; or - for none");
}

void
policy_make(const char *mcp_url)
{
	size_t n = origin_read(mcp_url);

	snprintf(panel_policy, sizeof(panel_policy), "%s%s%.*s%s", BEFORE,
	    n > 0 ? " " : "", (int)n, mcp_url, AFTER);
}

const char *
policy_of_panel(void)
{
	return panel_policy;
}
