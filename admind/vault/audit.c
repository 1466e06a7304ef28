#include "log.h"
#include "vault.h"

/* For events nobody waits on: they must at least be in our own log. */
static void
written(void *arg, struct ipc_frame *f, enum failure gone)
{
	if (f == NULL || f->type != IPC_OK)
		log_event(LOG_LV_WARN, "audit_lost",
		    "admind did not write an audit event");
}

/*
 * Each event also goes to our own log: a hostile admind can leave a row out of
 * its table, but not a line out of this process's journal.
 */
int
audit_event(struct vault *v, const char *actor, const char *action,
    const char *subject, const char *detail, ipc_answer_cb *cb, void *arg)
{
	struct ipc_audit_event e = {.actor = ipc_str(actor),
	    .action = ipc_str(action),
	    .subject = ipc_str(subject),
	    .detail = ipc_str(detail)};

	log_event(LOG_LV_INFO, action, "%s: %s %s", actor, subject, detail);
	if (callers_ask(
		v, IPC_AUDIT_EVENT, &e, cb != NULL ? cb : written, arg) == 0)
		return 0;
	log_event(LOG_LV_WARN, "audit_lost",
	    "admind is not there to write an audit event");
	return -1;
}
