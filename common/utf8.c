/* see utf8.h */
