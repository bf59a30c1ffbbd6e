#ifndef CBLUETOOTH_H
#define CBLUETOOTH_H
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/l2cap.h>
#endif
