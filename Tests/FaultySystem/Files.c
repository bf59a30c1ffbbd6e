#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "Plans.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Reading and writing.

ORIGINAL(read)
ssize_t read(int fd, void *buffer, size_t capacity) {
    struct verdict verdict = judge(FAULTY_READ, fd, NULL);
    if (failed(verdict)) return noted(verdict, FAULTY_READ, fd, -1);
    if (verdict.effect == FAULTY_RETURN) return noted(verdict, FAULTY_READ, fd, verdict.value);
    if (verdict.effect == FAULTY_SHORT && capacity > (size_t)verdict.value) capacity = (size_t)verdict.value;
    return noted(verdict, FAULTY_READ, fd, original_read()(fd, buffer, capacity));
}

ORIGINAL(write)
ssize_t write(int fd, const void *bytes, size_t count) {
    struct verdict verdict = judge(FAULTY_WRITE, fd, NULL);
    int is_short = verdict.effect == FAULTY_SHORT || verdict.effect == FAULTY_STOP;
    if (is_short && count > (size_t)verdict.value) count = (size_t)verdict.value;
    if (verdict.effect == FAULTY_STOP && count) (void)!original_write()(fd, bytes, count);
    if (failed(verdict)) return noted(verdict, FAULTY_WRITE, fd, -1);
    return noted(verdict, FAULTY_WRITE, fd, original_write()(fd, bytes, count));
}

ORIGINAL(ioctl)
int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    struct verdict verdict = judge(FAULTY_IOCTL, fd, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_IOCTL, fd, -1);
    int number = pretending(fd);
    int result = number ? pretended_ioctl(number, request, argument) : original_ioctl()(fd, request, argument);
    return (int)noted(verdict, FAULTY_IOCTL, fd, result);
}

ORIGINAL(close)
int close_original(int fd) { return original_close()(fd); }

int close(int fd) {
    struct verdict verdict = judge(FAULTY_CLOSE, fd, NULL);
    near_end_closed(fd);
    set_owner(fd, 0);
    int result = original_close()(fd);
    if (result == 0 && failed(verdict)) result = -1;
    return (int)noted(verdict, FAULTY_CLOSE, fd, result);
}

ORIGINAL(lseek)
off_t lseek(int fd, off_t offset, int from) { JUDGED(FAULTY_LSEEK, fd, NULL, -1, original_lseek()(fd, offset, from)); }

// Files.

