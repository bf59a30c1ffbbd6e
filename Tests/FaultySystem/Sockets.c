#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "Plans.h"

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/l2cap.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

// Sockets.

ORIGINAL(socketpair)
int socketpair(int family, int type, int protocol, int fds[2]) {
    struct verdict verdict = judge(FAULTY_SOCKETPAIR, -1, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_SOCKETPAIR, -1, -1);
    int result = original_socketpair()(family, type, protocol, fds);
    if (result == 0 && verdict.plan) set_owner(fds[0], verdict.plan), set_owner(fds[1], verdict.plan);
    return (int)noted(verdict, FAULTY_SOCKETPAIR, -1, result);
}

ORIGINAL(socket)
int socket(int family, int type, int protocol) {
    struct verdict verdict = judge(FAULTY_SOCKET, -1, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_SOCKET, -1, -1);
    if (family == AF_BLUETOOTH && verdict.plan && plans[verdict.plan].adapter) {
        return opened(verdict, FAULTY_SOCKET, pretended_socket(verdict.plan, type, protocol));
    }
    return opened(verdict, FAULTY_SOCKET, original_socket()(family, type, protocol));
}

ORIGINAL(bind)
int bind(int fd, const struct sockaddr *address, socklen_t length) {
    struct verdict verdict = judge(FAULTY_BIND, fd, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_BIND, fd, -1);
    int number = pretending(fd);
    if (number) return far_end_ready(number, fd, BTPROTO_HCI), (int)noted(verdict, FAULTY_BIND, fd, 0);
    return (int)noted(verdict, FAULTY_BIND, fd, original_bind()(fd, address, length));
}

ORIGINAL(connect)
int connect(int fd, const struct sockaddr *address, socklen_t length) {
    struct verdict verdict = judge(FAULTY_CONNECT, fd, NULL);
    int number = pretending(fd);
    if (failed(verdict)) {
        // One that is interrupted continues by itself.
        if (number && (errno == EINTR || errno == EINPROGRESS)) far_end_ready(number, fd, BTPROTO_L2CAP);
        errno = verdict.value;
        return (int)noted(verdict, FAULTY_CONNECT, fd, -1);
    }
    if (number) {
        far_end_is(number, fd, address, length);
        far_end_ready(number, fd, BTPROTO_L2CAP);
        int is_slow = plans[number].is_slow;
        errno = EINPROGRESS;
        return (int)noted(verdict, FAULTY_CONNECT, fd, is_slow ? -1 : 0);
    }
    return (int)noted(verdict, FAULTY_CONNECT, fd, original_connect()(fd, address, length));
}

ORIGINAL(accept4)
int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict length, int flags) {
    struct verdict verdict = judge(FAULTY_ACCEPT, fd, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_ACCEPT, fd, -1);
    return opened(verdict, FAULTY_ACCEPT, original_accept4()(fd, address, length, flags));
}

ORIGINAL(getsockopt)
int getsockopt(int fd, int level, int name, void *value, socklen_t *length) {
    struct verdict verdict = judge(FAULTY_GETSOCKOPT, fd, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_GETSOCKOPT, fd, -1);
    int result;
    // A rule of a value makes any socket appear as a Bluetooth one.
    if (level == SOL_SOCKET && name == SO_DOMAIN && (pretending(fd) || verdict.effect == FAULTY_RETURN)) {
        *(int *)value = AF_BLUETOOTH, result = 0;
    } else if (level == SOL_SOCKET && name == SO_ERROR && verdict.effect == FAULTY_RETURN) {
        *(int *)value = verdict.value, result = 0;
    } else if (level != SOL_SOCKET && pretending(fd)) {
        memset(value, 0, *length);
        if (level == SOL_L2CAP && name == L2CAP_CONNINFO) ((struct l2cap_conninfo *)value)->hci_handle = 0x40;
        result = 0;
    } else {
        result = original_getsockopt()(fd, level, name, value, length);
    }
    return (int)noted(verdict, FAULTY_GETSOCKOPT, fd, result);
}

ORIGINAL(setsockopt)
int setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    struct verdict verdict = judge(FAULTY_SETSOCKOPT, fd, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_SETSOCKOPT, fd, -1);
    int is_real = level == SOL_SOCKET || !pretending(fd);
    return (int)noted(verdict, FAULTY_SETSOCKOPT, fd, is_real ? original_setsockopt()(fd, level, name, value, length) : 0);
}

ORIGINAL(getsockname)
int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict length) {
    int number = pretending(fd);
    JUDGED(
        FAULTY_GETSOCKNAME, fd, NULL, -1,
        number ? pretended_name(number, fd, 0, address, length) : original_getsockname()(fd, address, length));
}

ORIGINAL(getpeername)
int getpeername(int fd, struct sockaddr *restrict address, socklen_t *restrict length) {
    int number = pretending(fd);
    JUDGED(
        FAULTY_GETPEERNAME, fd, NULL, -1,
        number ? pretended_name(number, fd, 1, address, length) : original_getpeername()(fd, address, length));
}

