/* Where a step of confinement was when it failed. */
#ifndef STEPS_PATH_H
#define STEPS_PATH_H

/* Notes the path a step works on, which is reported if it fails; errno says
 * why. */
void steps_path(const char *path);
const char *steps_failed_path(void);

#endif
