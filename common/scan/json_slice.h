/* Internal to common/scan. */
#ifndef JSON_SLICE_H
#define JSON_SLICE_H

#include <stdint.h>

/* Returns the next code point of the inside of a string that the scan
 * accepted. */
uint32_t json_slice_point(const uint8_t **);

#endif
