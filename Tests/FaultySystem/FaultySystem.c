#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "Plans.h"

#include <stdlib.h>
#include <string.h>

struct plan plans[most_plans];
static _Atomic int active;
static _Atomic unsigned char owners[most_descriptors];
static _Thread_local int joined;
pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER;

int owner_of(int fd) { return fd >= 0 && fd < most_descriptors ? atomic_load(&owners[fd]) : 0; }

void set_owner(int fd, int plan) {
    if (fd >= 0 && fd < most_descriptors) atomic_store(&owners[fd], (unsigned char)plan);
}

static int plan_of(int fd, const char *path) {
    int plan = owner_of(fd);
    if (plan) return plan;
    if (path) {
        for (int i = 1; i < most_plans; i++) {
            for (int j = 0; plans[i].is_used && j < plans[i].path_count; j++) {
                if (!strncmp(path, plans[i].paths[j], strlen(plans[i].paths[j]))) return i;
            }
        }
    }
    return joined;
}

// What changes a file, or its name; a killed process does none of it.
static int changes(int call) {
    switch (call) {
    case FAULTY_WRITE: case FAULTY_OPEN: case FAULTY_FSYNC: case FAULTY_RENAME: case FAULTY_UNLINK: case FAULTY_FCHMOD:
    case FAULTY_FTRUNCATE: case FAULTY_FLOCK:
        return 1;
    default:
        return 0;
    }
}

struct verdict judge(int call, int fd, const char *path) {
    struct verdict verdict = {0, pass, 0, 0};
    if (!atomic_load_explicit(&active, memory_order_relaxed)) return verdict;
    int saved = errno;
    pthread_mutex_lock(&plans_lock);
    int number = plan_of(fd, path);
    if (number && plans[number].is_used) {
        struct plan *plan = &plans[number];
        verdict.plan = number;
        plan->counts[call]++;
        if (plan->is_stopped) {
            if (changes(call)) verdict.effect = FAULTY_FAIL, verdict.value = EIO;
        } else {
            for (int i = 0; i < plan->rule_count && verdict.effect == pass; i++) {
                struct faulty_rule *rule = &plan->rules[i];
                if (!(rule->calls >> call & 1) || (rule->descriptor >= 0 && rule->descriptor != fd)) continue;
                if (plan->seen[i]++ < rule->skip) continue;
                if (rule->times >= 0 && plan->struck[i] >= rule->times) continue;
                plan->struck[i]++;
                if (rule->effect == FAULTY_INTERRUPT) {
                    if (plan->struck[i] % 2 == 0) continue;
                    verdict.effect = FAULTY_FAIL, verdict.value = EINTR;
                } else {
                    verdict.effect = rule->effect, verdict.value = rule->value;
                }
                verdict.rule = i;
                plan->hits++;
                if (rule->effect == FAULTY_STOP) plan->is_stopped = 1;
            }
        }
    }
    pthread_mutex_unlock(&plans_lock);
    errno = saved;
    return verdict;
}

void withdraw(struct verdict *verdict) {
    int saved = errno;
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = &plans[verdict->plan];
    if (plan->is_used && plan->struck[verdict->rule] > 0) plan->struck[verdict->rule]--, plan->hits--;
    pthread_mutex_unlock(&plans_lock);
    verdict->effect = pass;
    errno = saved;
}

long noted(struct verdict verdict, int call, int fd, long result) {
    if (!verdict.plan) return result;
    int saved = errno;
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = &plans[verdict.plan];
    if (plan->is_used && plan->note_count < most_notes) {
        plan->notes[plan->note_count++] =
            (struct faulty_note){call, fd, result < 0 ? -saved : (int)(result & 0x7FFFFFFF)};
    }
    pthread_mutex_unlock(&plans_lock);
    errno = saved;
    return result;
}

int opened(struct verdict verdict, int call, int fd) {
    if (verdict.plan && fd >= 0) set_owner(fd, verdict.plan);
    return (int)noted(verdict, call, fd, fd);
}

