/*
 * The HTTP side: checks Host, Origin, path and method of each request.
 */
#ifndef FRONT_H
#define FRONT_H

#include "httpd.h"

/* arg: the struct gateway. */
extern const struct httpd_handlers front_handlers;

#endif
