/*
 * Searches for many byte strings at once, in one pass whose time does not
 * depend on the strings' number or likeness (Aho, Corasick: Efficient string
 * matching, CACM 18, 1975). A tool knows the secrets it was given, so it could
 * print the text that costs a naive search most. With this search such a text
 * gains the tool nothing.
 */
#ifndef NEEDLES_H
#define NEEDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct needles;

/* Reports [from, to): the longest of the needles that end at `to`. Reports come
 * in rising order of `to`. false ends the scan. */
typedef bool needles_hit(void *arg, size_t from, size_t to);

/* NULL without memory. */
struct needles *needles_new(void);
void needles_free(struct needles *); /* wipes; NULL is harmless */
/* Adds a needle of n bytes, copied: 1 to UINT16_MAX. 0, or -1 without
 * memory. */
int needles_add(struct needles *, const void *, size_t n);
/* Prepares the scan, after the last needles_add. 0, or -1 without memory. */
int needles_ready(struct needles *);
void needles_scan(const struct needles *, const uint8_t *text, size_t n,
    needles_hit *, void *arg);

#endif
