/* A test of test_http_api.c: the browser comes through a proxy. */
#ifndef HTTP_PROXIED_H
#define HTTP_PROXIED_H

/* An origin of the setting panel_origins, which the test's admind-http has. */
#define HTTP_PROXIED_ORIGIN "https://panel.example:8443"

void http_proxied(void **state);

#endif
