#include <sys/socket.h>

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "journal.h"
#include "log.h"
#include "show.h"

enum {
	/* A longer message is cut. So a line fits into PIPE_BUF bytes, which a
	 * pipe takes as one piece (pipe(7)), unless most bytes are escaped. */
	MSG_MAX = 2048,
	/* An escaped byte has at most four bytes, or five in JSON, which
	 * doubles the backslash. 1024 is for the rest of the line. */
	LINE_MAX_BYTES = 5 * MSG_MAX + 1024,
	FIELD_MAX = 1024 /* of any journal field but the message, escaped */
};

static const char *log_proc = "mcpbox";
static enum log_format log_form = LOG_TEXT;
static enum log_level log_max = LOG_LV_INFO;
static bool log_prefix; /* JSON lines begin with <N>, for the journal */
static bool log_stream; /* stderr is a socket of the journal's */
static unsigned long log_lost;

/* A line being built on the stack; bytes that do not fit are dropped. */
struct line {
	char s[LINE_MAX_BYTES];
	size_t n;
};

static void
line_putc(struct line *l, char c)
{
	if (l->n < sizeof(l->s) - 1)
		l->s[l->n++] = c;
}

static void
line_puts(struct line *l, const char *s)
{
	while (*s != '\0')
		line_putc(l, *s++);
}

/*
 * Returns how many bytes at p form one character that may be shown as it is.
 * Such a character is no control and no backslash, shows something and does not
 * change how other characters are shown (show.h). 0: escape one byte. A
 * backslash is doubled, so different messages never get the same text.
 *
 * Untrusted text comes here (tool names, SQL errors, peers' messages). If a
 * newline were kept, its author could write a line of his own into the log; if
 * an escape sequence were kept, he could drive the reader's terminal.
 */
static size_t
shown(const uint8_t *p, size_t n)
{
	uint32_t c = 0;
	size_t len = show_char(p, n, &c);

	return len == 0 || c < 0x20 || c == '\\' || show_hidden(c) ? 0 : len;
}

/* Appends text escaped; in JSON a backslash and a quote are escaped again. */
static void
line_escape(struct line *l, enum log_format form, const char *s, size_t n)
{
	const uint8_t *p = (const uint8_t *)s;
	char hex[8];
	size_t len;

	while (n > 0) {
		len = shown(p, n);
		if (len == 0) {
			if (form == LOG_JSON)
				line_putc(l, '\\');
			if (*p == '\\')
				line_puts(
				    l, form == LOG_JSON ? "\\\\\\" : "\\\\");
			else {
				snprintf(hex, sizeof(hex), "\\x%02x", *p);
				line_puts(l, hex);
			}
			p++;
			n--;
			continue;
		}
		if (form == LOG_JSON && *p == '"')
			line_putc(l, '\\');
		for (; len > 0; len--, n--)
			line_putc(l, (char)*p++);
	}
}

void
log_escape(char *out, size_t len, const char *s, size_t n)
{
	struct line l = {.n = 0};

	line_escape(&l, LOG_TEXT, s, n);
	if (l.n > len - 1) {
		/* A character of several bytes is not cut in two. */
		for (l.n = len - 1;
		    l.n > 0 && ((uint8_t)l.s[l.n] & 0xc0) == 0x80;)
			l.n--;
	}
	memcpy(out, l.s, l.n);
	out[l.n] = '\0';
}

static const char *
level_name(enum log_level lv)
{
	switch (lv) {
	case LOG_LV_ERR:
		return "error";
	case LOG_LV_WARN:
		return "warning";
	case LOG_LV_INFO:
		return "info";
	case LOG_LV_DEBUG:
		return "debug";
	}
	return "error";
}

void
log_init(const char *proc, enum log_format format, enum log_level max)
{
	log_proc = proc;
	log_form = format;
	log_max = max;
	log_prefix = getenv("JOURNAL_STREAM") != NULL;
}

void
log_journal(const char *path)
{
	log_stream = journal_reads(STDERR_FILENO);
	if (log_stream && journal_open(path) != 0)
		log_event(LOG_LV_WARN, "journal",
		    "%s: %s; log lines have no fields", path, strerror(errno));
}

/* Writes the time as RFC 3339 in UTC with microseconds: three more digits after
 * the ms of time_text. */
static void
time_us(char *out, size_t len)
{
	char ms[TIME_TEXT_LEN + 1];
	uint64_t us = now_us();
	size_t n;

	time_text(us, ms);
	n = strlen(ms) - 1; /* without the Z */
	snprintf(out, len, "%.*s%03uZ", (int)n, ms, (unsigned)(us % 1000));
}

static void
field(struct line *l, const char *key, const char *value, size_t n)
{
	if (log_form == LOG_JSON) {
		line_puts(l, ",\"");
		line_puts(l, key);
		line_puts(l, "\":\"");
		line_escape(l, log_form, value, n);
		line_putc(l, '"');
	} else {
		line_putc(l, ' ');
		line_puts(l, key);
		line_putc(l, '=');
		line_escape(l, log_form, value, n);
	}
}

/*
 * Sends the line to the journal as an entry with fields of fixed names. A value
 * is escaped as in the line, so that journalctl shows it as text and not as a
 * blob. A value is sent with its length (journal.c), so it can't add a field,
 * whatever it holds.
 */
