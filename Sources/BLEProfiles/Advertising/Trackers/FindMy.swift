internal import BLECore

/// An item in Apple's Find My network.
///
///     away from its owner: status 1 | public key 22 | key bits 1 | hint 1        near its owner: status 1 | key bits 1
///
/// Spec: "Who Can Find My Devices?" (Heinrich et al., PoPETs 2021), 6.2; item types from the project AirGuard.
enum FindMy {
    static func fields(of message: inout ByteReader) -> [ValueField] {
        let isAway = message.remaining == 25
        guard isAway || message.remaining == 2, let status = message.u8() else { return [] }
        var list = FieldList()
        list.add("item", word: item(status))
        list.add("place", word: isAway ? "away from its owner" : "near its owner")
        list.add("battery state", word: battery(status))
        return list.fields
    }

    private static func item(_ status: UInt8) -> String {
        switch status >> 4 & 3 {
        case 0: "Apple device"
        case 1: "AirTag"
        case 2: "accessory"
        default: "AirPods"
        }
    }

    private static func battery(_ status: UInt8) -> String {
        switch status >> 6 {
        case 0: "battery full"
        case 1: "battery medium"
        case 2: "battery low"
        default: "battery very low"
        }
    }
}
