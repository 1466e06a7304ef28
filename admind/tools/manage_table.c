/* The handler of each management tool: made from the rows of
 * management_tool.def. */
#include "manage.h"
#include "step.h"
#include "versions.h"

const struct manage_tool manage_tools[] = {
#define M(name, run, scope, reach, object, flags) \
	{#name, run, MANAGEMENT_##object},
#include "management_tool.def"
#undef M
    {NULL, NULL, MANAGEMENT_NONE},
};
