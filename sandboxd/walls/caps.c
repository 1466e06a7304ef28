/* See caps.h. */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"

int
caps_set(uint64_t keep)
{
	struct __user_cap_header_struct head = {
	    .version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	memset(data, 0, sizeof(data));
	data[0].effective = data[0].permitted = (uint32_t)keep;
	data[1].effective = data[1].permitted = (uint32_t)(keep >> 32);
	return (int)syscall(SYS_capset, &head, data);
}

int
caps_bound(uint64_t keep)
{
	int cap;

	for (cap = 0; cap < CAPS_END; cap++) {
		if (keep & (1ULL << cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == -1) {
			if (errno == EINVAL && cap > 0)
				break;
			return -1;
		}
	}
	return 0;
}

int
caps_none(void)
{
	struct __user_cap_header_struct head = {
	    .version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	int cap, held;

	if (caps_set(0) == -1)
		return -1;
	memset(data, 0xff, sizeof(data));
	if (syscall(SYS_capget, &head, data) == -1)
		return -1;
	if ((data[0].effective | data[0].permitted | data[0].inheritable |
		data[1].effective | data[1].permitted | data[1].inheritable) !=
	    0)
		goto held;
	for (cap = 0; cap < CAPS_END; cap++) {
		held = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (held == -1)
			break;
		if (held != 0)
			goto held;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) !=
		    0)
			goto held;
	}
	return 0;
held:
	errno = EPERM;
	return -1;
}
