/* Where a step of confinement was when it failed. */
#ifndef STEPS_PATH_H
#define STEPS_PATH_H

/* A step reports the path it worked on when it fails; errno says why. */
void steps_path(const char *path);
const char *steps_failed_path(void);

#endif
