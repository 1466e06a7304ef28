/*
 * Settings (0009) in memory, so that what asks them on a call's way waits for
 * nothing: read when the database is there, and again at NOTIFY
 * mcpbox_setting. What is asked before they were read gets the caller's own
 * default, which should be the strict one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admind.h"
#include "log.h"

enum { SETTINGS_MAX = 64, SETTING_KEY_MAX = 64, SETTING_VALUE_MAX = 255 };

static const struct db_stmt all = {"settings_all",
    "SELECT key, mcpbox.setting(key) FROM mcpbox.setting_keys", DB_FAST};

/* One database a process, so one set. A value too long for this is of no use
 * to admind and left out. */
static struct {
	struct {
		char key[SETTING_KEY_MAX + 1];
		char value[SETTING_VALUE_MAX + 1];
	} row[SETTINGS_MAX];
	int n;
	bool reading, again;
} settings;

static void
got(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	int n;

	settings.reading = false;
	if (err != NULL) {
		/* without the database; its return reads them */
		log_event(LOG_LV_WARN, "settings", "%s", err->text);
		return;
	}
	settings.n = 0;
	n = db_nrows(rows);
	for (int i = 0; i < n && settings.n < SETTINGS_MAX; i++)
		if (db_text(rows, i, 0, settings.row[settings.n].key,
			sizeof(settings.row[0].key)) &&
		    db_text(rows, i, 1, settings.row[settings.n].value,
			sizeof(settings.row[0].value)))
			settings.n++;
	if (settings.again) {
		settings.again = false;
		settings_read(a);
	}
}

void
settings_read(struct admind *a)
{
	if (settings.reading) {
		settings.again = true;
		return;
	}
	settings.reading = true;
	db_query(a->db, &all, NULL, got, a);
}

static const char *
find(const char *key)
{
	for (int i = 0; i < settings.n; i++)
		if (strcmp(settings.row[i].key, key) == 0)
			return settings.row[i].value;
	return NULL;
}

bool
settings_is(const char *key, const char *word)
{
	const char *v = find(key);

	return v != NULL && strcmp(v, word) == 0;
}

int64_t
settings_number(const char *key, int64_t absent)
{
	const char *v = find(key);
	long long n;
	char *end;

	if (v == NULL || *v == '\0')
		return absent;
	errno = 0;
	n = strtoll(v, &end, 10);
	return errno == 0 && *end == '\0' ? n : absent;
}
