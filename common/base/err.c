#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

int
err_set(struct err *e, enum failure f, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return -1;
	e->failure = f;
	e->sys_errno = 0;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
}

int
err_sys(struct err *e, enum failure f, const char *fmt, ...)
{
	int saved = errno;
	size_t used;
	va_list ap;

	if (e == NULL)
		return -1;
	e->failure = f;
	e->sys_errno = saved;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	snprintf(
	    e->text + used, sizeof(e->text) - used, ": %s", strerror(saved));
	errno = saved;
	return -1;
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char context[ERR_TEXT_MAX], inner[ERR_TEXT_MAX];
	va_list ap;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	memcpy(inner, e->text, sizeof(inner));
	/* Truncation is accepted: the outermost context matters most. */
	if (snprintf(e->text, sizeof(e->text), "%s: %s", context, inner) < 0)
		e->text[0] = '\0';
	return -1;
}
