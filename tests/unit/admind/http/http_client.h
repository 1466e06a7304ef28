/* The browser of a test of admind-http. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stdint.h>

extern uint16_t http_port;  /* of admind-http, on 127.0.0.1 */
extern char answer[262144]; /* the last one, whole */

/* Sends a request on a connection of its own. fields: header lines, separated
 * by CRLF. body: NULL for none. Returns the connection; a fault ends the test.
 */
int http_send(
    const char *method, const char *path, const char *fields, const char *body);
/* Reads the whole answer and closes the connection. Returns the status. */
int http_read(int connection);
/* Does both. */
int http(
    const char *method, const char *path, const char *fields, const char *body);

#endif
