/*
 * A credential comes in one of two fields:
 *
 *	Authorization: Bearer TOKEN (RFC 6750 section 2.1), at every listener
 *	Cf-Access-Jwt-Assertion: TOKEN, where an issuer has that header
 *
 * On the local listener a request without a credential is `local`, which may do
 * everything. So a credential that is not read must not count as missing: a
 * person that Cloudflare Access let in with few rights would have all rights,
 * for example after a change of the access document. Such a request is always
 * refused, before admind is asked anything:
 *
 *	an assertion that no issuer here reads	401
 *	an empty assertion			401
 *	a credential above CREDENTIAL_MAX	401
 *	an assertion beside a token of ours	400
 *	a bearer token after a tab		400
 *
 * Nothing chooses between two credentials: a proxy that checked one would vouch
 * for the other. http1 refuses a field that comes twice (http1_single). Another
 * scheme than Bearer does not count as a credential, nor does Bearer without a
 * token.
 *
 * Cloudflare Access adds its assertion to every request, so two requests with
 * both fields have one credential of ours:
 *
 * - An API token, where no assertion is read: Access is a second lock there.
 *   The token says who the client is, and never that it is `local`.
 * - An assertion at the tunnel, where it is read, beside a bearer token of
 *   Access itself. The tunnel takes only API tokens and JWTs, and this token
 *   has the form of neither.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "credential_read.h"

#define ASSERTION        "cf-access-jwt-assertion"
#define API_TOKEN_PREFIX "mbt_" /* admind/core/token.h */

/* Returns all that follows the scheme Bearer, or NULL for another scheme. */
static const char *
after_scheme(const char *authorization)
{
	if (authorization == NULL ||
	    strncasecmp(authorization, "Bearer", 6) != 0 ||
	    (authorization[6] != '\0' && authorization[6] != ' ' &&
		authorization[6] != '\t'))
		return NULL;
	return authorization + 6;
}

static int
refuse(struct refusal *no, enum failure f, const char *text)
{
	refusal_set(no, f, 0, text);
	return -1;
}

static int
check_length(const char *text, const char *header, struct refusal *no)
{
	char why[MCP_MESSAGE_MAX];
	size_t n = strlen(text);

	if (n <= CREDENTIAL_MAX)
		return 0;
	snprintf(why, sizeof(why),
	    "The credential in %s has %zu bytes; at most %d are read.", header,
	    n, CREDENTIAL_MAX);
	return refuse(no, FAILURE_UNAUTHENTICATED, why);
}

/* Reads the assertion, which has no scheme before it. */
static int
read_assertion(
    const struct gateway *gw, const char *assertion, struct refusal *no)
{
	if (!gw->access.told) {
		refusal_away(no, gw, false);
		return -1;
	}
	if (!gw->access.assertion)
		return refuse(no, FAILURE_UNAUTHENTICATED,
		    "Cf-Access-Jwt-Assertion is not read at this listener.");
	if (assertion[0] == '\0')
		return refuse(no, FAILURE_UNAUTHENTICATED,
		    "Cf-Access-Jwt-Assertion is empty.");
	return check_length(assertion, "Cf-Access-Jwt-Assertion", no);
}

bool
credential_is_api_token(const char *bearer)
{
	return strncmp(bearer + strspn(bearer, " "), API_TOKEN_PREFIX,
		   strlen(API_TOKEN_PREFIX)) == 0;
}

/* Tells whether the tunnel takes no bearer token of this form. An assertion
 * that is read may be beside such a token. A JWT has two dots (RFC 7515 section
 * 7.1). */
static bool
is_foreign(const struct gateway *gw, const char *bearer)
{
	unsigned dots = 0;

	for (const char *p = bearer; *p != '\0'; p++)
		if (*p == '.')
			dots++;
	return gw->listener == LISTENER_TUNNEL && dots != 2 &&
	    !credential_is_api_token(bearer);
}

int
credential_read(const struct gateway *gw, const struct http1_request *r,
    const char **text, enum credential_via *via, struct refusal *no)
{
	const char *assertion = http1_field(r, ASSERTION, NULL);
	const char *bearer =
	    after_scheme(http1_field(r, "authorization", NULL));

	if (assertion != NULL && bearer != NULL && gw->access.told) {
		if (!gw->access.assertion && credential_is_api_token(bearer))
			assertion = NULL;
		else if (gw->access.assertion && is_foreign(gw, bearer))
			bearer = NULL;
	}
	if (assertion != NULL && bearer != NULL && gw->access.told)
		return refuse(no, FAILURE_INVALID_REQUEST,
		    "The request has two credentials, in Authorization and in "
		    "Cf-Access-Jwt-Assertion.");
	if (assertion != NULL) {
		if (read_assertion(gw, assertion, no) < 0)
			return -1;
		*text = assertion;
		*via = VIA_ASSERTION;
		return 0;
	}
	*via = VIA_AUTHORIZATION;
	*text = "";
	if (bearer == NULL)
		return 0;
	bearer += strspn(bearer, " ");
	if (bearer[0] == '\t')
		return refuse(no, FAILURE_INVALID_REQUEST,
		    "Authorization has a tab between Bearer and the token.");
	if (check_length(bearer, "Authorization", no) < 0)
		return -1;
	*text = bearer;
	return 0;
}

bool
credential_read_none(const struct gateway *gw, const struct http1_request *r)
{
	return http1_field(r, "authorization", NULL) == NULL &&
	    ((gw->access.told && !gw->access.assertion) ||
		http1_field(r, ASSERTION, NULL) == NULL);
}
