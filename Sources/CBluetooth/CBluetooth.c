#define _GNU_SOURCE
#include "CBluetooth.h"
#include "Calls.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sock_diag.h>
#include <linux/usbdevice_fs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// The kernel's ABI, which no header of the kernel itself publishes: a layout that differs would be read as nonsense.
_Static_assert(sizeof(struct sockaddr_hci) == 6, "sockaddr_hci");
_Static_assert(sizeof(struct sockaddr_l2) == 14, "sockaddr_l2");
_Static_assert(offsetof(struct sockaddr_l2, l2_psm) == 2, "l2_psm");
_Static_assert(offsetof(struct sockaddr_l2, l2_bdaddr) == 4, "l2_bdaddr");
_Static_assert(offsetof(struct sockaddr_l2, l2_cid) == 10, "l2_cid");
_Static_assert(offsetof(struct sockaddr_l2, l2_bdaddr_type) == 12, "l2_bdaddr_type");
_Static_assert(sizeof(struct hci_filter) == 16, "hci_filter");
_Static_assert(offsetof(struct hci_filter, event_mask) == 4, "event_mask");
_Static_assert(offsetof(struct hci_filter, opcode) == 12, "opcode");
_Static_assert(sizeof(struct hci_dev_req) == 8, "hci_dev_req");
_Static_assert(sizeof(struct hci_dev_list_req) == 4, "hci_dev_list_req");
_Static_assert(sizeof(struct hci_dev_info) == 92, "hci_dev_info");
_Static_assert(offsetof(struct hci_dev_info, bdaddr) == 10, "hci_dev_info.bdaddr");
_Static_assert(offsetof(struct hci_dev_info, flags) == 16, "hci_dev_info.flags");
_Static_assert(offsetof(struct hci_dev_info, type) == 20, "hci_dev_info.type");
_Static_assert(sizeof(struct hci_conn_info) == 16, "hci_conn_info");
_Static_assert(offsetof(struct hci_conn_list_req, conn_info) == 4, "hci_conn_list_req");
_Static_assert(sizeof(struct l2cap_conninfo) == 6, "l2cap_conninfo");
_Static_assert(sizeof(struct bt_security) == 2, "bt_security");

const unsigned long ble_USBDEVFS_RESET = USBDEVFS_RESET;
const unsigned long ble_HCIDEVUP = HCIDEVUP, ble_HCIDEVDOWN = HCIDEVDOWN, ble_HCIDEVRESET = HCIDEVRESET;
const unsigned long ble_HCIGETDEVLIST = HCIGETDEVLIST, ble_HCIGETDEVINFO = HCIGETDEVINFO;
const unsigned long ble_HCIGETCONNLIST = HCIGETCONNLIST;

// The event loop.

int ble_epoll(void) { return once(epoll_create1(EPOLL_CLOEXEC)); }

int ble_watch(int epoll, int fd, int interest, uint64_t tag, int already_watched) {
    struct epoll_event event = {.data.u64 = tag};
    if (interest & BLE_READABLE) event.events |= EPOLLIN | EPOLLRDHUP;
    if (interest & BLE_WRITABLE) event.events |= EPOLLOUT;
    return once(epoll_ctl(epoll, already_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event));
}

int ble_unwatch(int epoll, int fd) {
    struct epoll_event unused = {0};
    return once(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &unused));
}

int ble_wait(int epoll, struct ble_ready *ready, int capacity, int timeout_ms) {
    enum { most = 64 };
    struct epoll_event events[most];
    int count = once(epoll_wait(epoll, events, capacity < most ? capacity : most, timeout_ms));
    for (int i = 0; i < count; i++) {
        int state = 0;
        if (events[i].events & (EPOLLIN | EPOLLRDHUP)) state |= BLE_READABLE;
        if (events[i].events & EPOLLOUT) state |= BLE_WRITABLE;
        if (events[i].events & (EPOLLERR | EPOLLHUP)) state |= BLE_HANG_UP;
        ready[i].tag = events[i].data.u64;
        ready[i].state = state;
    }
    return count;
}

uint64_t ble_thread(void) { return (uint64_t)pthread_self(); }

int ble_wakefd(void) { return once(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

int ble_wake(int fd) {
    uint64_t one = 1;
    return (int)REPEATED(write(fd, &one, sizeof one));
}

int ble_timerfd(void) { return once(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)); }

int ble_timer_set(int fd, int64_t boot_nanoseconds) {
    // Zero would switch the timer off; a moment in the past makes it expire at once.
    int64_t at = boot_nanoseconds > 0 ? boot_nanoseconds : 1;
    struct itimerspec when = {.it_value = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000}};
    return once(timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL));
}

int ble_drain(int fd) {
    uint64_t count;
    return (int)REPEATED(read(fd, &count, sizeof count));
}

int64_t ble_boot_nanoseconds(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Sockets.

int ble_socket(int family, int type, int protocol) {
    return once(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
}

int ble_socketpair(int fds[2]) {
    return once(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
}

static int unix_address(struct sockaddr_un *address, const char *path) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path) return -ENAMETOOLONG;
    strcpy(address->sun_path, path);
    return 0;
}

int ble_connect_unix(int fd, const char *path) {
    struct sockaddr_un address;
    int result = unix_address(&address, path);
    return result < 0 ? result : (int)REPEATED(connect(fd, (const struct sockaddr *)&address, sizeof address));
}

int ble_bind(int fd, const void *address, unsigned length) { return once(bind(fd, address, length)); }

int ble_bind_unix(int fd, const char *path) {
    struct sockaddr_un address;
    int result = unix_address(&address, path);
    return result < 0 ? result : once(bind(fd, (const struct sockaddr *)&address, sizeof address));
}

int ble_listen(int fd, int backlog) { return once(listen(fd, backlog)); }

int ble_accept(int fd) { return (int)REPEATED(accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)); }

