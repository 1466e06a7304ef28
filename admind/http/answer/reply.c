#include <stdio.h>
#include <string.h>

#include "crypto.h"
#include "guard.h"
#include "json_grammar.h"
#include "policy.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

/* The policy of data: if a browser shows it, it runs, loads and sends
 * nothing. */
static const char data_policy[] =
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'";
/* A page could ask a browser for these. The panel needs passkeys alone. */
static const char panel_permissions[] =
    "accelerometer=(), autoplay=(), camera=(), display-capture=(), "
    "encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), "
    "hid=(), idle-detection=(), magnetometer=(), microphone=(), midi=(), "
    "payment=(), picture-in-picture=(), publickey-credentials-create=(self), "
    "publickey-credentials-get=(self), screen-wake-lock=(), serial=(), "
    "usb=(), xr-spatial-tracking=()";

/*
 * Sets the fields of every answer. An answer is data, for this origin's scripts
 * only, unless it is a file of the panel. It is never cached (a shared
 * profile's back button would show it after logout) or framed, its type is
 * never guessed, and its address is in no Referer.
 */
void
reply_headers(struct httpd_req *req)
{
	const struct call *c = httpd_data(req);
	bool panel = c != NULL && c->cache != NULL;

	httpd_header(req, "Cache-Control", panel ? c->cache : "no-store");
	if (panel)
		httpd_header(req, "Permissions-Policy", panel_permissions);
	httpd_header(req, "X-Content-Type-Options", "nosniff");
	httpd_header(req, "X-Frame-Options", "DENY");
	httpd_header(req, "Referrer-Policy", "no-referrer");
	httpd_header(req, "Content-Security-Policy",
	    panel ? policy_of_panel() : data_policy);
	httpd_header(req, "Cross-Origin-Resource-Policy", "same-origin");
	httpd_header(req, "Cross-Origin-Opener-Policy", "same-origin");
}

/* A cookie's value, its names and its attributes. */
enum { COOKIE_MAX = DEVICE_TEXT_MAX + 160 };

/*
 * Sets a cookie. HttpOnly: no script reads the cookie. SameSite=Strict: no
 * other site's page makes a browser send the cookie. But a page of another port
 * of this host does, since another port is the same site. So the login's cookie
 * is only half a login, and the sign-in's half a ticket.
 *
 * By http on loopback the cookie is not Secure: this listener is plain HTTP,
 * and not every browser keeps a Secure cookie of such a page. At a name of
 * panel_origins the browser came by https. There the name begins with
 * GUARD_HTTPS, which browsers keep only with Secure, without Domain and with
 * Path=/. So a neighbouring name can't read the cookie or plant one, and
 * a page by http at this name can't either.
 */
void
reply_cookie(struct call *c, const char *name, struct ipc_bytes value,
    const char *path, uint64_t seconds)
{
	char text[COOKIE_MAX];

	snprintf(text, sizeof(text),
	    "%s%s=%.*s; Path=%s; %sHttpOnly; SameSite=Strict; Max-Age=%llu",
	    c->https ? GUARD_HTTPS : "", name, (int)value.n,
	    (const char *)value.p, c->https ? "/" : path,
	    c->https ? "Secure; " : "", (unsigned long long)seconds);
	httpd_header(c->req, "Set-Cookie", text);
	explicit_bzero(text, sizeof(text));
}

/*
 * Passes admind's JSON on as it is, but only if it is JSON: this process
 * promises the type, even if admind was taken over. The ETag is the SHA-256 of
 * the very bytes that are sent. A request for a change carries the ETag. So if
 * two administrators change an object at once, the later one gets an error and
 * reads the object again.
 */
void
reply_admind(struct call *c, struct ipc_frame *f, bool tagged)
{
	struct ipc_admin_json answer;
	char tag[HEX32_LEN + 3];
	struct ipc_hash hash;
	struct buf b;
	struct err e;

	if (f->type != IPC_ADMIN_JSON || ipc_decode(f, &answer, &e) < 0 ||
	    !utf8_valid(answer.json.p, answer.json.n) ||
	    !json_grammar_valid(answer.json.p, answer.json.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	if (tagged) {
		sha256(answer.json.p, answer.json.n, &hash);
		tag[0] = '"';
		hex_encode(hash.b, sizeof(hash.b), tag + 1);
		tag[HEX32_LEN + 1] = '"';
		tag[HEX32_LEN + 2] = '\0';
		httpd_header(c->req, "ETag", tag);
	}
	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, answer.json.p, answer.json.n);
	reply_json(c, 200, &b);
	buf_free(&b);
}

void
reply_json(struct call *c, int status, const struct buf *b)
{
	if (b->failed) {
		problem_send(c, FAILURE_INTERNAL, "out of memory", NULL);
		return;
	}
	httpd_reply(c->req, status, "application/json", b->p, b->len);
	call_free(c);
}

void
reply_empty(struct call *c, int status)
{
	httpd_reply(c->req, status, "", NULL, 0);
	call_free(c);
}
