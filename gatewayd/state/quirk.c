/* Allows deviations of known clients, each by a setting of its own. A request
 * that a quirk lets pass is logged, so that an administrator sees which client
 * needs the quirk, and can turn it off once that client is mended. */
#include "gateway.h"
#include "ids.h"
#include "log.h"
#include "quirk.h"

enum { LOG_MS = 60 * 1000 }; /* at most one line for each quirk in this time */

static const char *const names[MCP_QUIRKS] = {"quirk_header_version",
    "quirk_initialize_after_discover", "quirk_missing_accept"};

unsigned
quirk_settings(const struct conf *c)
{
	unsigned mask = 0;
	int i;

	for (i = 0; i < MCP_QUIRKS; i++)
		if (conf_bool(c, names[i]))
			mask |= 1u << i;
	return mask;
}

/* Logs the quirks that let a request pass. A client that needs a quirk needs it
 * with each request. So the first request is logged, and then, at most once a
 * minute, the number of further requests. */
void
quirk_note(struct gateway *gw, unsigned acted, const char *agent)
{
	uint64_t now = now_boot_ms();
	int i;

	for (i = 0; i < MCP_QUIRKS; i++) {
		if (!(acted & 1u << i))
			continue;
		if (gw->quirk[i].logged != 0 &&
		    now - gw->quirk[i].logged < LOG_MS) {
			gw->quirk[i].more++;
			continue;
		}
		log_event(LOG_LV_INFO, "quirk",
		    "%s let a request of \"%.80s\" pass, %u more since the "
		    "last line",
		    names[i], agent != NULL ? agent : "", gw->quirk[i].more);
		gw->quirk[i].logged = now;
		gw->quirk[i].more = 0;
	}
}
