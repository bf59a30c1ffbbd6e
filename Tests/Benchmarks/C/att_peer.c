/* att_peer FD: an ATT server on a SEQPACKET descriptor, as quick as plain C can be; every measured client talks to it.
 *
 * It serves one service (1-6): a value of 22 bytes that can be read and subscribed to (3, configured at 4), and a control
 * value (6). Writing a count of four bytes to the control value, by command, makes it send so many notifications of 20
 * bytes in a row; the first four bytes number them from 0. It ends with the link. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SERVICE = 1, VALUE = 3, CONFIGURATION = 4, CONTROL = 6, NOTIFIED = 20 };

static int link_fd;

static void answer(const void *pdu, size_t length) {
    if (send(link_fd, pdu, length, MSG_NOSIGNAL) < 0) exit(0);
}

static void refuse(uint8_t opcode, uint16_t handle, uint8_t code) {
    uint8_t pdu[5] = {0x01, opcode, handle & 0xFF, handle >> 8, code};
    answer(pdu, sizeof pdu);
}

static void notify(uint32_t count) {
    uint8_t pdu[3 + NOTIFIED] = {0x1B, VALUE, 0};
    for (uint32_t number = 0; number < count; number++) {
        for (int byte = 0; byte < 4; byte++) pdu[3 + byte] = number >> (8 * byte);
        answer(pdu, sizeof pdu);
    }
}

static void received(const uint8_t *pdu, size_t length) {
    static const uint8_t mtu[] = {0x03, 517 & 0xFF, 517 >> 8};
    static const uint8_t value[23] = {0x0B, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};
    static const uint8_t services[] = {0x11, 6, SERVICE, 0, CONTROL, 0, 0x0F, 0x18};
    static const uint8_t characteristics[] = {
        0x09, 7, 2, 0, 0x12, VALUE, 0, 0x19, 0x2A, 5, 0, 0x04, CONTROL, 0, 0x50, 0x2A};
    static const uint8_t configuration[] = {0x09, 4, CONFIGURATION, 0, 0, 0};
    static const uint8_t information[] = {0x05, 1, CONFIGURATION, 0, 0x02, 0x29};
    static const uint8_t written = 0x13;
    uint16_t handle = length >= 3 ? pdu[1] | pdu[2] << 8 : 0;
    uint16_t type = length >= 7 ? pdu[5] | pdu[6] << 8 : 0;
    switch (pdu[0]) {
    case 0x02: answer(mtu, sizeof mtu); break;
    case 0x0A: handle == VALUE ? answer(value, sizeof value) : refuse(pdu[0], handle, 0x01); break;
    case 0x10:
        type == 0x2800 && handle <= SERVICE ? answer(services, sizeof services) : refuse(pdu[0], handle, 0x0A);
        break;
    case 0x08:
        if (type == 0x2803 && handle <= 2) answer(characteristics, sizeof characteristics);
        else if (type == 0x2902 && handle <= CONFIGURATION) answer(configuration, sizeof configuration);
        else refuse(pdu[0], handle, 0x0A);
        break;
    case 0x04:
        handle <= CONFIGURATION ? answer(information, sizeof information) : refuse(pdu[0], handle, 0x0A);
        break;
    case 0x12: answer(&written, 1); break;
    case 0x52:
        if (handle == CONTROL && length == 7) {
            notify(pdu[3] | pdu[4] << 8 | pdu[5] << 16 | (uint32_t)pdu[6] << 24);
        }
        break;
    case 0x1E: break;
    default:
        if (!(pdu[0] & 0x40)) refuse(pdu[0], handle, 0x06);
    }
}

int main(int count, char **arguments) {
    uint8_t pdu[600];
    if (count != 2) return fprintf(stderr, "usage: att_peer FD\n"), 64;
    link_fd = atoi(arguments[1]);
    for (;;) {
        ssize_t length = recv(link_fd, pdu, sizeof pdu, 0);
        if (length <= 0) return 0;
        received(pdu, length);
    }
}