#define OPENING(name)                                                                                  \
    ORIGINAL(name)                                                                                     \
    int name(const char *path, int flags, ...) {                                                       \
        va_list arguments;                                                                             \
        va_start(arguments, flags);                                                                    \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                 \
        va_end(arguments);                                                                             \
        struct verdict verdict = judge(FAULTY_OPEN, -1, path);                                         \
        /* A process that was killed has read nothing since either. */                                 \
        if (failed(verdict)) return (int)noted(verdict, FAULTY_OPEN, -1, -1);                          \
        return opened(verdict, FAULTY_OPEN, original_##name()(path, flags, mode));                     \
    }
OPENING(open)
OPENING(open64)

// The path of a name in an open directory.
struct place {
    char path[1024];
};

static struct place place_of(int directory, const char *name) {
    struct place place = {""};
    ssize_t length = 0;
    if (directory != AT_FDCWD && name[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        length = readlink(link, place.path, sizeof place.path - 2);
        if (length < 0) length = 0;
        if (length) place.path[length++] = '/';
    }
    snprintf(place.path + length, sizeof place.path - (size_t)length, "%s", name);
    return place;
}

#define OPENING_AT(name)                                                                               \
    ORIGINAL(name)                                                                                     \
    int name(int directory, const char *path, int flags, ...) {                                        \
        va_list arguments;                                                                             \
        va_start(arguments, flags);                                                                    \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                 \
        va_end(arguments);                                                                             \
        struct verdict verdict = judge(FAULTY_OPEN, -1, place_of(directory, path).path);               \
        if (failed(verdict)) return (int)noted(verdict, FAULTY_OPEN, -1, -1);                          \
        return opened(verdict, FAULTY_OPEN, original_##name()(directory, path, flags, mode));          \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

ORIGINAL(fstatat)
int fstatat(int directory, const char *restrict name, struct stat *restrict status, int flags) {
    JUDGED(
        FAULTY_LSTAT, -1, place_of(directory, name).path, -1, original_fstatat()(directory, name, status, flags));
}

ORIGINAL(renameat)
int renameat(int directory, const char *name, int other_directory, const char *other) {
    JUDGED(
        FAULTY_RENAME, -1, place_of(other_directory, other).path, -1,
        original_renameat()(directory, name, other_directory, other));
}

ORIGINAL(unlinkat)
int unlinkat(int directory, const char *name, int flags) {
    JUDGED(FAULTY_UNLINK, -1, place_of(directory, name).path, -1, original_unlinkat()(directory, name, flags));
}

ORIGINAL(fsync)
int fsync(int fd) { JUDGED(FAULTY_FSYNC, fd, NULL, -1, original_fsync()(fd)); }

ORIGINAL(fstat)
int fstat(int fd, struct stat *status) { JUDGED(FAULTY_FSTAT, fd, NULL, -1, original_fstat()(fd, status)); }

ORIGINAL(lstat)
int lstat(const char *restrict path, struct stat *restrict status) {
    JUDGED(FAULTY_LSTAT, -1, path, -1, original_lstat()(path, status));
}

ORIGINAL(stat)
int stat(const char *restrict path, struct stat *restrict status) {
    JUDGED(FAULTY_STAT, -1, path, -1, original_stat()(path, status));
}

ORIGINAL(rename)
int rename(const char *path, const char *other) { JUDGED(FAULTY_RENAME, -1, other, -1, original_rename()(path, other)); }

ORIGINAL(unlink)
int unlink(const char *path) { JUDGED(FAULTY_UNLINK, -1, path, -1, original_unlink()(path)); }

ORIGINAL(fchmod)
int fchmod(int fd, mode_t mode) { JUDGED(FAULTY_FCHMOD, fd, NULL, -1, original_fchmod()(fd, mode)); }

ORIGINAL(ftruncate)
int ftruncate(int fd, off_t length) { JUDGED(FAULTY_FTRUNCATE, fd, NULL, -1, original_ftruncate()(fd, length)); }

ORIGINAL(flock)
int flock(int fd, int operation) { JUDGED(FAULTY_FLOCK, fd, NULL, -1, original_flock()(fd, operation)); }

ORIGINAL(realpath)
char *realpath(const char *restrict path, char *restrict buffer) {
    struct verdict verdict = judge(FAULTY_REALPATH, -1, path);
    if (failed(verdict)) return noted(verdict, FAULTY_REALPATH, -1, -1), NULL;
    return noted(verdict, FAULTY_REALPATH, -1, 0), original_realpath()(path, buffer);
}

ORIGINAL(opendir)
DIR *opendir(const char *path) {
    struct verdict verdict = judge(FAULTY_OPENDIR, -1, path);
    if (failed(verdict)) return noted(verdict, FAULTY_OPENDIR, -1, -1), NULL;
    return noted(verdict, FAULTY_OPENDIR, -1, 0), original_opendir()(path);
}

// It closes a descriptor that may have been opened by name.
ORIGINAL(closedir)
int closedir(DIR *stream) {
    set_owner(dirfd(stream), 0);
    return original_closedir()(stream);
}

ORIGINAL(pipe2)
int pipe2(int fds[2], int flags) {
    struct verdict verdict = judge(FAULTY_PIPE, -1, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_PIPE, -1, -1);
    int result = original_pipe2()(fds, flags);
    if (result == 0 && verdict.plan) set_owner(fds[0], verdict.plan), set_owner(fds[1], verdict.plan);
    return (int)noted(verdict, FAULTY_PIPE, -1, result);
}

ORIGINAL(memfd_create)
int memfd_create(const char *name, unsigned flags) {
    struct verdict verdict = judge(FAULTY_MEMFD, -1, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_MEMFD, -1, -1);
    return opened(verdict, FAULTY_MEMFD, original_memfd_create()(name, flags));
}
