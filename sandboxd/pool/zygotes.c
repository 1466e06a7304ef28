/* See zygotes.h. */
#include <sys/socket.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "starter.h"
#include "zygotes.h"

/* A zygote that does not read for this long is stuck. */
enum { SEND_S = 10 };

void
zygotes_init(struct zygotes *zs)
{
	memset(zs, 0, sizeof(*zs));
	zs->current.sock = zs->coming.sock = zs->leaving.sock = -1;
}

static void
give_up_coming(struct zygotes *zs, const char *why)
{
	log_event(LOG_LV_ERR, "zygote_failed", "%s", why);
	close(zs->coming.sock);
	zs->coming.sock = -1;
	/* The pid is not reused before reap_strays() reaps the zygote and sets
	 * pid to 0. */
	if (zs->coming.pid != 0)
		(void)kill(zs->coming.pid, SIGKILL);
}

int
zygotes_start(struct zygotes *zs, struct err *e)
{
	struct timeval tv = {.tv_sec = SEND_S};
	struct zygote z = {.serial = zs->serials + 1};

	if (zs->leaving.sock >= 0)
		return err_set(e, FAILURE_BUSY,
		    "the zygote before this one has not ended yet");
	if (zs->coming.sock >= 0)
		give_up_coming(zs, "it did not report in time");
	if (starter_zygote(&z.sock, &z.pid, e) != 0)
		return -1;
	if (setsockopt(z.sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) != 0) {
		close(z.sock);
		return err_sys(e, FAILURE_INTERNAL, "setsockopt");
	}
	zs->serials++;
	zs->coming = z;
	return 0;
}

void
zygotes_asked(struct zygotes *zs, uint32_t slot)
{
	zs->asked[slot] = zs->current.serial;
	zs->current.forking++;
}

static void
let_go(struct zygotes *zs)
{
	if (zs->leaving.sock < 0 || zs->leaving.forking > 0)
		return;
	close(zs->leaving.sock);
	zs->leaving.sock = -1;
}

int
zygotes_answered(struct zygotes *zs, struct zygote *z, uint32_t slot)
{
	if (slot >= SLOTS_MAX || z->forking == 0 ||
	    zs->asked[slot] != z->serial)
		return -1;
	zs->asked[slot] = 0;
	z->forking--;
	let_go(zs);
	return 0;
}

int
zygotes_reported(struct zygotes *zs, struct zygote *z)
{
	if (z != &zs->coming)
		return -1;
	zs->leaving = zs->current;
	zs->current = zs->coming;
	zs->coming.sock = -1;
	let_go(zs);
	return 0;
}

int
zygotes_gone(struct zygotes *zs, struct zygote *z, const char *why)
{
	if (z != &zs->coming || zs->current.sock < 0)
		return -1;
	give_up_coming(zs, why);
	return 0;
}
