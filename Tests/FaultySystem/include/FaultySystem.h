// System calls that fail when a test says so.
//
// A program that links this module has its own `socket`, `recvmsg`, `open` and so on in front of the C library's, for all of its
// code: Swift, C and shared libraries. Without a plan each of them is the C library's call and nothing else.
//
// A plan belongs to one test, and so do the calls that it sees, also while other tests run beside it:
// - those on a descriptor that was handed to it, or that one of its own calls has opened;
// - those on a path below a directory that was handed to it;
// - those of a thread that has joined it.
// It counts them, notes them, and has them fail by its rules. Rules are looked at in their order; the first that hits decides.
#ifndef FAULTYSYSTEM_H
#define FAULTYSYSTEM_H

#include <stdint.h>

enum faulty_call {
    FAULTY_SOCKET, FAULTY_SOCKETPAIR, FAULTY_BIND, FAULTY_CONNECT, FAULTY_GETSOCKOPT, FAULTY_SETSOCKOPT,
    FAULTY_GETSOCKNAME, FAULTY_GETPEERNAME, FAULTY_SHUTDOWN, FAULTY_RECVMSG, FAULTY_RECV, FAULTY_SEND, FAULTY_SENDMSG,
    FAULTY_POLL, FAULTY_EPOLL_CREATE, FAULTY_EPOLL_CTL, FAULTY_EPOLL_WAIT, FAULTY_EVENTFD, FAULTY_TIMERFD_CREATE,
    FAULTY_TIMERFD_SETTIME, FAULTY_READ, FAULTY_WRITE, FAULTY_IOCTL, FAULTY_OPEN, FAULTY_CLOSE, FAULTY_FSYNC, FAULTY_FSTAT,
    FAULTY_LSTAT, FAULTY_STAT, FAULTY_RENAME, FAULTY_UNLINK, FAULTY_FCHMOD, FAULTY_FTRUNCATE, FAULTY_FLOCK, FAULTY_REALPATH,
    FAULTY_OPENDIR, FAULTY_LSEEK, FAULTY_PIPE, FAULTY_MEMFD, FAULTY_ACCEPT, FAULTY_CALL_COUNT
};

enum faulty_effect {
    FAULTY_FAIL,       // `value` is the errno; nothing happens, but that a descriptor is closed all the same, as Linux does
    FAULTY_INTERRUPT,  // every other hit fails with EINTR: the call is interrupted, and goes through when it is repeated
    FAULTY_RETURN,     // returns `value`; nothing happens
    FAULTY_SHORT,      // at most `value` bytes are read, received or written
    FAULTY_LENGTH,     // a packet is received, and its length is said to be `value`
    FAULTY_DROPS,      // a packet is received, with the news that the kernel has dropped `value` so far
    FAULTY_LOSE,       // a packet is taken from the socket and is gone, as where the kernel drops one: EAGAIN
    FAULTY_STATE,      // `poll` reports the bits of `value`
    FAULTY_STOP,       // the process is killed here: a write still gets `value` bytes out, and from then on nothing changes any file
};

struct faulty_rule {
    uint64_t calls;  // a bit for each faulty_call
    int descriptor;  // -1: any
    int skip;        // so many of these calls pass first
    int times;       // so many are hit then; -1: all
    int effect;
    int value;
};

// A call that a plan has seen. A failed one has the errno as a negative result.
struct faulty_note {
    int call;
    int descriptor;
    int result;
};

// The number of a new plan, or -1 when there are too many; ending it lets go of everything it was handed.
int faulty_begin(void);
void faulty_end(int plan);

void faulty_take_descriptor(int plan, int descriptor);
void faulty_take_path(int plan, const char *prefix);
void faulty_leave_paths(int plan);
// The calling thread joins a plan; 0 leaves it. A thread that has joined leaves before it ends.
void faulty_join(int plan);

void faulty_add(int plan, struct faulty_rule rule);
void faulty_clear(int plan);

// How many calls of the kinds in `calls` there were so far; how many of them a rule has hit; and the notes, oldest first.
long faulty_count(int plan, uint64_t calls);
long faulty_hits(int plan);
int faulty_note_at(int plan, long index, struct faulty_note *note);
// How many descriptors are open that were handed to the plan or opened by its calls.
int faulty_open_count(int plan);
int faulty_is_stopped(int plan);

// Has Bluetooth sockets of this plan be ends of socket pairs, on a machine with one adapter that is on. The other end of a socket
// appears when it is bound (HCI, protocol 1) or connects (L2CAP, protocol 0); the test that takes it owns it. -1: there is none.
void faulty_pretend_bluetooth(int plan, uint64_t adapter_address);
int faulty_take_far_end(int plan, int protocol);
// Whether `connect` of such sockets returns EINPROGRESS.
void faulty_pretend_slow_connect(int plan, int is_slow);

#endif
