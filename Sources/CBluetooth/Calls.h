// How the results of system calls are handed to Swift: as they are, or as a negative error number.
#ifndef BLE_CALLS_H
#define BLE_CALLS_H

#include <errno.h>

// For calls that a signal may interrupt.
#define REPEATED(call)                              \
    ({                                              \
        long result_;                               \
        do {                                        \
            result_ = (call);                       \
        } while (result_ < 0 && errno == EINTR);    \
        result_ < 0 ? -(long)errno : result_;       \
    })

static inline int once(long result) { return result < 0 ? -errno : (int)result; }

#endif
