/*
 * mcpbox_guide: docs/TOOLS.md, as it was when this program was built. It is
 * text for a model, so content[0] is the text itself, not JSON.
 */
#include "guide.h"
#include "jobs.h"
#include "manage.h"
#include "step.h"

void
manage_guide(struct job *j)
{
	struct jsonw w;

	job_body(j, &w, guide_text, guide_len);
	jsonw_name(&w, "structuredContent");
	jsonw_obj(&w);
	jsonw_kv_strn(&w, "guide", guide_text, guide_len);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	if (j->body.failed)
		job_fail(j, FAILURE_BUSY, "out of memory");
	else
		job_result(j);
}
