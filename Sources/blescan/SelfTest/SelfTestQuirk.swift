/// A row of the catalogue of controllers that the self-test has seen.
struct SelfTestQuirk: Hashable, Sendable {
    /// How sure it is that the controller has it.
    enum Confidence: String, Hashable, Sendable {
        /// A check saw it.
        case observed
        /// The controller is one of those that are known for it.
        case known
    }

    let row: String
    let confidence: Confidence

    init(_ row: String) {
        self.row = row
        confidence = Self.byIdentity.contains(row) ? .known : .observed
    }

    /// Rows that follow from what the controller is, and not from what it did.
    private static let byIdentity: Set<String> = ["W13", "W54", "W55", "W57", "W58", "W68"]

    /// What programs on BareBLE do about it, or their user can.
    var workaround: String {
        switch row {
        case "W01": "BareBLE sets the LE event mask"
        case "W02": "BareBLE scans when the link has ended"
        case "W03", "W17", "W30": "another adapter: a command without a response ends in a reset of the USB port"
        case "W04": "BareBLE scans with the legacy commands"
        case "W05": "BareBLE connects with the legacy command"
        case "W06": "BareBLE takes a short response to mean that it is not supported"
        case "W09", "W18", "W35", "W36", "W38": "none is needed: BareBLE expects it"
        case "W20", "W21", "W22": "filter in the program; BareBLE leaves the controller's filter off"
        case "W24": "BareBLE drops and counts such reports"
        case "W26", "W29", "W32": "BareBLE restarts the scan, and switches the adapter off and on where that is allowed"
        case "W33": "fewer scans while linked"
        case "W34", "W52": "speed, flow control and firmware of the serial line"
        case "W39": "BareBLE stops its advertisement before it connects"
        case "W40": "BareBLE advertises again when the link has ended"
        case "W41": "BareBLE tries again"
        case "W44": "BareBLE connects once more; option enable_poll_sync of btusb"
        case "W49": "set the number of links in the configuration"
        case "W61": "the udev rule that `blescan doctor` prints"
        default: "`blescan doctor` names it"
        }
    }
}
