public import BLECore

/// The ways in which a virtual controller differs from one that follows the specification.
///
///     let radio = VirtualRadio(time: time)
///     await radio.setPersonality(.csr8510)
///
/// Commands are named by their opcodes, as the specification lists them: 0x2042 is LE Set Extended Scan Enable.
public struct VirtualPersonality: Hashable, Sendable {
    /// The reaction of a controller to a command.
    public enum Response: Hashable, Sendable {
        /// It refuses the command.
        case status(HCIStatus)
        /// It refuses the command if that enables something.
        case statusIfEnabling(HCIStatus)
        /// It does not respond.
        case silence
        /// It responds after this time, and executes the command at once.
        case late(Duration)
        /// It returns this many bytes at most, the status among them.
        case short(Int)
        /// It accepts the command, and the event that ends it never comes. For a connection attempt.
        case unfinished
    }

    /// The actions that make a controller that has become deaf receive again. Each also helps where those before it
    /// help.
    public enum Recovery: Int, Hashable, Comparable, Sendable {
        /// Scanning is disabled, and enabled again.
        case rescan
        /// The LE event mask is set.
        case eventMask
        /// The adapter is switched off and on.
        case power
        /// The radio is blocked and unblocked by the kernel's switch.
        case radioSwitch
        /// Its USB port is reset.
        case usbPort
        /// Its driver is unbound and bound again, or it is unplugged and plugged in.
        case driver

        /// The former name of `usbPort`.
        @available(*, deprecated, renamed: "usbPort")
        public static var replug: Recovery { .usbPort }

        /// Returns a Boolean value that indicates whether the second one helps in more cases.
        public static func < (first: Recovery, second: Recovery) -> Bool { first.rawValue < second.rawValue }
    }

    /// The moment in which a controller becomes deaf: it continues to respond, and reports nothing.
    public struct Deafness: Hashable, Sendable {
        /// The number of reports until then.
        public var reports: Int
        /// The action that makes it receive again.
        public var recovery: Recovery

        /// Creates a deafness after so many reports.
        public init(afterReports reports: Int, recovery: Recovery) {
            self.reports = reports
            self.recovery = recovery
        }
    }

    /// The reaction of a controller to a connection attempt beyond its limit of links.
    public enum BeyondLimit: Hashable, Sendable {
        /// It refuses the command.
        case refuses(HCIStatus)
        /// It accepts the command; the attempt fails when the peer is heard.
        case fails(HCIStatus)
        /// It accepts the command; the attempt does not end by itself.
        case neverCompletes
    }

    /// The data that a controller loses or delays on its links. Nothing reports it.
    public enum DataLoss: Hashable, Sendable {
        /// Nothing that peers send arrives.
        case received
        /// Of the packets that a peer sends, the last of each group of this many is lost.
        case receivedEvery(Int)
        /// Of the packets that a peer sends, the last of each group of this many comes 12 ms late, after those that
        /// follow it.
        case reordersEvery(Int)
        /// Of the packets that this side sends within 10 ms, those beyond this number are lost: the controller
        /// announces more buffers than it has.
        case sentBeyond(Int)
    }

    /// A controller's responses to queries about itself; `nil` for what follows from the rest of the personality.
    public struct Capabilities: Hashable, Sendable {
        /// The LE features.
        public var features: UInt64?
        /// The supported commands: 64 octets.
        public var commands: [UInt8]?
        /// The LE states.
        public var states: UInt64?
        /// The size of the filter accept list.
        public var acceptListSize: UInt8?
        /// The size of the resolving list.
        public var resolvingListSize: UInt8?
        /// The length of a buffer for LE data, in bytes.
        public var bufferLength: UInt16?
        /// The number of buffers for LE data.
        public var bufferCount: UInt8?
        /// The longest data of a packet on air, in bytes.
        public var maximumDataLength: UInt16?
        /// The number of advertising sets.
        public var advertisingSets: UInt8?
        /// The longest data of an advertising set, in bytes.
        public var maximumAdvertisingData: UInt16?
        /// The number of the maker.
        public var company: UInt16?
        /// The version of HCI.
        public var hciVersion: UInt8?
        /// The revision of HCI, which the maker assigns.
        public var hciRevision: UInt16?
        /// The version of the link layer.
        public var linkVersion: UInt8?
        /// The subversion of the link layer, which the maker assigns.
        public var linkSubversion: UInt16?

