/*
 * The calls that only a runner whose server is granted hosts may make:
 * socket(2) for internet sockets, connect(2), and the options of these sockets.
 * See filter_net.c.
 */
#ifndef FILTER_NET_H
#define FILTER_NET_H

#include <seccomp.h>

/* Adds the rules. 0, or libseccomp's negative errno: -EINVAL if the kernel or
 * the library has no notifications. */
int filter_net_rules(scmp_filter_ctx);

#endif
