/*
 * Prints a plan and a report: as text for people, as JSON for programs. One
 * table says the layers, so that text, JSON and the man page agree.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "explain.h"
#include "jsonw.h"
#include "netgrant.h"
#include "plan.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes of a plan with all lists full: folders, kept paths and variables. */
enum { JSON_MAX = 4 << 20 };

static const struct {
	const char *name, *says;
} layers[] = {
    {"namespaces", "user, mount, pid, network, ipc, uts, cgroup"},
    {"root", "a new tmpfs, read-only; old root detached"},
    {"capabilities", "none, none to be had; no_new_privs"},
    {"seccomp",
	"refuses mounts, namespaces, keys, bpf, io_uring, userfaultfd, "
	"perf, TIOCSTI, set-user-ID modes, rare sockets"},
    {"descriptors", "0, 1 and 2; a terminal is a new one"},
    {"life", "all processes end with mcpbox-run and with the program"},
};

static const char *
unit(uint64_t n, char text[32])
{
	static const char units[] = "KMG";
	int i = -1;

	if (n == 0)
		return "no limit";
	while (n % 1024 == 0 && i < 2) {
		n /= 1024;
		i++;
	}
	(void)snprintf(text, 32, "%llu%.1s", (unsigned long long)n,
	    i < 0 ? "" : units + i);
	return text;
}

static const char *
memory_by(const struct plan *p, const struct plan_layers *l)
{
	if (p->memory == 0)
		return "none";
	return l->cgroup ? "cgroup, of all processes"
			 : "rlimit, of each process";
}

static void
print_network(const struct plan *p)
{
	struct ipc_bytes list = ipc_bytes(p->net.p, p->net.len);
	struct netgrant g = {.proto = NETGRANT_TCP};

	(void)printf("\nnetwork      %slocalhost is the program's own\n",
	    p->nhosts == 0 ? "none; " : "by TCP to these hosts; ");
	while (netgrant_next(&list, &g, NULL) == 1) {
		(void)printf("  connects   %.*s port ", (int)g.host.n,
		    (const char *)g.host.p);
		if (g.port == 0)
			(void)printf("80 and 443\n");
		else
			(void)printf("%u\n", g.port);
	}
	for (size_t i = 0; i < p->nports; i++)
		(void)printf(
		    "  serves     127.0.0.1:%u of this machine\n", p->port[i]);
}

static void
print_text(const struct plan *p, const struct plan_layers *l)
{
	char text[32];
	size_t i;

	(void)printf("program      ");
	for (i = 0; p->argv[i] != NULL; i++)
		(void)printf("%s%s", i > 0 ? " " : "", p->argv[i]);
	(void)printf(
	    "\n\nfiles\n  read-only  /usr /bin /lib* /sbin, parts of "
	    "/etc\n  own        /tmp /var/tmp %s /dev/shm (tmpfs, %s each), "
	    "/dev, /proc\n",
	    p->home, unit(p->tmp, text));
	for (i = 0; i < p->nfolders; i++)
		(void)printf("  %s  %s%s\n",
		    p->folder[i].writable ? "writable " : "read-only",
		    p->folder[i].path, i == 0 ? " (current folder)" : "");
	for (i = 0; i < p->nfiles; i++)
		(void)printf("  read-only  %s\n", p->file[i].path);
	for (i = 0; i < p->nkept; i++)
		if (p->kept[i].there)
			(void)printf("  %s  %s\n",
			    p->kept[i].writable ? "in place " : "read-only",
			    p->kept[i].path);
	if (p->nkept > 0)
		(void)printf("  set aside  at the end, if the program made "
			     "them:\n");
	for (i = 0; i < p->nkept; i++)
		if (!p->kept[i].there)
			(void)printf("             %s\n", p->kept[i].path);
	print_network(p);
	(void)printf("\nenvironment\n");
	for (i = 0; i < p->nenv; i++)
		(void)printf(
		    "  %.*s\n", (int)strcspn(p->env[i], "="), p->env[i]);
	(void)printf("\nlimits\n  memory     %s", unit(p->memory, text));
	if (p->memory != 0)
		(void)printf(" (%s)", memory_by(p, l));
	(void)printf("\n  processes  %llu\n", (unsigned long long)p->processes);
	(void)printf("  a file     %s\n  core files none\n\nlayers\n",
	    unit(p->file_size, text));
	for (i = 0; i < LENGTH(layers); i++)
		(void)printf("  %-12s %s\n", layers[i].name, layers[i].says);
	if (l->landlock > 0)
		(void)printf("  %-12s ABI %d\n", "landlock", l->landlock);
	else
		(void)printf("  %-12s missing in this kernel; the mounts hold "
			     "without it\n",
		    "landlock");
}

