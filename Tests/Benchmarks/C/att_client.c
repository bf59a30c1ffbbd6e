/* att_client FD [HANDLE]: the least that a client on epoll can do, in C; what BareBLE is measured against, and the client of
 * every measured server. HANDLE is that of the value to read, 3 if it is left out.
 *
 * Orders on standard input, one a line: `read N` (one Read Request after the other) and `notify N` (asks the peer for N
 * notifications and takes them all). The answer is the nanoseconds that it took and the number of values. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

static int link_fd, epoll_fd, handle = 3;
static uint8_t pdu[600];

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void give_up(const char *what) {
    perror(what);
    exit(1);
}

static void wait_readable(void) {
    struct epoll_event event;
    while (epoll_wait(epoll_fd, &event, 1, -1) < 0) {
        if (errno != EINTR) give_up("epoll_wait");
    }
}

static long read_values(long count) {
    uint8_t request[] = {0x0A, handle & 0xFF, handle >> 8 & 0xFF};
    long values = 0;
    for (long index = 0; index < count; index++) {
        if (send(link_fd, request, sizeof request, 0) < 0) give_up("send");
        wait_readable();
        ssize_t length = recv(link_fd, pdu, sizeof pdu, 0);
        if (length != 23 || pdu[0] != 0x0B) give_up("recv");
        values++;
    }
    return values;
}

static long take_notifications(long count) {
    uint8_t order[] = {0x52, 6, 0, count & 0xFF, count >> 8 & 0xFF, count >> 16 & 0xFF, count >> 24 & 0xFF};
    long values = 0;
    if (send(link_fd, order, sizeof order, 0) < 0) give_up("send");
    while (values < count) {
        wait_readable();
        for (;;) {
            ssize_t length = recv(link_fd, pdu, sizeof pdu, 0);
            if (length < 0 && errno == EAGAIN) break;
            if (length <= 0) give_up("recv");
            if (pdu[0] == 0x1B) values++;
        }
    }
    return values;
}

int main(int count, char **arguments) {
    char order[16];
    long number;
    struct epoll_event event = {.events = EPOLLIN};
    if (count != 2 && count != 3) return fprintf(stderr, "usage: att_client FD [HANDLE]\n"), 64;
    link_fd = atoi(arguments[1]);
    if (count == 3) handle = atoi(arguments[2]);
    fcntl(link_fd, F_SETFL, fcntl(link_fd, F_GETFL) | O_NONBLOCK);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, link_fd, &event) < 0) give_up("epoll");
    while (scanf("%15s %ld", order, &number) == 2) {
        long long start = now();
        long values = strcmp(order, "read") ? take_notifications(number) : read_values(number);
        printf("%lld %ld\n", now() - start, values);
        fflush(stdout);
    }
    return 0;
}