ORIGINAL(shutdown)
int shutdown(int fd, int how) { JUDGED(FAULTY_SHUTDOWN, fd, NULL, -1, original_shutdown()(fd, how)); }

ORIGINAL(recvmsg)
ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    struct verdict verdict = judge(FAULTY_RECVMSG, fd, NULL);
    if (failed(verdict)) return noted(verdict, FAULTY_RECVMSG, fd, -1);
    if (verdict.effect == FAULTY_RETURN) {
        message->msg_controllen = 0;
        return noted(verdict, FAULTY_RECVMSG, fd, verdict.value);
    }
    size_t room = message->msg_controllen;
    ssize_t length = original_recvmsg()(fd, message, flags);
    // A rule for a packet waits for one.
    if (length < 0 && errno == EAGAIN && verdict.effect != pass) withdraw(&verdict);
    if (length < 0) return noted(verdict, FAULTY_RECVMSG, fd, length);
    if (verdict.effect == FAULTY_LOSE) return errno = EAGAIN, noted(verdict, FAULTY_RECVMSG, fd, -1);
    if (verdict.effect == FAULTY_SHORT && length > verdict.value) length = verdict.value;
    if (verdict.effect == FAULTY_LENGTH) {
        length = verdict.value;
        message->msg_flags |= MSG_TRUNC;
    }
    if (verdict.effect == FAULTY_DROPS && room >= CMSG_SPACE(sizeof(uint32_t))) {
        struct cmsghdr *item = message->msg_control;
        uint32_t drops = (uint32_t)verdict.value;
        *item = (struct cmsghdr){CMSG_LEN(sizeof drops), SOL_SOCKET, SO_RXQ_OVFL};
        memcpy(CMSG_DATA(item), &drops, sizeof drops);
        message->msg_controllen = CMSG_SPACE(sizeof drops);
    }
    return noted(verdict, FAULTY_RECVMSG, fd, length);
}

ORIGINAL(recv)
ssize_t recv(int fd, void *buffer, size_t capacity, int flags) {
    JUDGED(FAULTY_RECV, fd, NULL, -1, original_recv()(fd, buffer, capacity, flags));
}

ORIGINAL(send)
ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    JUDGED(FAULTY_SEND, fd, NULL, -1, original_send()(fd, bytes, count, flags));
}

ORIGINAL(sendmsg)
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    JUDGED(FAULTY_SENDMSG, fd, NULL, -1, original_sendmsg()(fd, message, flags));
}

// Waiting.

ORIGINAL(poll)
int poll(struct pollfd *states, nfds_t count, int timeout) {
    int fd = count ? states[0].fd : -1;
    struct verdict verdict = judge(FAULTY_POLL, fd, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_POLL, fd, -1);
    if (verdict.effect == FAULTY_STATE) {
        states[0].revents = (short)verdict.value;
        return (int)noted(verdict, FAULTY_POLL, fd, verdict.value != 0);
    }
    return (int)noted(verdict, FAULTY_POLL, fd, original_poll()(states, count, timeout));
}

ORIGINAL(epoll_create1)
int epoll_create1(int flags) {
    struct verdict verdict = judge(FAULTY_EPOLL_CREATE, -1, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_EPOLL_CREATE, -1, -1);
    return opened(verdict, FAULTY_EPOLL_CREATE, original_epoll_create1()(flags));
}

ORIGINAL(epoll_ctl)
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    // Only watching one more takes memory. A change of what is watched for, and its end, succeed for every descriptor that is watched.
    if (operation != EPOLL_CTL_ADD) return original_epoll_ctl()(epoll, operation, fd, event);
    JUDGED(FAULTY_EPOLL_CTL, fd, NULL, -1, original_epoll_ctl()(epoll, operation, fd, event));
}

ORIGINAL(epoll_wait)
int epoll_wait(int epoll, struct epoll_event *events, int capacity, int timeout) {
    JUDGED(FAULTY_EPOLL_WAIT, epoll, NULL, -1, original_epoll_wait()(epoll, events, capacity, timeout));
}

ORIGINAL(eventfd)
int eventfd(unsigned count, int flags) {
    struct verdict verdict = judge(FAULTY_EVENTFD, -1, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_EVENTFD, -1, -1);
    return opened(verdict, FAULTY_EVENTFD, original_eventfd()(count, flags));
}

ORIGINAL(timerfd_create)
int timerfd_create(int clock, int flags) {
    struct verdict verdict = judge(FAULTY_TIMERFD_CREATE, -1, NULL);
    if (failed(verdict)) return (int)noted(verdict, FAULTY_TIMERFD_CREATE, -1, -1);
    return opened(verdict, FAULTY_TIMERFD_CREATE, original_timerfd_create()(clock, flags));
}

ORIGINAL(timerfd_settime)
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before) {
    JUDGED(FAULTY_TIMERFD_SETTIME, fd, NULL, -1, original_timerfd_settime()(fd, flags, when, before));
}
