internal import BLECore

/// The proximity pairing message of Apple and Beats headphones, with battery levels.
///
///     01 | model 2 | status 1 | battery of both 1 | charging, battery of the case 1 | lid 1 | colour 1 | …
///
/// Battery levels are in tens of percent; 15 is unknown. Newer firmware sends a shorter, fully encrypted message.
/// Spec: "Discontinued Privacy" (Celosia and Cunche, PoPETs 2020), 5.3.
enum AirPods {
    static func fields(of message: inout ByteReader) -> [ValueField] {
        guard message.remaining == 25, message.u8() == 1, let model = message.bigEndian16(), let status = message.u8(),
            let pods = message.u8(), let box = message.u8()
        else { return [] }
        var list = FieldList()
        list.add("model", word: name(of: model) ?? "model 0x" + Hex.encode([UInt8(model >> 8), UInt8(model & 0xFF)]))
        // The lower half is the earbud that advertises; the status bit indicates which ear that is.
        let (sender, other) = (pods & 0x0F, pods >> 4)
        let isLeft = status & 0x20 != 0
        list.ofSender { list in
            list.measured("left battery", percent(isLeft ? sender : other), "%")
            list.measured("right battery", percent(isLeft ? other : sender), "%")
            list.measured("case battery", percent(box & 0x0F), "%")
        }
        return list.fields
    }

    private static func percent(_ tens: UInt8) -> UInt8? {
        tens <= 10 ? tens * 10 : nil
    }

    private static func name(of model: UInt16) -> String? {
        switch model {
        case 0x0220: "AirPods"
        case 0x0F20: "AirPods 2"
        case 0x1320: "AirPods 3"
        case 0x1920, 0x1B20: "AirPods 4"
        case 0x0E20: "AirPods Pro"
        case 0x1420, 0x2420: "AirPods Pro 2"
        case 0x0A20, 0x1F20: "AirPods Max"
        case 0x0320: "Powerbeats3"
        case 0x0520: "BeatsX"
        case 0x0620: "Beats Solo3"
        case 0x0920: "Beats Studio3"
        case 0x0B20: "Powerbeats Pro"
        case 0x0C20: "Beats Solo Pro"
        case 0x1020: "Beats Flex"
        case 0x1120: "Beats Studio Buds"
        case 0x1220: "Beats Fit Pro"
        default: nil
        }
    }
}