        /// Creates capabilities that follow from the rest of the personality.
        public init() {}
    }

    /// The responses to queries about itself.
    public var capabilities = Capabilities()
    /// A Boolean value that indicates whether it lists the extended commands of Bluetooth 5, and the feature.
    public var listsExtendedCommands = true
    /// A Boolean value that indicates whether it uses one set of commands for scanning, connecting and advertising from
    /// its reset on, and refuses the other as disallowed, as the specification has it. Spec: Core Vol 4 Part E, 3.1.1.
    public var latchesCommandSet = false
    /// The reactions to commands, by opcode.
    public var responses: [UInt16: Response] = [:]
    /// The reactions to commands while a link is up, by opcode.
    public var responsesWhileLinked: [UInt16: Response] = [:]
    /// The reactions to commands while an advertisement is on air, by opcode; those while a link is up go first.
    public var responsesWhileAdvertising: [UInt16: Response] = [:]
    /// A Boolean value that indicates whether it reports nothing while an advertisement is on air.
    public var isDeafWhileAdvertising = false
    /// A Boolean value that indicates whether the kernel scans with the extended commands, and has switched their
    /// reports on. It does on most controllers that list the commands.
    public var kernelScansExtended = true
    /// A Boolean value that indicates whether it lists the coded PHY, which does not work: a scan that uses it reports
    /// nothing, and an attempt with it fails. The kernel knows.
    public var hasDefectiveCodedPHY = false
    /// A Boolean value that indicates whether events are masked as the host has set it.
    public var honorsEventMasks = true
    /// The number of links that it can have.
    public var linkLimit = 255
    /// The reaction to a connection attempt beyond that.
    public var beyondLimit = BeyondLimit.fails(.connectionLimitExceeded)
    /// The status with which it refuses a connection attempt while another one is pending.
    public var secondAttemptStatus = HCIStatus.commandDisallowed
    /// The status with which a connection attempt ends while a connectable advertisement is on air; `nil` where the
    /// command is refused.
    public var attemptStatusWhileAdvertising: HCIStatus?
    /// The number of devices that it remembers while it filters duplicates; `nil` for one that does not filter.
    public var duplicateCache: Int?
    /// The moment in which it becomes deaf; `nil` if it does not.
    public var deafness: Deafness?
    /// The number of scans that it accepts to begin until it is switched off and on; it refuses further ones as
    /// disallowed. `nil` for no limit.
    public var acceptedScans: Int?
    /// One event of this number is lost, responses excepted; `nil` for none.
    public var losesEvery: Int?
    /// One event of this number comes 12 ms late, after what follows it, responses excepted; `nil` for none.
    public var reordersEvery: Int?
    /// The time by which the first data of a link, which the kernel drops, comes ahead of the link's Connection
    /// Complete; `nil` for the right order.
    public var dataLead: Duration?
    /// The data that is lost or late on links to peripherals; `nil` where all of it arrives, in order.
    public var losesData: DataLoss?
    /// The number of links, from the first on, whose Connection Complete is lost for the kernel too. The controller and
    /// the peer keep them until the adapter is switched off.
    public var hiddenLinks = 0
    /// A Boolean value that indicates whether its links change to 2M by themselves, after which neither side
    /// understands the other.
    public var losesLinksOn2M = false
    /// The RSSI of all reports; 127 where it is not available.
    public var rssi: Int8?
    /// A Boolean value that indicates whether reserved bits of reports are set.
    public var setsReservedBits = false
    /// The number of commands that it accepts, in each response. With 0, it never reports that it accepts the next one.
    public var credits: UInt8 = 1
    /// A Boolean value that indicates whether the driver resets the USB device 2 s after a command without a response:
    /// the adapter returns under the next free name.
    public var isResetWhenSilent = false

