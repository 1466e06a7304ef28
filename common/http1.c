/* see http1.h */
