#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "approvals.h"
#include "calls.h"
#include "ids.h"
#include "jsonw.h"
#include "review.h"
#include "tables.h"
#include "terminal.h"

/* policies [set PROFILE | set tool=MODE module=MODE network=MODE] [days=N]
 * shows or sets how requests are reviewed. The vault alone is asked, so the
 * policies that are shown are those that it applies. */

static void
put_time(struct jsonw *w, const char *name, uint64_t us)
{
	char text[TIME_TEXT_LEN + 1];

	jsonw_name(w, name);
	if (us == 0) {
		jsonw_null(w);
	} else {
		time_text(us, text);
		jsonw_str(w, text);
	}
}

static enum ctl_status
print(const struct ctl *c, const struct ipc_policy_state *s)
{
	const uint8_t mode[REVIEW_QUEUES] = {s->tool, s->module, s->network};
	const char *profile = review_profile_name(mode);
	char hex[HEX32_LEN + 1], text[TIME_TEXT_LEN + 1];
	enum ctl_status status = CTL_DONE;
	struct jsonw w;
	struct buf b;

	for (unsigned q = 0; q < REVIEW_QUEUES; q++)
		if (review_mode_name(mode[q]) == NULL) {
			fputs("mcpboxctl: the vault's answer makes no sense\n",
			    stderr);
			return CTL_REFUSED;
		}
	hex_encode(s->seal.b, sizeof(s->seal.b), hex);
	buf_init(&b, 4096);
	if (c->json) {
		jsonw_open(&w, &b);
		jsonw_obj(&w);
		for (unsigned q = 0; q < REVIEW_QUEUES; q++)
			jsonw_kv_str(&w, review_queue_name(q),
			    review_mode_name(mode[q]));
		jsonw_name(&w, "profile");
		if (profile != NULL)
			jsonw_str(&w, profile);
		else
			jsonw_null(&w);
		put_time(&w, "set_at", s->since_us);
		jsonw_kv_strn(&w, "set_by", s->actor.p, s->actor.n);
		put_time(&w, "automatic_until", s->until_us);
		jsonw_kv_str(&w, "hash", hex);
		jsonw_obj_end(&w);
		status = tables_json(b.p, b.len);
		buf_free(&b);
		return status;
	}
	for (unsigned q = 0; q < REVIEW_QUEUES; q++)
		buf_putf(&b, "%-16s %s\n", review_queue_name(q),
		    review_mode_name(mode[q]));
	buf_putf(&b, "%-16s %s\n", "profile", profile != NULL ? profile : "-");
	if (s->since_us != 0) {
		time_text(s->since_us, text);
		buf_putf(&b, "%-16s %s by ", "set", text);
		show_text(&b, s->actor.p, s->actor.n, SHOW_LINE);
		buf_putc(&b, '\n');
	}
	if (s->until_us != 0) {
		time_text(s->until_us, text);
		buf_putf(&b, "%-16s %s%s\n", "automatic until", text,
		    s->until_us <= now_us() ? " (ended: require)" : "");
	}
	terminal_out(&b);
	buf_free(&b);
	return status;
}

static enum ctl_status
ask(const struct ctl *c, enum ipc_type type, const void *msg,
    struct ipc_frame *f, struct ipc_policy_state *s)
{
	enum ctl_status status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, type, msg, IPC_POLICY_STATE, f);
	struct err err;

	if (status == CTL_DONE && ipc_decode(f, s, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		ipc_frame_free(f);
		status = CTL_REFUSED;
	}
	return status;
}

/* Reads the words after `set`. */
static int
take(const struct ctl *c, struct ipc_policy_set *m)
{
	uint8_t mode[REVIEW_QUEUES] = {0};
	unsigned long days;
	char *end;

	m->days = REVIEW_DAYS_DEFAULT;
	for (int i = 2; i < c->nwords; i++) {
		const char *w = c->words[i], *eq = strchr(w, '=');
		unsigned q;

		if (eq == NULL) {
			if (i != 2 || review_profile(ipc_str(w), mode) == -1)
				return -1;
			continue;
		}
		if (strncmp(w, "days=", 5) == 0) {
			days = strtoul(eq + 1, &end, 10);
			if (eq[1] < '0' || eq[1] > '9' || *end != '\0' ||
			    days < 1 || days > REVIEW_DAYS_MAX)
				return -1;
			m->days = (uint32_t)days;
			continue;
		}
		for (q = 0; q < REVIEW_QUEUES; q++)
			if (strlen(review_queue_name(q)) == (size_t)(eq - w) &&
			    strncmp(
				w, review_queue_name(q), (size_t)(eq - w)) == 0)
				break;
		if (q == REVIEW_QUEUES || mode[q] != 0 ||
		    review_mode_find(ipc_str(eq + 1), &mode[q]) == -1)
			return -1;
	}
	m->tool = mode[REVIEW_TOOL];
	m->module = mode[REVIEW_MODULE];
	m->network = mode[REVIEW_NETWORK];
	return m->tool != 0 && m->module != 0 && m->network != 0 ? 0 : -1;
}

enum ctl_status
policies_command(const struct ctl *c)
{
	struct ipc_policy_state s;
	struct ipc_policy_get get = {0};
	struct ipc_policy_set set = {0};
	enum ctl_status status;
	struct ipc_frame f;

	if (c->nwords > 1 &&
	    (strcmp(c->words[1], "set") != 0 || take(c, &set) == -1))
		return CTL_USAGE;
	if ((status = ask(c, IPC_POLICY_GET, &get, &f, &s)) != CTL_DONE)
		return status;
	if (c->nwords > 1) {
		set.seen = s.seal;
		ipc_frame_free(&f);
		if ((status = ask(c, IPC_POLICY_SET, &set, &f, &s)) != CTL_DONE)
			return status;
	}
	status = print(c, &s);
	ipc_frame_free(&f);
	return status;
}