// An interrupted connect goes on by itself, and asking again would return EALREADY.
int ble_connect(int fd, const void *address, unsigned length) {
    int result = once(connect(fd, address, length));
    return result == -EINTR ? -EINPROGRESS : result;
}

int ble_set_option(int fd, int level, int name, const void *value, unsigned length) {
    return once(setsockopt(fd, level, name, value, length));
}

int ble_get_option(int fd, int level, int name, void *value, unsigned length) {
    socklen_t size = length;
    return once(getsockopt(fd, level, name, value, &size));
}

int ble_peer_name(int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    return once(getpeername(fd, (struct sockaddr *)&address, &size));
}

int ble_own_address(int fd, void *address, unsigned length) {
    socklen_t size = length;
    return once(getsockname(fd, (struct sockaddr *)address, &size));
}

int ble_peer_address(int fd, void *address, unsigned length) {
    socklen_t size = length;
    return once(getpeername(fd, (struct sockaddr *)address, &size));
}

int ble_shutdown(int fd) { return once(shutdown(fd, SHUT_RDWR)); }

// Linux has released the descriptor even when close was interrupted: it must not be closed a second time.
int ble_close(int fd) { return once(close(fd)); }

// What the kernel reports of a raw HCI socket is rounded down to a microsecond, so the packet may have arrived up to its end.
static int64_t nanoseconds_of_event(const struct cmsghdr *item) {
    long time[2];  // seconds and microseconds, as the kernel has them for either width of time_t
    memcpy(time, CMSG_DATA(item), sizeof time);
    if (time[0] == 0 && time[1] == 0) return 0;
    return (int64_t)time[0] * 1000000000 + (int64_t)time[1] * 1000 + 999;
}

static int64_t nanoseconds_of_packet(const struct cmsghdr *item) {
    struct timespec time;
    memcpy(&time, CMSG_DATA(item), sizeof time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

long ble_receive(int fd, void *buffer, size_t capacity, struct ble_received *about) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(uint32_t)) + 2 * CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec part = {buffer, capacity};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    // Of a packet that has no time, as one that some kernels put together from fragments, the kernel reports the time of this call.
    struct timespec call = {0};
    if (about) clock_gettime(CLOCK_REALTIME, &call);
    int64_t called = (int64_t)call.tv_sec * 1000000000 + call.tv_nsec;
    long length = REPEATED(({
        // Without a place for control messages a Unix peer cannot hand us descriptors.
        message.msg_control = about ? &control : NULL;
        message.msg_controllen = about ? sizeof control : 0;
        recvmsg(fd, &message, MSG_DONTWAIT | MSG_TRUNC);
    }));
    if (!about) return length;
    about->arrival = 0;
    if (length < 0) return length;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SO_RXQ_OVFL) {
            memcpy(&about->drops, CMSG_DATA(item), sizeof about->drops);
        } else if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SO_TIMESTAMPNS) {
            about->arrival = nanoseconds_of_packet(item);
        } else if (item->cmsg_level == SOL_HCI && item->cmsg_type == HCI_CMSG_TSTAMP) {
            about->arrival = nanoseconds_of_event(item);
        }
    }
    if (about->arrival >= called) about->arrival = 0;
    return length;
}

long ble_peek(int fd) {
    char byte;
    return REPEATED(recv(fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC));
}

long ble_send(int fd, const void *bytes, size_t count) {
    return REPEATED(send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL));
}

int ble_poll(int fd) {
    struct pollfd state = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    int count = (int)REPEATED(poll(&state, 1, 0));
    if (count <= 0) return count;
    int bits = 0;
    if (state.revents & POLLIN) bits |= BLE_READABLE;
    if (state.revents & POLLOUT) bits |= BLE_WRITABLE;
    if (state.revents & (POLLHUP | POLLERR | POLLNVAL | POLLRDHUP)) bits |= BLE_HANG_UP;
    return bits;
}

// Pipes, what a socket is asked, and files.

int ble_pipe(int fds[2]) { return once(pipe2(fds, O_CLOEXEC)); }

int64_t ble_dropped(int fd) {
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof info;
    int result = once(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &size));
    return result < 0 ? result : info[SK_MEMINFO_DROPS];
}

int ble_wait_for_hang_up(int fd, int timeout_ms) {
    struct pollfd state = {.fd = fd};
    return (int)REPEATED(poll(&state, 1, timeout_ms));
}

int ble_wait_for_packet(int fd, int timeout_ms) {
    struct pollfd state = {.fd = fd, .events = POLLIN};
    return (int)REPEATED(poll(&state, 1, timeout_ms));
}

int ble_ignores_signal(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int ble_memory_file(const char *name) { return once(memfd_create(name, MFD_CLOEXEC)); }

int ble_ioctl_number(int fd, unsigned long request, int number) {
    return (int)REPEATED(ioctl(fd, request, number));
}

int ble_ioctl_pointer(int fd, unsigned long request, void *argument) {
    return (int)REPEATED(ioctl(fd, request, argument));
}

// Privileges of the calling thread.

int ble_set_capabilities(uint64_t set) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct halves[_LINUX_CAPABILITY_U32S_3] = {
        {.effective = (uint32_t)set, .permitted = (uint32_t)set},
        {.effective = (uint32_t)(set >> 32), .permitted = (uint32_t)(set >> 32)},
    };
    return once(syscall(SYS_capset, &header, halves));
}

int ble_is_secure_execution(void) { return getauxval(AT_SECURE) != 0; }

int ble_process_option(int option, unsigned long value) { return once(prctl(option, value, 0, 0, 0)); }
