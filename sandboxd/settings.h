/* sandboxd.conf as what the calls need of it. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "call.h"
#include "conf.h"

void settings_calls(const struct conf *, struct calls_conf *out);

#endif
