/* See rules.h. */
#include <sys/syscall.h>

#include <fcntl.h>
#include <unistd.h>

#include "rules.h"

#define NET_BIND_TCP    (1ULL << 0) /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT  (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL    (1ULL << 1)

struct ruleset {
	uint64_t fs;
	uint64_t net;   /* ABI 4 */
	uint64_t scope; /* ABI 6 */
};

int
rules_abi(void)
{
	long abi;

	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);
	return abi < 1 ? 0 : (int)abi;
}

uint64_t
rules_known(int abi)
{
	uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1; /* ABI 1 */

	if (abi >= 2)
		all |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		all |= RULES_TRUNCATE;
	if (abi >= 5)
		all |= RULES_IOCTL_DEV;
	return all;
}

int
rules_new(int abi, bool tcp)
{
	struct ruleset attr = {.fs = rules_known(abi)};
	size_t size = sizeof(attr.fs);

	if (abi >= 4) {
		attr.net = tcp ? NET_BIND_TCP | NET_CONNECT_TCP : 0;
		size = sizeof(attr.fs) + sizeof(attr.net);
	}
	if (abi >= 6) {
		attr.scope = SCOPE_ABSTRACT | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

int
rules_allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights};
	int rc;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd == -1)
		return -1;
	rc = (int)syscall(SYS_landlock_add_rule, ruleset,
	    LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	(void)close(rule.parent_fd);
	return rc;
}

int
rules_enter(int ruleset)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
