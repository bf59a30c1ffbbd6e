#!/usr/bin/env python3
"""meanings.py VECTORS: what independent decoders make of recorded advertisements, for Fixtures/adv/meanings.txt.

VECTORS is the folder with the recorded advertisements (see Fixtures/README.md). Needs, from PyPI: TheengsDecoder,
ruuvitag-ble, bthome-ble, xiaomi-ble, govee-ble, PySwitchbot, thermopro-ble, qingping-ble, sensorpush-ble,
mopeka-iot-ble, oralb-ble, aranet4. A line is the payload, the kind that we give it, and the
fields, in our names and units, with the values that the other decoder gives.
"""

import importlib.metadata
import json
import logging
import sys
import uuid
from pathlib import Path

from home_assistant_bluetooth import BluetoothServiceInfo

KEPT = {"bthome": 60}  # of each kind and model; else 8
logging.disable(logging.CRITICAL)


class Advertisement(BluetoothServiceInfo):
    time = 0.0


def structures(data):
    while len(data) > 1 and 0 < data[0] < len(data):
        yield data[1], data[2 : 1 + data[0]]
        data = data[1 + data[0] :]


def records(folder):
    """Each payload once, as hexadecimal digits, with who published it."""
    seen = set()
    for name in "hci_events_tests.jsonl", "ad_payloads.jsonl", "hci_events_capture.jsonl":
        for line in (Path(folder) / name).read_text().splitlines():
            record = json.loads(line)
            for report in record["reports"] if "reports" in record else [record]:
                payload = report["data"] if "data" in report else record["hex"]
                if payload not in seen:
                    seen.add(payload)
                    yield payload, record["source"].split(":")[0]


def parts(payload):
    name, makers, services, lists = "", {}, {}, []
    for kind, value in structures(bytes.fromhex(payload)):
        if kind in (8, 9):
            name = value.decode(errors="replace").split("\0")[0]
        elif kind == 255 and len(value) >= 2:
            makers[int.from_bytes(value[:2], "little")] = value[2:]
        elif kind in (2, 3):
            for a, b in zip(value[::2], value[1::2]):
                lists.append(f"0000{b:02x}{a:02x}-0000-1000-8000-00805f9b34fb")
        elif kind in (6, 7):
            for start in range(0, len(value) - 15, 16):
                lists.append(str(uuid.UUID(bytes=value[start : start + 16][::-1])))
        elif kind == 22 and len(value) >= 2:
            services[f"0000{value[1]:02x}{value[0]:02x}-0000-1000-8000-00805f9b34fb"] = value[2:]
    return name, makers, services, lists


NAMES = {
    "movement_counter": "movements", "illuminance": "illuminance", "co2": "carbon dioxide",
    "acceleration_x": None, "acceleration_y": None, "acceleration_z": None, "acceleration_total": None,
    "packet_id": "packet id", "volatile_organic_compounds": "organic compounds", "pm25": "pm2.5", "pm10": "pm10",
    "dew_point": "dew point", "mass": "mass", "light": "illuminance", "uv_index": "uv index",
    "volume_flow_rate": "flow rate", "impedance": None, "mass_non_stabilized": "mass", "time": "brushing time",
    "toothbrush_state": "state", "sector": None, "number_of_sectors": None, "sector_timer": None, "tank_level": None,
    "accelerometer_x": None, "accelerometer_y": None, "reading_quality": None, "reading_quality_raw": "quality",
    "reading_quality_stars": None, "battery_voltage": "voltage",
}  # fmt: skip


def home_assistant(module, decoder, kind):
    """Decoders that Home Assistant uses share a shape."""
    imported = __import__(module)

    def decode(payload):
        name, makers, services, lists = parts(payload)
        mibeacon = services.get("0000fe95-0000-1000-8000-00805f9b34fb", b"")
        if kind == "xiaomi-scale" and not any("181b" in key or "181d" in key for key in services):
            return None
        sender = mibeacon[10:4:-1] if mibeacon[:1] and mibeacon[0] & 0x10 else b"\xaa\xbb\xcc\xdd\xee\xff"
        if kind == "mibeacon" and not mibeacon:
            return None
        info = Advertisement(
            name=name, address=sender.hex(":").upper(), rssi=-60, manufacturer_data=makers, service_data=services,
            service_uuids=lists, source="")  # fmt: skip
        parser = getattr(imported, decoder)()
        try:
            if not parser.supported(info):
                return None
            update = parser.update(info)
        except (ValueError, IndexError, TypeError, KeyError, NotImplementedError):
            return None
        except Exception:
            return None
        fields = {}
        for key, value in update.entity_values.items():
            word = NAMES.get(key.key, key.key.replace("_", " "))
            if key.key == "signal_strength" or word is None or value.native_value in (None, "error"):
                continue
            number = value.native_value
            if word.endswith(" 1"):  # We number from the second on.
                word = word[:-2]
            if kind == "oral-b" and word == "pressure" or kind in ("thermopro", "mopeka") and word == "battery":
                continue
            if kind == "oral-b" and isinstance(number, str):
                fields[word] = number
            if isinstance(number, (int, float)):
                fields[word] = number / 1000 if module == "ruuvitag_ble" and word == "voltage" else number
        if kind == "thermopro" and not fields:  # It goes by the name alone.
            return None
        models = [str(device.model) for device in update.devices.values() if device.model]
        return kind, models[-1] if models else "", fields

    return decode


