/*
 * The HTTP side: lets in only requests that exist.
 */
#ifndef FRONT_H
#define FRONT_H

#include "httpd.h"

/* arg: the struct gateway. */
extern const struct httpd_handlers front_handlers;

#endif
