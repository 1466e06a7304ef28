#include <string.h>

#include "said.h"
#include "telemetry_fields.h"
#include "tlv.h"

int
said_read(struct ipc_bytes fields, struct said *said)
{
	struct tlv_reader r;
	struct tlv t;
	int rc;

	memset(said, 0, sizeof(*said));
	tlv_open(&r, fields.p, fields.n);
	while ((rc = tlv_next(&r, &t)) == 1)
		if (t.tag == SENT_WHY)
			said->why = ipc_bytes(t.p, t.n);
		else if (tlv_u64(&t,
			     t.tag == SENT_COUNT        ? &said->sent
				 : t.tag == SENT_STATUS ? &said->status
				 : t.tag == SENT_RETRY_S
				 ? &said->retry_s
				 : &said->rejected) == -1 ||
		    t.tag > SENT_REJECTED)
			return -1;
	return rc;
}