static int
to_journal(enum log_level lv, const char *event, const char *execution,
    const char *principal, const struct line *l, size_t start)
{
	char priority[4], ident[64], x[FIELD_MAX], p[FIELD_MAX];
	struct journal_field f[JOURNAL_FIELDS_MAX];
	size_t n = 0;

	snprintf(priority, sizeof(priority), "%d", (int)lv);
	snprintf(ident, sizeof(ident), "mcpbox-%s", log_proc);
	f[n++] =
	    (struct journal_field){"MESSAGE", l->s + start, l->n - 1 - start};
	f[n++] = (struct journal_field){"PRIORITY", priority, strlen(priority)};
	f[n++] =
	    (struct journal_field){"SYSLOG_IDENTIFIER", ident, strlen(ident)};
	f[n++] = (struct journal_field){"MCPBOX_EVENT", event, strlen(event)};
	if (execution != NULL) {
		log_escape(x, sizeof(x), execution, strlen(execution));
		f[n++] =
		    (struct journal_field){"MCPBOX_EXECUTION_ID", x, strlen(x)};
	}
	if (principal != NULL) {
		log_escape(p, sizeof(p), principal, strlen(principal));
		f[n++] =
		    (struct journal_field){"MCPBOX_PRINCIPAL", p, strlen(p)};
	}
	return journal_send(f, n);
}

/*
 * Writes a line at once, so that lines of several processes never mix. The
 * reader of a pipe may make us wait (svlogd, a terminal). The journal may not,
 * because a journal that is stuck, or that somebody floods, would then stop
 * every daemon. A line that the journal does not take is counted. After the
 * next line that the journal takes, one more line says how many are missing.
 */
static bool
to_stderr(const struct line *l)
{
	ssize_t rc;

	do
		rc = log_stream ? send(STDERR_FILENO, l->s, l->n,
				      MSG_DONTWAIT | MSG_NOSIGNAL)
				: write(STDERR_FILENO, l->s, l->n);
	while (rc < 0 && errno == EINTR);
	return rc >= 0;
}

/*
 * Builds the line and sends it off. A failure is ignored: there is no other
 * place to report it, and serving goes on.
 */
static void emit(enum log_level, const char *event, const char *execution,
    const char *principal, const char *fmt, va_list)
    __attribute__((format(printf, 5, 0)));

static void
emit(enum log_level lv, const char *event, const char *execution,
    const char *principal, const char *fmt, va_list ap)
{
	char msg[MSG_MAX], num[48];
	struct line l;
	size_t n, start;
	unsigned long lost;
	int rc, saved = errno;

	if (lv > log_max)
		return;
	l.n = 0;
	errno = saved; /* for %m */
	rc = vsnprintf(msg, sizeof(msg), fmt, ap);
	n = rc < 0                     ? 0
	    : (size_t)rc < sizeof(msg) ? (size_t)rc
				       : sizeof(msg) - 1;
	if (log_form == LOG_TEXT || log_prefix) {
		snprintf(num, sizeof(num), "<%d>", (int)lv);
		line_puts(&l, num);
	}
	start = l.n; /* an entry for journald has no <N> */
	if (log_form == LOG_JSON) {
		time_us(num, sizeof(num));
		line_puts(&l, "{\"ts\":\"");
		line_puts(&l, num);
		line_putc(&l, '"');
		field(&l, "level", level_name(lv), strlen(level_name(lv)));
		field(&l, "proc", log_proc, strlen(log_proc));
		snprintf(num, sizeof(num), ",\"pid\":%ld", (long)getpid());
		line_puts(&l, num);
		field(&l, "event", event, strlen(event));
		field(&l, "msg", msg, n);
	} else {
		line_puts(&l, log_proc);
		line_puts(&l, ": ");
		line_escape(&l, LOG_TEXT, event, strlen(event));
		line_puts(&l, ": ");
		line_escape(&l, LOG_TEXT, msg, n);
	}
	if (execution != NULL)
		field(&l, "execution_id", execution, strlen(execution));
	if (principal != NULL)
		field(&l, "principal", principal, strlen(principal));
	if (log_form == LOG_JSON)
		line_putc(&l, '}');
	/* line_putc keeps one byte free for this. */
	l.s[l.n++] = '\n';
	if (to_journal(lv, event, execution, principal, &l, start) != 0 &&
	    !to_stderr(&l))
		log_lost++;
	else if (log_lost > 0) {
		lost = log_lost;
		log_lost = 0;
		log_event(LOG_LV_WARN, "log_lost",
		    "the log did not take %lu lines before this one", lost);
	}
	errno = saved;
}

void
log_event(enum log_level lv, const char *event, const char *fmt, ...)
{
	va_list ap;

	if (lv > log_max)
		return;
	va_start(ap, fmt);
	emit(lv, event, NULL, NULL, fmt, ap);
	va_end(ap);
}

void
log_call(enum log_level lv, const char *event, const char *execution_id,
    const char *principal, const char *fmt, ...)
{
	va_list ap;

	if (lv > log_max)
		return;
	va_start(ap, fmt);
	emit(lv, event, execution_id, principal, fmt, ap);
	va_end(ap);
}

void
log_fatal(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(LOG_LV_ERR, event, NULL, NULL, fmt, ap);
	va_end(ap);
	exit(1);
}
