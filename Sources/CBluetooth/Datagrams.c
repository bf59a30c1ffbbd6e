#define _GNU_SOURCE
#include "CBluetooth.h"
#include "Calls.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

// Datagrams with descriptors, as service managers take and send them.

enum { most_descriptors = 16 };

union descriptors {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(most_descriptors * sizeof(int))];
};

static int unix_address(const void *name, size_t length, struct sockaddr_un *address, socklen_t *size) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!length) return -EINVAL;
    if (length >= sizeof address->sun_path) return -ENAMETOOLONG;
    memcpy(address->sun_path, name, length);
    // A path ends in a zero byte, an abstract name with its length.
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (address->sun_path[0] ? 1 : 0));
    return 0;
}

long ble_send_to(
    const void *name, size_t name_length, const void *bytes, size_t count, const int *fds, int fd_count, int wait_ms) {
    struct sockaddr_un address;
    socklen_t size;
    int result = unix_address(name, name_length, &address, &size);
    if (result < 0) return result;
    if (fd_count < 0 || fd_count > most_descriptors) return -EINVAL;
    struct iovec part = {(void *)bytes, count};
    struct msghdr message = {.msg_name = &address, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1};
    union descriptors control = {0};
    if (fd_count) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *item = CMSG_FIRSTHDR(&message);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(item), fds, fd_count * sizeof(int));
    }
    int fd = ble_socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0) return fd;
    if (wait_ms > 0) {
        struct timeval limit = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
        result = once(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
        if (result >= 0) result = once(fcntl(fd, F_SETFL, 0));
    }
    long sent = result < 0 ? result : REPEATED(sendmsg(fd, &message, MSG_NOSIGNAL));
    ble_close(fd);
    return sent;
}

int ble_bind_datagrams(const void *name, size_t name_length) {
    struct sockaddr_un address;
    socklen_t size;
    int result = unix_address(name, name_length, &address, &size);
    if (result < 0) return result;
    int fd = ble_socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0) return fd;
    result = ble_bind(fd, &address, size);
    if (result < 0) ble_close(fd);
    return result < 0 ? result : fd;
}

long ble_receive_with_descriptors(int fd, void *buffer, size_t capacity, int *fds, int *fd_count) {
    int room = *fd_count;
    *fd_count = 0;
    union descriptors control;
    struct iovec part = {buffer, capacity};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    long length = REPEATED(recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    if (length < 0) return length;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int passed;
            memcpy(&passed, CMSG_DATA(item) + i * sizeof(int), sizeof passed);
            if (*fd_count < room) fds[(*fd_count)++] = passed;
            else ble_close(passed);
        }
    }
    return length;
}