    /// Creates a personality without deviations.
    public init() {}
}

// MARK: - Imitations

extension VirtualPersonality {
    /// Bluetooth 5 as specified.
    public static let bluetooth5 = VirtualPersonality()

    /// Bluetooth 4.2 as specified: without the extended commands.
    public static let bluetooth4 = with { $0.listsExtendedCommands = false }

    /// Realtek RTL8761B on Linux 7.2, 7.1.9 and 6.18.45: the kernel does not scan with the extended commands, and
    /// leaves their reports masked. Row W01; drivers/bluetooth/btrtl.c of these kernels.
    public static let rtl8761bOnKernel72 = with { $0.kernelScansExtended = false }

    /// A dongle with RTL8761BU (USB 0bda:a728) that does not scan while a link is up. Row W02;
    /// bluez/bluetooth-next#133.
    public static let rtl8761bu = with { $0.responsesWhileLinked = [0x2042: .statusIfEnabling(.commandDisallowed)] }

    /// A dongle with RTL8761BU (USB 0bda:8771 or 2357:0604) that does not respond to legacy scan commands; its driver
    /// then resets it. Row W03; bluez/bluetooth-next#637 and #641.
    public static let rtl8761buWithoutLegacyScan = with {
        $0.responses = [0x200C: .silence]
        $0.isResetWhenSilent = true
    }

    /// Actions ATS2851: lists extended scanning and connecting, and knows neither. Rows W04 and W05; the kernel's quirk
    /// HCI_QUIRK_BROKEN_EXT_CREATE_CONN and bluez/bluetooth-next#9.
    public static let ats2851 = with {
        $0.responses = [
            0x2041: .status(.unknownCommand), 0x2042: .status(.unknownCommand), 0x2043: .status(.unknownCommand),
        ]
    }

    /// Qualcomm WCN3990: as `ats2851`, and with short responses. Row W06.
    public static let wcn3990 = with {
        $0.responses = [
            0x2041: .status(.unknownCommand), 0x2042: .status(.unknownCommand), 0x2043: .status(.unknownCommand),
            0x203A: .short(1), 0x203B: .short(1),
        ]
    }

    /// Broadcom BCM4345C0 of a Raspberry Pi: no extended commands, seven links, and attempts end while it advertises.
    /// Rows W08, W39 and W49; RPi-Distro/bluez-firmware.
    public static let bcm4345c0 = with {
        $0.listsExtendedCommands = false
        $0.linkLimit = 7
        $0.attemptStatusWhileAdvertising = .advertisingTimeout
    }

    /// Broadcom BCM43438: as the one above, and it refuses a second attempt with an error of the link layer. Row W38;
    /// bluez/bluetooth-next#643.
    public static let bcm43438 = with {
        $0.listsExtendedCommands = false
        $0.linkLimit = 7
        $0.secondAttemptStatus = HCIStatus(rawValue: 0x24)
    }

    /// A Raspberry Pi's controller on a UART without flow control: each tenth event is lost. Rows W34 and W52;
    /// raspberrypi/firmware#1150.
    public static let raspberryPiUART = with {
        $0.listsExtendedCommands = false
        $0.losesEvery = 10
    }

    /// A Raspberry Pi's controller that stops reporting and receives again when it was switched off and on. Rows W29
    /// and W30; mKeRix/room-assistant#1158.
    public static let raspberryPiGoneDeaf = with {
        $0.listsExtendedCommands = false
        $0.deafness = Deafness(afterReports: 20, recovery: .power)
    }

    /// RTL8761BU without a reset line: it becomes deaf, and only its USB port brings it back. Row W56;
    /// home-assistant/core#84755.
    public static let rtl8761buGoneDeaf = with { $0.deafness = Deafness(afterReports: 20, recovery: .usbPort) }