THEENGS = {
    "RuuviTag_RAWv1": ("ruuvitag", {"tempc": "temperature", "hum": "humidity", "pres": "pressure", "volt": "voltage"}),
    "RuuviTag_RAWv2": ("ruuvitag", {"tempc": "temperature", "hum": "humidity", "pres": "pressure", "volt": "voltage",
                                    "tx": "tx power", "mov": "movements", "seq": "sequence"}),
    "IBEACON": ("ibeacon", {"uuid": "uuid", "major": "major", "minor": "minor", "txpower": "power at 1 m"}),
    "GAEN": ("exposure-notification", {"rpi": "identifier"}),
    "APPLEAIRPODS": ("apple-continuity", {"batt_l": "left battery", "batt_r": "right battery"}),
    "LYWSD03MMC/MJWSD05MMC_ATC": ("atc", {"tempc": "temperature", "hum": "humidity", "batt": "battery",
                                          "volt": "voltage"}),
    "LYWSD03MMC/MJWSD05MMC_PVVX": ("atc", {"tempc": "temperature", "hum": "humidity", "batt": "battery",
                                           "volt": "voltage"}),
    "LYWSD03MMC/MJWSD05MMC_PVVX_ENCR": ("atc", {}),
    "THX1/W230150X": ("switchbot", {"tempc": "temperature", "hum": "humidity", "batt": "battery"}),
    "MS-CDP": ("microsoft-cdp", {}),
    "IBS-TH1/TH2/P01B/ITH-12S": ("inkbird", {"tempc": "temperature", "hum": "humidity", "batt": "battery"}),
    "TILE": ("tile", {}),
}  # fmt: skip


def theengs(payload):
    from TheengsDecoder import decodeBLE

    name, makers, services, _ = parts(payload)
    message = {"id": "AA:BB:CC:DD:EE:FF", "name": name}
    for company, data in makers.items():
        message["manufacturerdata"] = company.to_bytes(2, "little").hex() + data.hex()
    for service, data in services.items():
        message["servicedatauuid"], message["servicedata"] = service[4:8], data.hex()
    answer = decodeBLE(json.dumps(message))
    if not answer:
        return None
    answer = json.loads(answer)
    known = THEENGS.get(answer["model_id"])
    if known and known[0] == "switchbot" and 0x0969 in makers:  # It does not look at them.
        return None
    if known and known[0] == "tile" and "servicedata" not in message:  # It goes by the name alone.
        return None
    if not known:
        return None
    if known[0] == "exposure-notification" and len(message["servicedata"]) != 40:  # It takes those that are cut off too.
        return None
    fields = {ours: answer[theirs] for theirs, ours in known[1].items() if theirs in answer}
    for word in "major", "minor":  # TheengsDecoder takes them for signed.
        if word in fields:
            fields[word] %= 65536
    for word in "left battery", "right battery":  # It says 100 for 15 too, which is not known.
        if fields.get(word) == 100:
            del fields[word]
    return known[0], answer["model_id"], fields


# Advertisements that the decoder's own tests quote.
SWITCHBOT_EXAMPLES = [
    "09163dfd63c058001104", "09163dfd63c053641104", "0c163dfd64406405007500f812", "0616000d4810e1",
]  # fmt: skip
SWITCHBOT = {"temperature": "temperature", "humidity": "humidity", "battery": "battery", "lightLevel": "light level",
             "contact_open": "contact", "motion_detected": "motion", "is_light": "light", "isOn": "switch"}  # fmt: skip
WORDS = {"contact": ("closed", "open"), "motion": ("no motion", "motion"), "light": ("no light", "light"),
         "switch": ("off", "on")}  # fmt: skip


def switchbot(payload):
    from bleak.backends.device import BLEDevice
    from bleak.backends.scanner import AdvertisementData
    from switchbot.adv_parser import parse_advertisement_data

    name, makers, services, _ = parts(payload)
    device = BLEDevice("AA:BB:CC:DD:EE:FF", name, {})
    try:
        answer = parse_advertisement_data(device, AdvertisementData(name, makers, services, [], None, -60, ()))
    except Exception:
        return None
    if not answer or not answer.data.get("data"):
        return None
    data = answer.data["data"]
    fields = {ours: data[theirs] for theirs, ours in SWITCHBOT.items() if data.get(theirs) is not None}
    if not data.get("switchMode"):
        fields.pop("switch", None)
    for word, value in fields.items():
        if isinstance(value, bool):
            fields[word] = WORDS[word][value]
    return "switchbot", answer.data.get("modelFriendlyName", ""), fields


