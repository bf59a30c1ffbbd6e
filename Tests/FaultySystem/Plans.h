// What the files of this module share: plans, and the frame of a call.
#ifndef FAULTYSYSTEM_PLANS_H
#define FAULTYSYSTEM_PLANS_H

#include "FaultySystem.h"

#include <bluetooth/bluetooth.h>
#include <bluetooth/l2cap.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

// The original call. If a sanitizer has wrapped it, the wrapper: it must not miss anything.
#define ORIGINAL(name)                                                          \
    extern __typeof(name) __interceptor_##name __attribute__((weak));           \
    static __typeof(&name) original_##name(void) {                              \
        static _Atomic(__typeof(&name)) known;                                  \
        __typeof(&name) call = atomic_load_explicit(&known, memory_order_relaxed); \
        if (call) return call;                                                  \
        call = &__interceptor_##name;                                           \
        if (!call) call = (__typeof(&name))dlsym(RTLD_NEXT, #name);             \
        atomic_store_explicit(&known, call, memory_order_relaxed);              \
        return call;                                                            \
    }

enum { most_plans = 255, most_rules = 32, most_notes = 8192, most_paths = 4, most_far_ends = 64, most_descriptors = 65536 };

struct far_end {
    int near, far, protocol, is_ready;
    // Where the link leads.
    struct sockaddr_l2 peer;
};

struct plan {
    int is_used, is_stopped, is_slow, rule_count, path_count, far_count;
    long note_count, hits;
    long counts[FAULTY_CALL_COUNT];
    struct faulty_rule rules[most_rules];
    long seen[most_rules], struck[most_rules];
    char paths[most_paths][256];
    struct far_end far_ends[most_far_ends];
    uint64_t adapter;
    struct faulty_note *notes;
};

extern struct plan plans[most_plans];
extern pthread_mutex_t plans_lock;

struct verdict {
    int plan, effect, value, rule;
};

enum { pass = -1 };

int owner_of(int fd);
void set_owner(int fd, int plan);
// What becomes of a call; it is counted.
struct verdict judge(int call, int fd, const char *path);
// Withdraws the effect, and lets the rule strike again: there was nothing to do it to.
void withdraw(struct verdict *verdict);
// Keeps what came of it, and returns that.
long noted(struct verdict verdict, int call, int fd, long result);
int opened(struct verdict verdict, int call, int fd);
// Whether it fails; sets errno then.
int failed(struct verdict verdict);
int close_original(int fd);

// Bluetooth that is not there: the plan whose pretended socket this is, 0 if it is none; and what happens to it.
int pretending(int fd);
int pretended_socket(int plan, int type, int protocol);
int pretended_ioctl(int plan, unsigned long request, void *argument);
void far_end_ready(int plan, int fd, int protocol);
void far_end_is(int plan, int fd, const struct sockaddr *peer, socklen_t length);
int pretended_name(int plan, int fd, int is_peer, struct sockaddr *name, socklen_t *length);
void near_end_closed(int fd);

// The common form: fails, returns the rule's value, or makes the original call.
#define JUDGED(call, fd, path, failure, result)                                          \
    struct verdict verdict = judge(call, fd, path);                                      \
    if (failed(verdict)) return noted(verdict, call, fd, -1), failure;                   \
    if (verdict.effect == FAULTY_RETURN) return noted(verdict, call, fd, verdict.value); \
    return noted(verdict, call, fd, result)

#endif
