#include "nat64.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log.h"

enum {
	/* Seconds for which an answer is used, whatever its TTL: the server
	 * that answers must not decide this. A machine seldom moves between
	 * networks, and one question per minute is no load for a server. */
	NAT64_FRESH_S = 60
};

static const char WELL_KNOWN[] = "ipv4only.arpa"; /* RFC 7050, section 8 */

struct nat64 {
	struct lookup *lookup;
	struct lookup_request *request; /* NULL: none under way */
	struct judge_prefixes prefixes;
	TAILQ_HEAD(, nat64_wait) waiting;
	bool told;
	time_t at_s; /* of the answer */
};

static time_t
now_s(void)
{
	struct timespec t;

	/* The time asleep counts: the machine may wake in another network. */
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec;
}

void
nat64_learn(const struct address *list, size_t n, struct judge_prefixes *out)
{
	/* RFC 7050, section 8.2. */
	static const uint8_t known[2][4] = {{192, 0, 0, 170}, {192, 0, 0, 171}};
	struct judge_prefixes found = {.n = 0};
	struct judge_prefix p;
	uint8_t inner[4];
	bool have;

	for (size_t i = 0; i < n; i++) {
		if (list[i].family != AF_INET6)
			continue;
		for (size_t k = 0; k < JUDGE_PREFIX_LENGTHS; k++) {
			p = (struct judge_prefix){.bits = judge_prefix_bits[k]};
			memcpy(p.b, list[i].b, p.bits / 8);
			judge_embedded(list[i].b, p.bits, inner);
			if (memcmp(inner, known[0], 4) != 0 &&
			    memcmp(inner, known[1], 4) != 0)
				continue;
			have = found.n == JUDGE_PREFIXES_MAX;
			for (size_t j = 0; j < found.n; j++)
				have |= found.prefix[j].bits == p.bits &&
				    address_prefix(
					found.prefix[j].b, p.b, p.bits);
			if (!have)
				found.prefix[found.n++] = p;
		}
	}
	*out = found;
}

static void
say(const struct judge_prefixes *p)
{
	char text[ADDRESS_TEXT];
	struct address a;

	for (size_t i = 0; i < p->n; i++) {
		a = (struct address){.family = AF_INET6};
		memcpy(a.b, p->prefix[i].b, sizeof(p->prefix[i].b));
		address_text(&a, text);
		log_event(LOG_LV_INFO, "nat64",
		    "this network leads to IPv4 by %s/%u", text,
		    p->prefix[i].bits);
	}
	if (p->n == 0)
		log_event(LOG_LV_INFO, "nat64",
		    "this network leads to IPv4 by no prefix any more");
}

/* Takes the answer. An answer without addresses says that there is no prefix.
 * If no answer came, the earlier prefixes stay, and for NAT64_FRESH_S no
 * connection waits again. So IPv6 still works while the name servers are away.
 */
static void
on_answer(
    void *arg, enum lookup_status status, const struct address *list, size_t n)
{
	struct nat64 *t = arg;
	struct judge_prefixes found = t->prefixes;
	struct nat64_wait *w;

	t->request = NULL;
	if (status == LOOKUP_OK || status == LOOKUP_MANY)
		nat64_learn(list, n, &found);
	else if (status == LOOKUP_NO_NAME)
		found = (struct judge_prefixes){.n = 0};
	if (found.n != t->prefixes.n ||
	    memcmp(found.prefix, t->prefixes.prefix,
		found.n * sizeof(found.prefix[0])) != 0) {
		t->prefixes = found;
		say(&found);
	}
	t->told = true;
	t->at_s = now_s();
	while ((w = TAILQ_FIRST(&t->waiting)) != NULL) {
		nat64_leave(w);
		w->cb(w->arg);
	}
}

struct nat64 *
nat64_open(struct lookup *lookup)
{
	struct nat64 *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->lookup = lookup;
	TAILQ_INIT(&t->waiting);
	return t;
}

void
nat64_close(struct nat64 *t)
{
	if (t == NULL)
		return;
	lookup_cancel(t->request);
	free(t);
}

const struct judge_prefixes *
nat64_prefixes(const struct nat64 *t)
{
	return &t->prefixes;
}

int
nat64_wait(struct nat64 *t, struct nat64_wait *w, nat64_cb *cb, void *arg)
{
	if (t->told && now_s() - t->at_s < NAT64_FRESH_S)
		return 0;
	if (t->request == NULL &&
	    (t->request = lookup_start(
		 t->lookup, WELL_KNOWN, AF_INET6, on_answer, t)) == NULL)
		return -1;
	w->at = t;
	w->cb = cb;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&t->waiting, w, link);
	return 1;
}

void
nat64_leave(struct nat64_wait *w)
{
	if (w->at != NULL)
		TAILQ_REMOVE(&w->at->waiting, w, link);
	w->at = NULL;
}
