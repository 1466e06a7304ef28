"""The parts of the tests: their names, when they run, and what each needs.

This file is a table. jobs.py says how a part is run, main.py which parts run.
A tier is one of:

    ALWAYS  `tests/run` runs the part
    FULL    `tests/run full` runs the part too, and `tests/run --touched` where a
            change touches one of the part's paths
    NAMED   the part runs only when its name is given
"""
import dataclasses
import fnmatch

ALWAYS, FULL, NAMED = "always", "full", "named"

#: All that is compiled into the daemons, and what describes how.
COMPILED = ("*.c", "*.h", "*.def", "*meson.build", "meson_options.txt", "sandboxd/runner/*", "sql/*")


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    tier: str
    says: str
    #: Kinds of contrib/packages that the part needs; what its builds need comes with
    #: these (install.py).
    packages: tuple = ()
    #: Patterns of files whose change makes a FULL part run. `*` matches `/` too.
    paths: tuple = ()

    def touched_by(self, files):
        """Those of the files that one of the part's patterns matches."""
        return [f for f in files if any(fnmatch.fnmatchcase(f, p) for p in self.paths)]


PARTS = (
    Part("lint", ALWAYS, "rules that a program can check; clang-tidy of what changed",
         ("lint", "pytest", "npm")),
    Part("unit", ALWAYS, "meson test: a release build and a sanitised one", ("unit", "sanitizer", "completion", "pytest")),
    Part("fuzz", ALWAYS, "each libFuzzer target: its corpus, then some seconds", ("sanitizer",)),
    Part("wire", ALWAYS, "broken JSON-RPC through the real socket, for a while", ("pytest", "npm", "serve")),
    Part("schema", ALWAYS, "JSON Schema beside its test suite, Ajv and jsonschema", ("pytest", "schema", "npm", "serve")),
    Part("database", ALWAYS, "constraints, roles and plans on a real PostgreSQL", ("pytest", "serve")),
    Part("integration", ALWAYS, "real daemons, driven from outside", ("pytest", "integration", "serve")),
    Part("defects", ALWAYS, "what was wrong with the system before, and the gate attacked", ("pytest", "serve")),
    Part("egress", ALWAYS, "what a tool reaches of the network, and what it does not",
         ("pytest", "egress", "npm", "serve")),
    Part("probes", ALWAYS, "what a tool can't do from inside the sandbox", ("pytest", "egress", "serve")),
    Part("local", ALWAYS, "what a program under mcpbox-run reaches, as an ordinary user", ("pytest", "local", "npm")),
    Part("clients", ALWAYS, "the official MCP client packages", ("pytest", "npm", "serve")),
    Part("issuers", ALWAYS, "people of an OpenID provider and of Access, with the official clients, through nginx",
         ("pytest", "npm", "integration", "serve")),
    Part("conformance", ALWAYS, "the official conformance suite, all revisions", ("pytest", "npm", "serve")),
    Part("kill", ALWAYS, "SIGKILL of every process and of PostgreSQL under load", ("pytest", "serve")),
    Part("quickstart", ALWAYS, "contrib/quickstart from nothing, again, stop, purge", ("pytest", "quickstart", "serve")),
    Part("runner", ALWAYS, "the program that runs these tests", ("pytest",)),

    Part("tidy", FULL, "clang-tidy of every file", ("lint",),
         (".clang-tidy", "tests/.clang-tidy", "tests/runner/tidy.py")),
    Part("package", FULL, "the Debian package: contents, hardening, SBOM; installed and purged in a root; quickstart with it",
         ("pytest", "package", "npm", "serve"),
         ("contrib/*", "docs/man/*", "*meson.build", "meson_options.txt", "common/conf/conf_keys.def", "common/loop/service*",
          "common/confine/*", "*/main.c", "admind/ctl/setup*", "sql/roles.sql", "tests/package/*")),
    Part("reproducible", FULL, "the package built again elsewhere has the same bytes", ("pytest", "package", "npm"),
         ("contrib/debian/*", "contrib/meson.build", "meson.build", "meson_options.txt", "*.def",
          "common/*.py", "docs/man/meson.build", "tests/package/*")),
    Part("large", FULL, "a million records, ten thousand tools, the largest imports: plans, and work a line",
         ("pytest", "serve"), ("sql/*", "admind/*", "gatewayd/*", "common/admin/*", "common/database/*", "common/ipc/*", "tests/database/*",
          "tests/harness/scale.py")),
    Part("wire-long", FULL, "broken JSON-RPC through the real socket, ten minutes", ("pytest", "npm", "serve"),
         ("gatewayd/*", "common/json/*", "common/scan/*", "common/parse/*", "common/http/*", "tests/wire/*")),
    Part("debian13", FULL, "builds and passes the unit tests on Debian 13", ("package",),
         (*COMPILED, "tests/unit/*", "tests/debian13", "contrib/packages", "contrib/debian/root")),
    Part("systemd", FULL, "the units under systemd in a container: hardening, order, what comes back",
         ("pytest", "package"),
         ("contrib/systemd/*", "contrib/conf/*", "contrib/meson.build", "common/confine/*", "common/loop/service*",
          "common/loop/proc*", "common/conf/conf_keys.def", "sandboxd/spawn/*", "*/main.c", "tests/systemd/*",
          "tests/harness/machine.py", "contrib/packages")),
    Part("vm", FULL, "booted Debian 12 and 13: package, limits, crashes, reboot, upgrade, purge",
         ("pytest", "package", "npm", "vm"),
         ("contrib/debian/*", "contrib/systemd/*", "contrib/conf/*", "contrib/nginx/*", "contrib/meson.build",
          "common/confine/*", "common/loop/service*", "common/loop/proc*", "common/ipc/ipc_table.h",
          "common/ipc/messages/*", "common/database/*",
          "sandboxd/*", "sql/*", "admind/ctl/*", "admind/daemon/main.c", "tests/vm/*", "tests/egress/test_peek*",
          "tests/probes/test_files.py", "tests/probes/test_network.py", "tests/probes/test_kernel.py",
          "tests/harness/machine.py", "tests/harness/installed.py", "tests/harness/traffic.py",
          "contrib/packages")),
    Part("remote", FULL, "the Cloudflare Worker in workerd: clients, a provider upstream, attacks (300 MB)",
         ("pytest", "npm", "integration", "serve"),
         ("contrib/cloudflare/*", "contrib/nginx/*", "tests/remote/*", "tests/harness/clients/browser.py",
          "tests/harness/played/mcpbox.py", "tests/harness/played/openid.py")),
    Part("browser", FULL, "passkeys of a real Chromium (440 MB)", ("pytest", "browser", "serve"),
         ("admind/vault/passkeys/*", "admind/vault/*/passkey*", "admind/http/changes/passkeys.c",
          "tests/browser/*", "tests/harness/clients/chromium.py", "tests/integration/admin/test_passkeys.py")),
    Part("panel", FULL, "the panel in a real Chromium: each page, its stories, hostile content (440 MB)",
         ("pytest", "browser", "npm", "egress", "serve"),
         ("admind/panel/*", "admind/http/*", "docs/openapi.yaml", "contrib/instance", "contrib/nginx/mcpbox-panel.conf",
          "tests/panel/*", "tests/harness/house.py", "tests/harness/clients/chromium.py", "tests/harness/clients/page.py")),

    Part("hosts", NAMED, "the programs people use: Inspector, Claude Code, mcp-remote (700 MB)",
         ("pytest", "npm", "serve")),
    Part("bench", NAMED, "compares with other ways to start a process, and connects with and without egress;"
         " judges speed (with a browser: 440 MB)", ("bench", "browser", "npm", "pytest", "egress", "serve")),
    Part("soak", NAMED, "what is left after MCPBOX_SOAK_CALLS calls (100000)", ("pytest", "serve")),
    Part("fuzz-long", NAMED, "each libFuzzer target, ten minutes", ("sanitizer",)),
)

BY_NAME = {p.name: p for p in PARTS}


def of_tier(*tiers):
    return [p.name for p in PARTS if p.tier in tiers]
