/* The calls' settings, read from sandboxd.conf. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "call.h"
#include "conf.h"
#include "depot_conf.h"

/* Checks the settings, for -t (proc_check_with). 0, or -1 with why the process
 * would not start. */
int settings_check(const struct conf *, struct err *);
/* Returns the settings of the module installer (static). Ends the process if
 * they are invalid. */
const struct depot_conf *settings_installer(const struct conf *);
void settings_calls(const struct conf *, struct calls_conf *out);

#endif
