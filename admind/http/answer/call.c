#include <stdlib.h>
#include <string.h>

#include "web.h"

void
call_free(struct call *c)
{
	if (c == NULL)
		return;
	if (c->req != NULL)
		httpd_set_data(c->req, NULL);
	if (c->work != NULL)
		c->work_free(c->work);
	explicit_bzero(c, sizeof(*c));
	free(c);
}