# Advertisements that the decoders' own tests quote.
EXAMPLES = {
    "mopeka": ["0303e5fe0dff590008724600c0e0f509f0d8"],
    "aranet": [
        "0e094172616e65743420313233343519ff0207" "2105030100050001" "43049f018b27350c023c001000" "55",
        "0e094172616e657432203237384638" "1bff0207" "012104040100" "00000000990100000a02003b007800520064",
        "1bff0207" "022126040100" "d03300006c60060082000063002c01580072",
        "1bff0207" "032104060100" "00000700fe01c927ce01006401580" "2f60108",
    ],
}


def aranet(payload):
    from aranet4.client import Aranet4Advertisement
    from bleak.backends.scanner import AdvertisementData

    name, makers, services, lists = parts(payload)
    if 0x0702 not in makers:
        return None
    device = type("Device", (), {"name": name or None, "address": "AA:BB:CC:DD:EE:FF"})()
    answer = Aranet4Advertisement(device, AdvertisementData(name, makers, services, lists, None, -60, ()))
    if not answer.readings:
        return None
    names = {"co2": "carbon dioxide", "temperature": "temperature", "pressure": "pressure", "humidity": "humidity",
             "battery": "battery", "interval": "interval", "ago": "age", "radon_concentration": "radon",
             "radiation_duration": "duration"}  # fmt: skip
    fields = {ours: getattr(answer.readings, theirs) for theirs, ours in names.items()}
    # It rounds the twentieths of a degree.
    fields = {word: value for word, value in fields.items() if value not in (None, -1) and word != "temperature"}
    if answer.readings.radiation_rate not in (None, -1):
        fields["dose rate"] = answer.readings.radiation_rate / 1000
        fields["dose"] = answer.readings.radiation_total / 1000
    return "aranet", answer.readings.type.model, fields


DECODERS = {
    "TheengsDecoder": theengs,
    "ruuvitag-ble": home_assistant("ruuvitag_ble", "RuuvitagBluetoothDeviceData", "ruuvitag"),
    "bthome-ble": home_assistant("bthome_ble", "BTHomeBluetoothDeviceData", "bthome"),
    "xiaomi-ble": home_assistant("xiaomi_ble", "XiaomiBluetoothDeviceData", "mibeacon"),
    "govee-ble": home_assistant("govee_ble", "GoveeBluetoothDeviceData", "govee"),
    "PySwitchbot": switchbot,
    "thermopro-ble": home_assistant("thermopro_ble", "ThermoProBluetoothDeviceData", "thermopro"),
    "qingping-ble": home_assistant("qingping_ble", "QingpingBluetoothDeviceData", "qingping"),
    "sensorpush-ble": home_assistant("sensorpush_ble", "SensorPushBluetoothDeviceData", "sensorpush"),
    "mopeka-iot-ble": home_assistant("mopeka_iot_ble", "MopekaIOTBluetoothDeviceData", "mopeka"),
    "oralb-ble": home_assistant("oralb_ble", "OralBBluetoothDeviceData", "oral-b"),
    "xiaomi-ble, scales": home_assistant("xiaomi_ble", "XiaomiBluetoothDeviceData", "xiaomi-scale"),
    "aranet4": aranet,
}


def main():
    folder, only = sys.argv[1], set(sys.argv[2:])
    print("# What independent decoders make of recorded advertisements: payload | kind | field=value, …")
    print("# Written by recording/meanings.py from advertisements that the named repositories published.")
    for name, decode in DECODERS.items():
        counts, lines = {}, {}
        examples = SWITCHBOT_EXAMPLES if decode is switchbot else EXAMPLES.get(name.split("-")[0].rstrip("4"), [])
        examples = [(payload, "its own tests") for payload in examples]
        for payload, source in examples + list(records(folder)):
            answer = decode(payload)
            if not answer:
                continue
            kind, model, fields = answer
            if only and kind not in only:
                continue
            counts[kind, model] = counts.get((kind, model), 0) + 1
            if counts[kind, model] > KEPT.get(kind, 8) or "temperature probe" in fields:  # Those with probes we do not read.
                continue
            text = ", ".join(f"{word}={value}" for word, value in fields.items())
            lines.setdefault((model, source), []).append(f"{payload} | {kind} | {text}".rstrip())
        for (model, source), rows in lines.items():
            version = importlib.metadata.version(name.split(",")[0])
            print(f"\n# {name} {version}, {model}; published by {source}")
            print("\n".join(rows))


main()
