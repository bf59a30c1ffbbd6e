/* bluez_server FD: BlueZ's own GATT server (src/shared of its sources) with stored values, on a SEQPACKET descriptor, as its
 * btgatt-server runs it. It is compiled against the sources of the Debian package bluez-source.
 *
 * After Generic Access and Generic Attribute it serves a value of 22 bytes that can be read and subscribed to. The first line of
 * output is the handle of the value. It ends with the link. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "lib/bluetooth.h"
#include "lib/uuid.h"
#include "src/shared/att.h"
#include "src/shared/gatt-db.h"
#include "src/shared/gatt-server.h"
#include "src/shared/mainloop.h"
#include "src/shared/queue.h"
#include "src/shared/util.h"

static uint8_t configuration[2];

static void disconnected(int error, void *unused) {
    (void)error, (void)unused;
    mainloop_quit();
}

static void configure(
    struct gatt_db_attribute *attribute, unsigned int id, uint16_t offset, const uint8_t *value, size_t length, uint8_t opcode,
    struct bt_att *att, void *unused) {
    (void)opcode, (void)att, (void)unused;
    if (offset == 0 && length == 2) configuration[0] = value[0], configuration[1] = value[1];
    gatt_db_attribute_write_result(attribute, id, offset == 0 && length == 2 ? 0 : BT_ATT_ERROR_INVALID_ATTRIBUTE_VALUE_LEN);
}

static void stored(struct gatt_db_attribute *attribute, int error, void *unused) {
    (void)attribute, (void)unused;
    if (error) exit(1);
}

static struct gatt_db_attribute *add(
    struct gatt_db_attribute *service, uint16_t type, uint8_t properties, const uint8_t *value, size_t length) {
    bt_uuid_t uuid;
    bt_uuid16_create(&uuid, type);
    struct gatt_db_attribute *attribute =
        gatt_db_service_add_characteristic(service, &uuid, BT_ATT_PERM_READ, properties, NULL, NULL, NULL);
    if (length > 0) gatt_db_attribute_write(attribute, 0, value, length, 0, NULL, stored, NULL);
    return attribute;
}

static struct gatt_db_attribute *add_service(struct gatt_db *database, uint16_t type, uint16_t handles) {
    bt_uuid_t uuid;
    bt_uuid16_create(&uuid, type);
    return gatt_db_add_service(database, &uuid, true, handles);
}

static void add_configuration(struct gatt_db_attribute *service) {
    bt_uuid_t uuid;
    bt_uuid16_create(&uuid, 0x2902);
    gatt_db_service_add_descriptor(service, &uuid, BT_ATT_PERM_READ | BT_ATT_PERM_WRITE, NULL, configure, NULL);
}

int main(int count, char **arguments) {
    static const uint8_t name[] = "Benchmark", appearance[2] = {0}, features[1] = {0};
    uint8_t value[22];
    if (count != 2) return fprintf(stderr, "usage: bluez_server FD\n"), 64;
    for (int byte = 0; byte < 22; byte++) value[byte] = byte + 1;
    mainloop_init();

    struct gatt_db *database = gatt_db_new();
    struct gatt_db_attribute *service = add_service(database, 0x1800, 5);
    add(service, 0x2A00, BT_GATT_CHRC_PROP_READ, name, sizeof name - 1);
    add(service, 0x2A01, BT_GATT_CHRC_PROP_READ, appearance, sizeof appearance);
    gatt_db_service_set_active(service, true);
    service = add_service(database, 0x1801, 6);
    add(service, 0x2A05, BT_GATT_CHRC_PROP_INDICATE, NULL, 0);
    add_configuration(service);
    add(service, 0x2B29, BT_GATT_CHRC_PROP_READ, features, sizeof features);
    gatt_db_service_set_active(service, true);
    service = add_service(database, 0x180F, 4);
    struct gatt_db_attribute *level =
        add(service, 0x2A19, BT_GATT_CHRC_PROP_READ | BT_GATT_CHRC_PROP_NOTIFY, value, sizeof value);
    add_configuration(service);
    gatt_db_service_set_active(service, true);

    struct bt_att *att = bt_att_new(atoi(arguments[1]), false);
    if (!att || !bt_att_register_disconnect(att, disconnected, NULL, NULL)) return 1;
    struct bt_gatt_server *server = bt_gatt_server_new(database, att, 517, 0);
    if (!server) return 1;
    printf("%d\n", gatt_db_attribute_get_handle(level));
    fflush(stdout);
    return mainloop_run();
}
