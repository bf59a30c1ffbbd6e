// What Swift cannot import by itself: the kernel's Bluetooth layouts and constants, and the few system calls that the
// C library's Swift module leaves out.
//
// The <bluetooth/...> headers are read for layouts and constants only. None of their inline functions is called and
// nothing is linked: libbluetooth's licence must not reach a user's program. BLELinux is the only caller of this module.
//
// Every function returns what the system call returned, or -errno: Swift could not read errno in time. A call that a signal
// interrupted is repeated here, except ble_wait, whose caller may have something else to look at first.
#ifndef CBLUETOOTH_H
#define CBLUETOOTH_H

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/l2cap.h>
#include <linux/prctl.h>
#include <stddef.h>
#include <stdint.h>

// The event loop: epoll, an eventfd to wake it from other threads, a timerfd on the boot-time clock.

#define BLE_READABLE 1  // also set when the other end has gone
#define BLE_WRITABLE 2
#define BLE_HANG_UP 4   // error or hang-up: reported whether asked for or not

struct ble_ready {
    uint64_t tag;
    int state;
};

// The calling thread. Swift may take pthread_self, declared constant, for the same on both sides of an await.
uint64_t ble_thread(void);
int ble_epoll(void);
int ble_watch(int epoll, int fd, int interest, uint64_t tag, int already_watched);
int ble_unwatch(int epoll, int fd);
int ble_wait(int epoll, struct ble_ready *ready, int capacity, int timeout_ms);
int ble_wakefd(void);
int ble_wake(int fd);
int ble_timerfd(void);
int ble_timer_set(int fd, int64_t boot_nanoseconds);
int ble_drain(int fd);
int64_t ble_boot_nanoseconds(void);

// Sockets. All of them are non-blocking and closed on exec.

int ble_socket(int family, int type, int protocol);
int ble_socketpair(int fds[2]);
int ble_connect_unix(int fd, const char *path);
int ble_bind(int fd, const void *address, unsigned length);
int ble_bind_unix(int fd, const char *path);
int ble_listen(int fd, int backlog);
int ble_accept(int fd);
int ble_connect(int fd, const void *address, unsigned length);
int ble_set_option(int fd, int level, int name, const void *value, unsigned length);
int ble_get_option(int fd, int level, int name, void *value, unsigned length);
int ble_peer_name(int fd);
int ble_own_address(int fd, void *address, unsigned length);
int ble_peer_address(int fd, void *address, unsigned length);
int ble_shutdown(int fd);
int ble_close(int fd);

// What the kernel reports with a packet, where the socket asks it to.
struct ble_received {
    // How many packets it has dropped on this socket so far (SO_RXQ_OVFL). Unchanged unless that is reported.
    uint32_t drops;
    // When the driver passed the packet to the kernel (SO_TIMESTAMPNS, HCI_TIME_STAMP), in nanoseconds of its wall clock; 0 unless reported,
    // and where the time is not that of an arrival before the call.
    int64_t arrival;
};

// One packet. Returns its true length, which may exceed `capacity`; the rest is lost then. `about` may be NULL.
long ble_receive(int fd, void *buffer, size_t capacity, struct ble_received *about);
// The length of the next packet, which stays where it is.
long ble_peek(int fd);
long ble_send(int fd, const void *bytes, size_t count);
// BLE_... bits as they stand now, without waiting.
int ble_poll(int fd);

// How many packets the kernel has dropped on a socket because nobody read them in time. Raw HCI sockets count them as well, but
// SO_RXQ_OVFL stays silent there.
int64_t ble_dropped(int fd);

// Datagrams with descriptors, as the service manager takes them. A name is what follows the family in the address; one that begins
// with a zero byte is abstract. The receiver's `fd_count` is the room on entry and the number of descriptors on return. `wait_ms` is how
// long to wait for room at the receiver.
long ble_send_to(
    const void *name, size_t name_length, const void *bytes, size_t count, const int *fds, int fd_count, int wait_ms);
int ble_bind_datagrams(const void *name, size_t name_length);
long ble_receive_with_descriptors(int fd, void *buffer, size_t capacity, int *fds, int *fd_count);
int ble_pipe(int fds[2]);
// Waits until all writers of a pipe are gone: 1, or 0 when the time is over.
int ble_wait_for_hang_up(int fd, int timeout_ms);
// Waits until something can be read: 1, or 0 when the time is over.
int ble_wait_for_packet(int fd, int timeout_ms);
// Whether this process ignores a signal: 1 or 0.
int ble_ignores_signal(int number);
// A file that exists in memory only, and that a process can read if it gets the descriptor.
int ble_memory_file(const char *name);

// HCI ioctls. `ble_ioctl_number` is for those that take the adapter's index itself.
extern const unsigned long ble_HCIDEVUP, ble_HCIDEVDOWN, ble_HCIDEVRESET;
extern const unsigned long ble_HCIGETDEVLIST, ble_HCIGETDEVINFO, ble_HCIGETCONNLIST;
// Resets the port of a USB device, by the file of its node.
extern const unsigned long ble_USBDEVFS_RESET;
int ble_ioctl_number(int fd, unsigned long request, int number);
int ble_ioctl_pointer(int fd, unsigned long request, void *argument);

// Privileges of the calling thread: its effective and permitted capabilities, none of them inheritable; and prctl with one argument.
int ble_set_capabilities(uint64_t set);
int ble_process_option(int option, unsigned long value);
// Whether the program's file gives it rights that the user who started it lacked (AT_SECURE).
int ble_is_secure_execution(void);

#endif
