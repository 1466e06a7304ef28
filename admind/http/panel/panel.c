/*
 * GET / and GET /panel/NAME: the panel's files, the same for everybody.
 *
 * Anybody on this machine may ask for them, without a login: the form to sign
 * in is in them, and they are public anyway (the package has them). A program
 * that asks learns which version runs here. It changes nothing: the answer has
 * no cookie and no part of the request. The page gets its rights from REST
 * alone, as every other client (docs/decisions/0109).
 *
 * A file is for pages of this origin. A page of another origin that loads our
 * script is refused by Sec-Fetch-Site (guard.c), and by
 * Cross-Origin-Resource-Policy if its browser does not send that field.
 */
#include <string.h>

#include "bundle.h"
#include "jsonw.h"
#include "log.h"
#include "negotiate.h"
#include "panel.h"
#include "problem.h"
#include "reply.h"

enum { PLACES_MAX = 4096 }; /* ORIGINS_COUNT_MAX origins as JSON */

int
panel_load(struct web *web, const char *directory, struct err *e)
{
	int rc;

	if (*directory == '\0' || strcmp(directory, "-") == 0)
		return 0;
	rc = bundle_load(directory, &web->panel, e);
	if (rc == -1)
		return -1;
	if (rc == 1)
		log_event(LOG_LV_WARN, "panel",
		    "%s is not there: / is a page that says how to get the "
		    "panel",
		    directory);
	else
		log_event(LOG_LV_INFO, "panel", "%zu files of %s",
		    web->panel->n, directory);
	return 0;
}

void
panel_free(struct web *web)
{
	bundle_free(web->panel);
	web->panel = NULL;
}

/* Answers with a file: in gzip's form if the file has one and the client takes
 * it. 304 if the client has these very bytes. cache: its Cache-Control. */
static void
send_file(struct call *c, const struct bundle_file *f, const char *cache)
{
	const struct http1_request *r = httpd_request(c->req);
	bool gzip = f->gzip.p != NULL && negotiate_gzip(r);
	const struct bundle_form *form = gzip ? &f->gzip : &f->plain;

	c->cache = cache;
	httpd_header(c->req, "ETag", form->tag);
	if (f->gzip.p != NULL)
		httpd_header(c->req, "Vary", "Accept-Encoding");
	if (negotiate_known(r, form->tag)) {
		httpd_reply(c->req, 304, "", NULL, 0);
	} else {
		if (gzip)
			httpd_header(c->req, "Content-Encoding", "gzip");
		httpd_reply_kept(c->req, 200, f->type, form->p, form->n);
	}
	call_free(c);
}

void
panel_index(struct call *c)
{
	/* It names the files of this version, so it is asked for each time. */
	send_file(c, bundle_find(c->web->panel, "index.html"), "no-cache");
}

void
panel_file_get(struct call *c)
{
	const struct bundle_file *f = bundle_find(c->web->panel, c->id);

	/* index.html has one address, which is / */
	if (f == NULL || strcmp(f->name, "index.html") == 0)
		problem_send(c, FAILURE_NOT_FOUND,
		    "the panel has no file of this name",
		    "Open / again: it names the files of this version.");
	else
		send_file(c, f, "public, max-age=31536000, immutable");
}

/*
 * GET /api/panel: the names under which a browser can use a passkey here.
 *
 * The page asks before the login, to tell a person with a passkey where to go.
 * Any client may ask. It learns names that the certificates of the proxy have,
 * too.
 */
void
panel_places_get(struct call *c)
{
	struct jsonw w;
	struct buf b;
	size_t n;

	buf_init(&b, PLACES_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "origins");
	jsonw_arr(&w);
	for (const char *p = c->web->origins; *p != '\0';
	    p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		jsonw_strn(&w, p, n);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	reply_json(c, 200, &b);
	buf_free(&b);
}
