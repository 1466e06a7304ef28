/* Endpoints: named parts of the catalogue with addresses of their own
 * (docs/decisions/0102). admind tells gateways which there are. */
#ifndef IPC_MESSAGES_ENDPOINTS_H
#define IPC_MESSAGES_ENDPOINTS_H

/* clang-format off */
#define IPC_MESSAGES_ENDPOINTS(M) \
M(280, GW_ENDPOINTS, gw_endpoints, EVT, ADMIND, GATEWAY, OPEN, IPC_BLOB_MAX, "the endpoints of this listener; sent before each GW_ACCESS")

#define IPC_FIELDS_gw_endpoints(F, S) \
F(S, blob, list, "TLV: a record of enum gw_endpoint_field for each, as fields GW_ENDPOINT; any other path is unknown")
/* clang-format on */

#endif
