// What the C library's allocator says of this process; Swift cannot import its header by itself.
#ifndef HEAPUSE_H
#define HEAPUSE_H

#include <malloc.h>
#include <stddef.h>

// Bytes that were allocated and not freed, over all arenas.
static inline size_t heap_in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Gives back to the kernel what is free at the ends.
static inline void heap_trim(void) { malloc_trim(0); }

#endif
