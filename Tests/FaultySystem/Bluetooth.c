#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "Plans.h"

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/l2cap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// A machine with Bluetooth.

void faulty_pretend_bluetooth(int plan, uint64_t address) {
    pthread_mutex_lock(&plans_lock);
    plans[plan].adapter = address;
    pthread_mutex_unlock(&plans_lock);
}

void faulty_pretend_slow_connect(int plan, int is_slow) {
    pthread_mutex_lock(&plans_lock);
    plans[plan].is_slow = is_slow;
    pthread_mutex_unlock(&plans_lock);
}

static struct far_end *far_end_of(struct plan *plan, int near) {
    for (int i = 0; i < plan->far_count; i++) {
        if (plan->far_ends[i].near == near) return &plan->far_ends[i];
    }
    return NULL;
}

int faulty_take_far_end(int number, int protocol) {
    int far = -1;
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = &plans[number];
    for (int i = 0; i < plan->far_count && far < 0; i++) {
        struct far_end *end = &plan->far_ends[i];
        if (end->protocol != protocol || !end->is_ready || end->far < 0) continue;
        far = end->far;
        end->far = -1;
    }
    pthread_mutex_unlock(&plans_lock);
    return far;
}

// The plan whose pretended socket this is; 0 if it is none.
int pretending(int fd) {
    int number = owner_of(fd);
    if (!number) return 0;
    pthread_mutex_lock(&plans_lock);
    int is_ours = plans[number].adapter && far_end_of(&plans[number], fd);
    pthread_mutex_unlock(&plans_lock);
    return is_ours ? number : 0;
}

void far_end_ready(int number, int fd, int protocol) {
    pthread_mutex_lock(&plans_lock);
    struct far_end *end = far_end_of(&plans[number], fd);
    if (end && end->protocol == protocol) end->is_ready = 1;
    pthread_mutex_unlock(&plans_lock);
}

void far_end_is(int number, int fd, const struct sockaddr *peer, socklen_t length) {
    pthread_mutex_lock(&plans_lock);
    struct far_end *end = far_end_of(&plans[number], fd);
    if (end) memcpy(&end->peer, peer, length < sizeof end->peer ? length : sizeof end->peer);
    pthread_mutex_unlock(&plans_lock);
}

int pretended_name(int number, int fd, int is_peer, struct sockaddr *name, socklen_t *length) {
    struct sockaddr_l2 place = {.l2_family = AF_BLUETOOTH, .l2_cid = htobs(4), .l2_bdaddr_type = BDADDR_LE_PUBLIC};
    pthread_mutex_lock(&plans_lock);
    for (int i = 0; i < 6; i++) place.l2_bdaddr.b[i] = (uint8_t)(plans[number].adapter >> (8 * i));
    struct far_end *end = far_end_of(&plans[number], fd);
    if (is_peer && end) place = end->peer;
    pthread_mutex_unlock(&plans_lock);
    memcpy(name, &place, *length < sizeof place ? *length : sizeof place);
    *length = sizeof place;
    return 0;
}

void near_end_closed(int fd) {
    int number = owner_of(fd);
    if (!number) return;
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = &plans[number];
    struct far_end *end = far_end_of(plan, fd);
    int far = end ? end->far : -1;
    // In their order: the library's first HCI socket is that for commands.
    if (end) memmove(end, end + 1, (size_t)(&plan->far_ends[plan->far_count--] - end - 1) * sizeof *end);
    pthread_mutex_unlock(&plans_lock);
    if (far >= 0) close_original(far);
}

int pretended_ioctl(int number, unsigned long request, void *argument) {
    uint64_t address = plans[number].adapter;
    if (request == HCIGETDEVLIST) {
        struct hci_dev_list_req *list = argument;
        list->dev_num = 1;
        list->dev_req[0] = (struct hci_dev_req){.dev_id = 0, .dev_opt = 5};
    } else if (request == HCIGETDEVINFO) {
        struct hci_dev_info *info = argument;
        if (info->dev_id != 0) return errno = ENODEV, -1;
        memset(info, 0, sizeof *info);
        strcpy(info->name, "hci0");
        for (int i = 0; i < 6; i++) info->bdaddr.b[i] = (uint8_t)(address >> (8 * i));
        info->flags = 5;
    } else if (request == HCIGETCONNLIST) {
        ((struct hci_conn_list_req *)argument)->conn_num = 0;
    }
    return 0;
}

int pretended_socket(int number, int type, int protocol) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | (type & (SOCK_CLOEXEC | SOCK_NONBLOCK)), 0, fds)) return -1;
    set_owner(fds[1], 0);
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = &plans[number];
    if (plan->far_count == most_far_ends) abort();
    plan->far_ends[plan->far_count++] = (struct far_end){.near = fds[0], .far = fds[1], .protocol = protocol};
    pthread_mutex_unlock(&plans_lock);
    return fds[0];
}
