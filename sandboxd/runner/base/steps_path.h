/* The path on which a step of the confinement failed. */
#ifndef STEPS_PATH_H
#define STEPS_PATH_H

/* Notes the path that a step works on. If the step fails, this path and errno
 * are reported. */
void steps_path(const char *path);
const char *steps_failed_path(void);

#endif
