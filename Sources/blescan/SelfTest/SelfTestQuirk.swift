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
        case "W01", "W10": "BareBLE sets the LE event mask"
        case "W02": "BareBLE scans when the link has ended"
        case "W03", "W17", "W30": "another adapter: a command without a response ends in a reset of the USB port"
        case "W04": "BareBLE scans with the legacy commands"
        case "W05": "BareBLE connects with the legacy command"
        case "W06": "BareBLE takes a short response to mean that it is not supported"
        case "W09", "W18", "W35", "W36", "W38": "none is needed: BareBLE expects it"
        case "W12": "none is needed: BareBLE uses a random address only where there is no public one"
        case "W13": "none is needed: neither the kernel nor BareBLE uses its coded PHY"
        case "W15": "BareBLE waits 2 s for a response"
        case "W16": "BareBLE sends the next command after 2 s all the same"
        case "W20", "W21", "W22": "filter in the program; BareBLE leaves the controller's filter off"
        case "W23": "other firmware of the adapter, or shorter advertisements"
        case "W24": "BareBLE drops and counts such reports"
        case "W26", "W29", "W32": "BareBLE restarts the scan, and switches the adapter off and on where that is allowed"
        case "W28": "other firmware of the adapter"
        case "W33": "`ScanSettings.coexist` while linked"
        case "W34", "W52": "speed, flow control and firmware of the serial line"
        case "W37": "other firmware, or another adapter: the cancel of a connection attempt may hang it"
        case "W39": "BareBLE stops its advertisement before it connects"
        case "W40": "BareBLE advertises again when the link has ended"
        case "W41": "BareBLE tries again"
        case "W44": "BareBLE connects once more; option enable_poll_sync of btusb"
        case "W46": "`Configuration.preferredPHYs` with 1M alone"
        case "W48", "W49": "set the number of links in the configuration"
        case "W50": "`ScanSettings.coexist`, Wi-Fi on 5 GHz, or another adapter"
        case "W54": "another adapter"
        case "W55": "kernel 6.17.8 or newer, or another adapter"
        case "W57", "W58": "an address of its own: `blescan doctor` prints the command that sets one"
        case "W59": "BareBLE finds it by its address"
        case "W61": "the udev rule that `blescan doctor` prints"
        case "W62": "none is needed: BareBLE waits for it"
        case "W68": "unplug one of the adapters that `blescan doctor` names"
        default: "`blescan doctor` names it"
        }
    }
}