int failed(struct verdict verdict) {
    if (verdict.effect == FAULTY_STOP) verdict.value = EIO;
    if (verdict.effect != FAULTY_FAIL && verdict.effect != FAULTY_STOP) return 0;
    errno = verdict.value;
    return 1;
}

int faulty_begin(void) {
    pthread_mutex_lock(&plans_lock);
    int number = -1;
    for (int i = 1; i < most_plans && number < 0; i++) {
        if (plans[i].is_used) continue;
        memset(&plans[i], 0, sizeof plans[i]);
        plans[i].notes = calloc(most_notes, sizeof(struct faulty_note));
        plans[i].is_used = 1;
        number = i;
    }
    pthread_mutex_unlock(&plans_lock);
    if (number > 0) atomic_fetch_add(&active, 1);
    return number;
}

void faulty_end(int number) {
    for (int fd = 0; fd < most_descriptors; fd++) {
        if (owner_of(fd) == number) set_owner(fd, 0);
    }
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = &plans[number];
    for (int i = 0; i < plan->far_count; i++) {
        if (plan->far_ends[i].far >= 0) close_original(plan->far_ends[i].far);
    }
    free(plan->notes);
    plan->notes = NULL;
    plan->is_used = 0;
    pthread_mutex_unlock(&plans_lock);
    atomic_fetch_sub(&active, 1);
}

void faulty_take_descriptor(int plan, int fd) { set_owner(fd, plan); }

void faulty_take_path(int plan, const char *prefix) {
    pthread_mutex_lock(&plans_lock);
    if (plans[plan].path_count < most_paths) {
        strncpy(plans[plan].paths[plans[plan].path_count++], prefix, sizeof plans[plan].paths[0] - 1);
    }
    pthread_mutex_unlock(&plans_lock);
}

void faulty_leave_paths(int plan) {
    pthread_mutex_lock(&plans_lock);
    plans[plan].path_count = 0;
    pthread_mutex_unlock(&plans_lock);
}

void faulty_join(int plan) { joined = plan; }

void faulty_add(int plan, struct faulty_rule rule) {
    pthread_mutex_lock(&plans_lock);
    if (plans[plan].rule_count < most_rules) plans[plan].rules[plans[plan].rule_count++] = rule;
    pthread_mutex_unlock(&plans_lock);
}

void faulty_clear(int plan) {
    pthread_mutex_lock(&plans_lock);
    plans[plan].rule_count = 0;
    memset(plans[plan].seen, 0, sizeof plans[plan].seen);
    memset(plans[plan].struck, 0, sizeof plans[plan].struck);
    pthread_mutex_unlock(&plans_lock);
}

long faulty_count(int plan, uint64_t calls) {
    long count = 0;
    pthread_mutex_lock(&plans_lock);
    for (int i = 0; i < FAULTY_CALL_COUNT; i++) {
        if (calls >> i & 1) count += plans[plan].counts[i];
    }
    pthread_mutex_unlock(&plans_lock);
    return count;
}

long faulty_hits(int plan) {
    pthread_mutex_lock(&plans_lock);
    long hits = plans[plan].hits;
    pthread_mutex_unlock(&plans_lock);
    return hits;
}

int faulty_note_at(int plan, long index, struct faulty_note *note) {
    pthread_mutex_lock(&plans_lock);
    int is_there = index >= 0 && index < plans[plan].note_count;
    if (is_there) *note = plans[plan].notes[index];
    pthread_mutex_unlock(&plans_lock);
    return is_there;
}

int faulty_open_count(int plan) {
    int count = 0;
    for (int fd = 0; fd < most_descriptors; fd++) count += owner_of(fd) == plan;
    return count;
}

int faulty_is_stopped(int plan) {
    pthread_mutex_lock(&plans_lock);
    int is_stopped = plans[plan].is_stopped;
    pthread_mutex_unlock(&plans_lock);
    return is_stopped;
}

