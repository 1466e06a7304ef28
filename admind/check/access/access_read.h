/* The parts of an access document, as they are read: objects with known
 * members, lists of texts. Each function reports every fault at its place. */
#ifndef ACCESS_READ_H
#define ACCESS_READ_H

#include <stdbool.h>

#include "access_fields.h"
#include "buf.h"
#include "doc.h"
#include "report.h"

/* A document that is read. */
struct access_doc {
	const struct doc *d;
	struct report *r;
	struct buf *fields; /* enum access_field */
};

/* A value in the document, with its place. v NULL: it is absent. The place of
 * the document itself has no path. */
struct access_at {
	const struct doc_node *v;
	bool root;
	struct path path;
};

/* A member that an object may have. */
struct access_member {
	const char *name;
	bool needed;
};

/* Returns NULL for a good text, else a sentence about the form that it must
 * have. */
typedef const char *access_form(const uint8_t *, size_t);

/* Demands of a list. */
struct access_list {
	unsigned min, max; /* entries */
	access_form *form; /* of each */
	const char *none;  /* said of an empty list, with the remedy */
};

/* Checks that this is an object with these members (the last has no name), and
 * no others. Returns false if it is another value. */
bool access_object(struct access_doc *, const struct access_at *,
    const struct access_member *);
/* Returns a member. The object's place must outlive it. */
struct access_at access_get(
    struct access_doc *, const struct access_at *object, const char *name);
/* Returns an entry of an array. */
struct access_at access_entry(
    struct access_doc *, const struct access_at *array, uint32_t i);
/* Returns the number of entries of an array, at most `max`: more are reported.
 * 0 if it is absent or, which is reported, no array. */
uint32_t access_count(
    struct access_doc *, const struct access_at *, unsigned max);
/* Reports a fault. */
void access_fault(
    struct access_doc *, const struct access_at *, const char *sentence);

/* Reports the i-th entry if one before it has the same text as this member. */
void access_unique(struct access_doc *, const struct access_at *list,
    uint32_t i, const char *member);

/* Checks a text. Returns false if it is absent, or wrong, which is reported. */
bool access_text(struct access_doc *, const struct access_at *, access_form *);
/* Checks a list of different texts. Returns false as access_text(). */
bool access_texts(
    struct access_doc *, const struct access_at *, const struct access_list *);
/* Returns the number of the word among the NULL-terminated `words`, `usual` if
 * it is absent, or, which is reported, another. */
unsigned access_word(struct access_doc *, const struct access_at *,
    const char *const *words, unsigned usual);
/* Returns true or false, false if it is absent. */
bool access_bool(struct access_doc *, const struct access_at *);
/* Returns an integer from 0 to max, `usual` if it is absent. */
uint64_t access_number(struct access_doc *, const struct access_at *,
    uint64_t max, uint64_t usual);

/* Puts one byte as a field. */
void access_put_u8(struct buf *, uint8_t tag, unsigned);
/* Puts each text of a checked list as a field. */
void access_put_texts(
    struct access_doc *, const struct access_at *, struct buf *, uint8_t tag);
/* Puts a record into the fields and frees it. */
void access_put_record(struct access_doc *, uint8_t tag, struct buf *record);

#endif
