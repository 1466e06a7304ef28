/*
 * Versions of kind http. Refuses arguments of mcpbox_create_tool and
 * mcpbox_update_tool that can't be combined with a specification, and asks
 * admind-check which fields follow from the specification.
 */
#include "draft.h"
#include "management_tools.h"
#include "step.h"
#include "version.h"
#include "versions.h"

/* Checks the fields of a declared REST call. Fields that follow from the
 * specification can't be given as arguments. Returns NULL, or the error. */
const char *
manage_http_wrong(struct job *j, const struct draft *d, struct ipc_bytes *spec)
{
	static const uint8_t follow[] = {
	    MF_CODE, MF_EXECUTABLE, MF_INPUT_SCHEMA};
	static const uint8_t sets[] = {MF_MODULE, MF_SECRET, MF_REQUIRE};
	struct ipc_bytes fields = ipc_bytes(j->fields.p, j->fields.len), f;
	bool extra = false;

	for (size_t i = 0; i < sizeof(follow); i++)
		extra = extra || job_field(j, follow[i], &f) == 1;
	for (size_t i = 0; i < sizeof(sets); i++)
		extra = extra || (job_field(j, sets[i], &f) == 1 && f.n > 0);
	if (extra)
		return "a tool of kind http has spec, from which input_schema, "
		       "secrets and requires follow, but no python_code, "
		       "executable and modules";
	if (draft_kind_before(d) != DRAFT_HTTP &&
	    job_field(j, MF_SPEC, &f) != 1)
		return "a tool of kind http needs spec";
	if (draft_field(d, fields, MF_SPEC, VERSION_SPEC, spec) == 0)
		return "a tool of kind http needs spec";
	return NULL;
}

/* Returns `confirm` for CHECK_HTTP: 0 not given, 1 false, 2 true. */
static uint8_t
confirm_asked(struct job *j)
{
	uint64_t v = job_number(j, MF_CONFIRM, UINT64_MAX);

	return v == UINT64_MAX ? 0 : v == 0 ? 1 : 2;
}

void
manage_http_check(struct job *j, struct ipc_bytes spec,
    void (*next)(struct job *, struct ipc_bytes))
{
	job_check_http(j, spec, confirm_asked(j), next);
}