static void
put_paths(struct jsonw *w, const struct plan *p)
{
	jsonw_name(w, "folders");
	jsonw_arr(w);
	for (size_t i = 0; i < p->nfolders; i++) {
		jsonw_obj(w);
		jsonw_kv_str(w, "path", p->folder[i].path);
		jsonw_kv_bool(w, "writable", p->folder[i].writable);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	jsonw_name(w, "files");
	jsonw_arr(w);
	for (size_t i = 0; i < p->nfiles; i++)
		jsonw_str(w, p->file[i].path);
	jsonw_arr_end(w);
	jsonw_name(w, "kept");
	jsonw_arr(w);
	for (size_t i = 0; i < p->nkept; i++) {
		jsonw_obj(w);
		jsonw_kv_str(w, "path", p->kept[i].path);
		jsonw_kv_str(w, "how",
		    !p->kept[i].there         ? "set aside"
			: p->kept[i].writable ? "in place"
					      : "read-only");
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void
put_network(struct jsonw *w, const struct plan *p)
{
	struct ipc_bytes list = ipc_bytes(p->net.p, p->net.len);
	struct netgrant g = {.proto = NETGRANT_TCP};

	jsonw_name(w, "network");
	jsonw_obj(w);
	jsonw_name(w, "hosts");
	jsonw_arr(w);
	while (netgrant_next(&list, &g, NULL) == 1) {
		jsonw_obj(w);
		jsonw_kv_strn(w, "host", g.host.p, g.host.n);
		jsonw_name(w, "ports");
		jsonw_arr(w);
		if (g.port == 0) {
			jsonw_int(w, 80);
			jsonw_int(w, 443);
		} else
			jsonw_int(w, g.port);
		jsonw_arr_end(w);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	jsonw_name(w, "published");
	jsonw_arr(w);
	for (size_t i = 0; i < p->nports; i++)
		jsonw_int(w, p->port[i]);
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

static void
put_limits(struct jsonw *w, const struct plan *p, const struct plan_layers *l)
{
	jsonw_name(w, "limits");
	jsonw_obj(w);
	jsonw_name(w, "memory");
	jsonw_u64(w, p->memory);
	jsonw_kv_str(w, "memory_by", memory_by(p, l));
	jsonw_name(w, "processes");
	jsonw_u64(w, p->processes);
	jsonw_name(w, "tmp");
	jsonw_u64(w, p->tmp);
	jsonw_name(w, "file_size");
	jsonw_u64(w, p->file_size);
	jsonw_obj_end(w);
}

static void
print_json(const struct plan *p, const struct plan_layers *l)
{
	struct buf b;
	struct jsonw w;

	buf_init(&b, JSON_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "program");
	jsonw_arr(&w);
	for (size_t i = 0; p->argv[i] != NULL; i++)
		jsonw_str(&w, p->argv[i]);
	jsonw_arr_end(&w);
	jsonw_kv_str(&w, "home", p->home);
	put_paths(&w, p);
	put_network(&w, p);
	jsonw_name(&w, "environment");
	jsonw_arr(&w);
	for (size_t i = 0; i < p->nenv; i++)
		jsonw_strn(&w, p->env[i], strcspn(p->env[i], "="));
	jsonw_arr_end(&w);
	put_limits(&w, p, l);
	jsonw_name(&w, "layers");
	jsonw_obj(&w);
	for (size_t i = 0; i < LENGTH(layers); i++)
		jsonw_kv_str(&w, layers[i].name, layers[i].says);
	jsonw_kv_int(&w, "landlock", l->landlock);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	(void)printf("%.*s\n", (int)b.len, (const char *)b.p);
	buf_free(&b);
}

void
explain_print(const struct plan *p, const struct plan_layers *l)
{
	if (p->json)
		print_json(p, l);
	else
		print_text(p, l);
}

static void
put_aside(struct jsonw *w, const struct buf *lines)
{
	const char *at = (const char *)lines->p;
	const char *const end = at + lines->len;
	const char *name;

	jsonw_name(w, "set_aside");
	jsonw_arr(w);
	for (; at < end; at = name + strlen(name) + 1) {
		name = at + strlen(at) + 1;
		jsonw_obj(w);
		jsonw_kv_str(w, "path", at);
		jsonw_name(w, "name");
		if (*name != '\0')
			jsonw_str(w, name);
		else
			jsonw_null(w);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

void
explain_report(const struct plan *p, const struct plan_report *r)
{
	struct buf b;
	struct jsonw w;

	(void)p;
	buf_init(&b, JSON_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_int(&w, "status", r->status);
	jsonw_kv_int(&w, "signal", r->signal);
	put_aside(&w, r->aside);
	jsonw_name(&w, "denied");
	jsonw_arr(&w);
	for (size_t i = 0; i < r->ndenied; i++) {
		jsonw_obj(&w);
		jsonw_kv_str(&w, "host", r->denied[i].host);
		jsonw_kv_int(&w, "port", r->denied[i].port);
		jsonw_kv_str(&w, "why", r->denied[i].why);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)fprintf(stderr, "%.*s\n", (int)b.len, (const char *)b.p);
	buf_free(&b);
}
