/* sandboxd.conf as what the calls need of it. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "call.h"
#include "conf.h"
#include "depot_conf.h"

/* For -t (proc_check_with): 0, or -1 with why the process would not start. */
int settings_check(const struct conf *, struct err *);
/* Ends the process if the settings of modules are none. Static. */
const struct depot_conf *settings_installer(const struct conf *);
void settings_calls(const struct conf *, struct calls_conf *out);

#endif
