#!/usr/bin/env python3
"""Writes Sources/BLECore/Identity/AssignedNumbers+*Generated.swift.

The numbers come from the YAML files that the PyPI package `bluetooth-sig` carries, the vendors' UUIDs from
vendor_uuids.txt beside this script. The same package, vendors' list and date give the same bytes.

    python3 -m venv .build/sig && .build/sig/bin/pip install bluetooth-sig==0.6.0
    .build/sig/bin/python Docs/generators/assigned_numbers.py --date 2026-11-21

    --folder DIR   the package's folder with assigned_numbers/ in it, if it is not installed here
    --version V    the package's version, needed with --folder only
"""
import argparse
import datetime
import importlib.metadata
import pathlib
import re
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOM = HERE.parent.parent / "Sources" / "BLECore" / "Identity"
ID_MARK = "~"


def installed():
    for file in importlib.metadata.files("bluetooth-sig") or []:
        if file.name == "service_uuids.yaml":
            return pathlib.Path(file.locate()).parent.parent
    sys.exit("bluetooth-sig is installed without its YAML files; give --folder")


def load(folder, name, key):
    with open(folder / name, encoding="utf-8") as file:
        return yaml.safe_load(file)[key]


def clean(name):
    name = re.sub(r"\\textsubscript\{(.*?)\}", r"\1", str(name))
    name = " ".join(name.split())
    if ID_MARK in name or '"#' in name or '"""' in name:
        sys.exit(f"this name breaks the table: {name}")
    return name


def plain(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


def entry(number, width, name, identifier=None):
    """One line: the number, the name, and the SIG identifier where the name does not already say it."""
    line = f"{number:0{width}X}{clean(name)}"
    if identifier and plain(identifier) != plain(clean(name)):
        line += ID_MARK + identifier
    return number, line


def uuids(folder, name, prefix=None):
    result = []
    for item in load(folder, f"uuids/{name}.yaml", "uuids"):
        identifier = item.get("id")
        if identifier and prefix:
            identifier = identifier.removeprefix(prefix)
        result.append(entry(item["uuid"], 4, item["name"], identifier if prefix else None))
    return result


def appearances(folder):
    result = []
    for category in load(folder, "core/appearance_values.yaml", "appearance_values"):
        base = category["category"] << 6
        result.append(entry(base, 4, category["name"]))
        for sub in category.get("subcategory", []):
            result.append(entry(base | sub["value"], 4, sub["name"]))
    return result


def vendors(kind):
    result = []
    for line in (HERE / "vendor_uuids.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        text, what, name = line.split(" ", 2)
        if what == kind:
            result.append(entry(int(text.replace("-", ""), 16), 32, name))
    return result


def table(name, what, width, entries):
    lines = [line for _, line in sorted(entries)]
    if len({number for number, _ in entries}) != len(entries):
        sys.exit(f"{name} has a number twice")
    body = "\n".join("        " + line for line in lines)
    return (
        f"    /// {what}: {len(lines)} entries.\n"
        f"    static let {name} = AssignedNumberTable(\n"
        f"        keyDigits: {width},\n"
        f'        #"""\n{body}\n        """#)\n'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--version")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args()
    version = options.version or importlib.metadata.version("bluetooth-sig")
    folder = options.folder / "assigned_numbers" if options.folder else installed()

    sig = "org.bluetooth."
    files = {
        "UUIDs": [
            table("services", "Services", 4, uuids(folder, "service_uuids", sig + "service.")),
            table("characteristics", "Characteristics", 4,
                  uuids(folder, "characteristic_uuids", sig + "characteristic.")),
            table("descriptors", "Descriptors", 4, uuids(folder, "descriptors", sig + "descriptor.")),
            table("declarations", "Declarations", 4, uuids(folder, "declarations")),
            table("units", "Units", 4, uuids(folder, "units")),
            table("vendorServices", "Vendors' services", 32, vendors("s")),
            table("vendorCharacteristics", "Vendors' characteristics", 32, vendors("c")),
        ],
        "Members": [
            table("members", "UUIDs that the SIG gave to members", 4, uuids(folder, "member_uuids")),
            table("standards", "UUIDs that the SIG gave to other standards organisations", 4,
                  uuids(folder, "sdo_uuids")),
        ],
        "Companies": [
            table("companies", "Company identifiers", 4, [
                entry(item["value"], 4, item["name"])
                for item in load(folder, "company_identifiers/company_identifiers.yaml", "company_identifiers")]),
        ],
        "Core": [
            table("appearances", "Appearance values, category and subcategory", 4, appearances(folder)),
            # 0x10 stands there twice: the LE meaning is the one that advertisements have.
            table("adTypes", "Advertising data types", 2, [
                entry(item["value"], 2, item["name"])
                for item in load(folder, "core/ad_types.yaml", "ad_types") if item["name"] != "Device ID"]),
            table("uriSchemes", "URI schemes", 4, [
                entry(item["value"], 4, item["name"])
                for item in load(folder, "core/uri_schemes.yaml", "uri_schemes")]),
            table("formatTypes", "Formats of the Characteristic Presentation Format", 2, [
                entry(item["value"], 2, item["short_name"])
                for item in load(folder, "core/formattypes.yaml", "formattypes")]),
        ],
    }
    for name, tables in files.items():
        text = (
            "// swift-format-ignore-file\n"
            f"// Generated by Docs/generators/assigned_numbers.py on {options.date} from the PyPI package\n"
            f"// bluetooth-sig {version}, which carries the Bluetooth SIG's assigned numbers. Do not edit.\n\n"
            "extension AssignedNumbers {\n" + "\n".join(tables) + "}\n"
        )
        (ROOM / f"AssignedNumbers+{name}Generated.swift").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