    /// RTL8723BU: reports one device, then nothing until it scans again. Row W32; lwfinger/rtl8723au_bt#43.
    public static let rtl8723bu = with {
        $0.listsExtendedCommands = false
        $0.deafness = Deafness(afterReports: 1, recovery: .rescan)
    }

    /// CSR8510 A10: Bluetooth 4.0 and five links. Row W49; Home Assistant's list of adapters.
    public static let csr8510 = with {
        $0.listsExtendedCommands = false
        $0.linkLimit = 5
        $0.beyondLimit = .refuses(.memoryCapacityExceeded)
    }

    /// A clone of the CSR8510: as that, and it does not advertise while a link is up. Row W40;
    /// apache/mynewt-nimble#1465.
    public static let csr8510Clone = with {
        $0.listsExtendedCommands = false
        $0.linkLimit = 5
        $0.beyondLimit = .neverCompletes
        $0.responsesWhileLinked = [0x200A: .statusIfEnabling(.commandDisallowed)]
    }

    /// Intel AX200: Bluetooth 5, with a coded PHY that does not work; remembers 64 devices while it filters duplicates.
    /// Row W13; drivers/bluetooth/btintel.c.
    public static let intelAX200 = with {
        $0.duplicateCache = 64
        $0.hasDefectiveCodedPHY = true
    }

    /// Intel AX201: uses one set of commands from its reset on; its coded PHY does not work. Rows W07, W11 and W13;
    /// bluez/bluez#577.
    public static let intelAX201 = with {
        $0.latchesCommandSet = true
        $0.hasDefectiveCodedPHY = true
    }

    /// Intel AX210: data comes ahead of Connection Complete. Row W44; bluez/bluez#2155.
    public static let intelAX210 = with { $0.dataLead = .milliseconds(12) }

    /// Apple BCM4378: sets reserved bits in reports. Row W18; bluez/bluetooth-next#607.
    public static let bcm4378 = with { $0.setsReservedBits = true }

    /// A controller whose LE states promise more than it does: it does not begin a scan while it advertises. Row W66;
    /// the kernel's quirk HCI_QUIRK_BROKEN_LE_STATES.
    public static let brokenStates = with {
        $0.listsExtendedCommands = false
        $0.responsesWhileAdvertising = [0x200C: .statusIfEnabling(.commandDisallowed)]
    }

    /// Zephyr's HCI over USB: remembers 16 devices while it filters duplicates. Row W21;
    /// zephyrproject-rtos/zephyr#26337.
    public static let zephyrUSB = with { $0.duplicateCache = 16 }

    /// Every imitation, with its name.
    public static let all: [(name: String, personality: VirtualPersonality)] = [
        ("bluetooth5", .bluetooth5), ("bluetooth4", .bluetooth4), ("rtl8761bOnKernel72", .rtl8761bOnKernel72),
        ("rtl8761bu", .rtl8761bu), ("rtl8761buWithoutLegacyScan", .rtl8761buWithoutLegacyScan), ("ats2851", .ats2851),
        ("wcn3990", .wcn3990), ("bcm4345c0", .bcm4345c0), ("bcm43438", .bcm43438),
        ("raspberryPiUART", .raspberryPiUART), ("raspberryPiGoneDeaf", .raspberryPiGoneDeaf),
        ("rtl8761buGoneDeaf", .rtl8761buGoneDeaf), ("rtl8723bu", .rtl8723bu), ("csr8510", .csr8510),
        ("csr8510Clone", .csr8510Clone), ("intelAX200", .intelAX200),
        ("intelAX201", .intelAX201), ("intelAX210", .intelAX210), ("bcm4378", .bcm4378),
        ("zephyrUSB", .zephyrUSB), ("brokenStates", .brokenStates),
    ]

    private static func with(_ change: (inout VirtualPersonality) -> Void) -> VirtualPersonality {
        var personality = VirtualPersonality()
        change(&personality)
        return personality
    }
}
