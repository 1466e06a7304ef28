/* The two programs that both confinement tests confine. */
#ifndef CONFINE_SPECS_H
#define CONFINE_SPECS_H

#include <seccomp.h>

#include "confine.h"

static const struct confine_spec plain = {
    .process = "test",
    .landlock = true,
    .landlock_signal_scope = true,
    .seccomp = true,
};

/* A program with rules of its own, one of which replaces a base rule. */
static const struct confine_rule own_rules[] = {
    {SCMP_SYS(openat), -1, 0, 0},
    {SCMP_SYS(kill), 1, UINT64_MAX, 0},
    {SCMP_SYS(capget), -1, 0, 0},
};
static const struct confine_spec with_rules = {
    .process = "test",
    .rules = own_rules,
    .nrules = sizeof(own_rules) / sizeof(own_rules[0]),
    .connect_unix = true,
    .landlock = true,
    .seccomp = true,
};

/* A client of one server elsewhere. The tests put in file and port. */
static uint16_t elsewhere_ports[] = {5432};
static const struct confine_spec elsewhere = {
    .process = "test",
    .connect_unix = true,
    .read_file = "/nonexistent/root.pem",
    .connect_ports = elsewhere_ports,
    .nports = 1,
    .landlock = true,
    .landlock_signal_scope = true,
    .seccomp = true,
};

#endif
