/*
 * GET /: the panel. If no panel is installed: a page that says which program
 * answers here and how to get the panel.
 *
 * That page has the same bytes for every client and holds nothing of the
 * request, so a link on any page may open it (ACCESS_CALLBACK). No script, no
 * style, no form: the policy that every answer has forbids each of them.
 *
 * The name localhost is redirected to the address that it means here. A browser
 * that goes to localhost would first ask a program that binds [::1] at our
 * port, as the same origin. Logins are only made at the address, so at
 * localhost a browser has no cookie and no second half (docs/decisions/0067).
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "guard.h"
#include "panel.h"
#include "problem.h"
#include "web.h"

enum { LOCATION_MAX = 64 }; /* http://, an address, a port, / */

static const char text[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>mcpbox: administration</title>\n"
    "<h1>mcpbox: administration</h1>\n"
    "<p>LLM clients write tools; people approve the exact content here; each "
    "call runs in a process of its own. This address serves the REST API of "
    "administrators and reviewers. The panel for browsers is not installed "
    "here.</p>\n"
    "<h2>To get the panel</h2>\n"
    "<p>Where mcpbox was built from its sources: install npm, configure the "
    "build with -Dpanel=enabled and build again. The Debian package has the "
    "panel. The setting panel of admind-http.conf names its directory, and "
    "this process reads it when it starts.</p>\n"
    "<h2>At a shell of this machine</h2>\n"
    "<p>As root; mcpboxctl(1) has all commands:</p>\n"
    "<pre>\n"
    "mcpboxctl status\n"
    "mcpboxctl approvals list\n"
    "mcpboxctl approvals show ID\n"
    "mcpboxctl approvals approve ID --hash HASH\n"
    "mcpboxctl administrators create NAME --role reviewer\n"
    "</pre>\n"
    "<h2>By REST</h2>\n"
    "<p>Sign in, then send the cookie and, as X-CSRF-Token, the answer's "
    "csrf_token with every request. login.json is {\"username\": \"NAME\", "
    "\"password\": \"PASSWORD\"}, and ADDRESS is this page's:</p>\n"
    "<pre>\n"
    "curl -c jar -H 'Content-Type: application/json' -d @login.json "
    "ADDRESS/api/login\n"
    "curl -b jar -H 'X-CSRF-Token: TOKEN' "
    "ADDRESS/api/approvals?state=pending\n"
    "</pre>\n"
    "<p>docs/openapi.yaml (/usr/share/doc/mcpbox/docs of the package) "
    "describes every address.</p>\n"
    "<ul>\n"
    "<li><a href=\"/health\">/health</a>: do the processes behind this one "
    "answer? For everybody.\n"
    "<li><a href=\"/api/health\">/api/health</a>: the whole state. It asks for "
    "a login, so a browser shows a refusal.\n"
    "</ul>\n";

void
page_get(struct call *c)
{
	const struct http1_request *r = httpd_request(c->req);
	const char *host, *port = "";
	char location[LOCATION_MAX];
	struct httpd_req *req = c->req;
	unsigned count;
	struct err e;

	if (guard_query(r->query, c->route->query, &c->params, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
		return;
	}
	host = http1_field(r, "host", &count);
	if (host != NULL && guard_localhost(host, &port)) {
		snprintf(location, sizeof(location), "http://%s%s/",
		    c->web->ipv6 ? "[::1]" : "127.0.0.1", port);
		httpd_header(req, "Location", location);
		call_free(c);
		httpd_reply(req, 307, "", NULL, 0);
		return;
	}
	if (c->web->panel != NULL) {
		panel_index(c);
		return;
	}
	call_free(c);
	httpd_reply(
	    req, 200, "text/html; charset=utf-8", text, sizeof(text) - 1);
}
