/// Defects of other clients, and the tests of this project for them.
///
/// The first part comes from a comparison of clients for Linux, the second from a reading of one client in Swift. A row
/// is a finding about another program, read or reproduced once; it may have been fixed there since.
enum DefectTable {
    struct Row {
        var id: String
        var defect: String
        var proofs: [Proof]

        init(_ id: String, _ defect: String, _ proofs: Proof...) {
            self.id = id
            self.defect = defect
            self.proofs = proofs
        }
    }

    static let stacks: [Row] = [
        Row("L1", "The last characteristic is lost where it ends with its service", .fixture("packed-characteristics")),
        Row(
            "L2", "Read Multiple Variable cannot be sent, and its list is read without a step past the values",
            .fixture("read-multiple-variable"), .fixture("read-multiple-variable-truncated")),
        Row("L3", "A remainder by the length zero", .fixture("entries-of-no-length"), .fixture("empty-lists")),
        Row(
            "L4", "A refused descriptor ends discovery; a notification of one byte",
            .fixture("extended-properties-refused"), .fixture("one-byte-notification")),
        Row("L5", "A refused MTU request blocks the client", .fixture("mtu-refused-0x06")),
        Row(
            "L6", "Invalid PDU blocks the queue; refused writes are not told; the confirmation waits in the queue",
            .fixture("mtu-refused-0x04"), .fixture("write-refused"), .fixture("confirmation-overtakes")),
        Row(
            "L7", "PSM and CID in one address; every failure is \"refused\"; a bad report ends the scan; descriptors",
            .test("BLELinuxTests/LinkSocketTests", "socketAddressesHaveTheKernelsLayout"),
            .test("BLELinuxTests/ErrnoMeaningTests", "anErrorNumberOfAConnectNamesItsFailure"),
            .test("BareBLETests/Adapter/AdapterScanTests", "aMalformedEventIsCountedAndTheScanContinues"),
            .fixture("last-descriptor-alone")),
        Row(
            "L8", "Prepare Write without its value; empty lists",
            .fixture("prepared-write-carries-its-part"), .fixture("empty-lists")),
        Row("L9", "A request of the peer is taken for its response", .fixture("peer-asks-during-a-read")),
    ]

    static let client: [Row] = [
        Row(
            "C1", "PSM and CID in one address",
            .test("BLELinuxTests/LinkSocketTests", "socketAddressesHaveTheKernelsLayout")),
        Row(
            "C2", "Connecting blocks a thread and cannot be cancelled",
            .test("BareBLETests/Adapter/AdapterConnectTests", "theDeadlineCancelsTheAttempt"),
            .test("BareBLETests/Adapter/AdapterConnectTests", "cancellationCancelsTheAttempt")),
        Row(
            "C3", "A request under way hangs when the link goes", .fixture("link-lost-during-a-read"),
            .test("BareBLETests/Link/LinkEndTests", "everyWaitingCallFailsOnce")),
        Row(
            "C4", "No cancellation, no deadlines",
            .test("BareBLETests/Link/LinkEndTests", "cancellationReleasesTheCallerAndKeepsTheLink"),
            .test("BareBLETests/Link/LinkEndTests", "deadlineReleasesTheCallerAndKeepsTheLink")),
        Row("C5", "An idle link is polled", .test("BLELinuxTests/EventLoopTaskTests", "anIdleLoopSleeps")),
        Row(
            "C6", "Ten events a second at most",
            .test("BareBLETests/Conformance/DefectTests", "aThousandReportsArriveWithoutAPause")),
        Row(
            "C7", "Two reports in one event, or an unknown event, end the scan",
            .test("BLECoreTests/Advertising/AdvertisingReportTests", "severalReports"),
            .test("BareBLETests/Adapter/AdapterScanTests", "aMalformedEventIsCountedAndTheScanContinues")),
        Row(
            "C8", "Commands eat the events of the scan",
            .test("BareBLETests/Adapter/AdapterConnectTests", "theScanMakesWayAndContinues")),
        Row(
            "C9", "The first value after a subscription is lost", .fixture("value-with-the-consent"),
            .test("BareBLETests/Subscriptions/SubscriptionTests", "firstValueComesWithTheConsent")),
        Row("C10", "A characteristic without descriptors", .fixture("no-descriptors")),
        Row("C11", "The last descriptor is not asked about", .fixture("last-descriptor-alone")),
        Row("C12", "A value that fills its packet", .fixture("value-of-one-packet")),
        Row(
            "C13", "The peer can end the process", .fixture("value-without-end"),
            .fixture("declaration-at-the-last-handle"),
            .test("BLECoreTests/Advertising/AdvertisingFuzzTests", "everyPayloadCutAndFlipped")),
        Row("C14", "An unknown opcode ends the link", .fixture("unknown-opcodes")),
        Row(
            "C15", "Long writes at the same time are mixed; a failed one is not cancelled",
            .fixture("long-write-cancelled"),
            .test("BareBLETests/Link/PeripheralWritingTests", "longWritesDoNotInterleave")),
        Row(
            "C16", "A long write without response becomes another procedure",
            .test("BareBLETests/Link/PeripheralWritingTests", "refusesACommandThatDoesNotFit")),
        Row(
            "C17", "Security is never raised", .fixture("security-raised-once"), .fixture("security-never-enough"),
            .fixture("security-refused")),
        Row("C18", "A server's check of permissions", .notApplicable("there is no server but the one for tests")),
        Row("C19", "The identity of a server's clients", .notApplicable("there is no peripheral role")),
        Row(
            "C20", "A descriptor is closed twice",
            .test("BLELinuxTests/LinkSocketTests", "descriptorsAreClosedAndNotInherited")),
        Row(
            "C21", "An invented RSSI; filters by UUID are ignored; the MTU stays 23",
            .test("BareBLETests/Conformance/DefectTests", "noSignalIsInvented"),
            .test("BareBLETests/Link/PeripheralReadingTests", "discoversOneServiceOnly"),
            .test("BareBLETests/Link/PeripheralReadingTests", "agreesOnTheLargestMTU")),
        Row(
            "C22", "Only the first structure of a kind is read; scannable is called connectable",
            .test("BLECoreTests/Advertising/AdvertisingViewTests", "serviceListsAndServiceDataOfAllWidthsAreRead"),
            .test("BLECoreTests/Advertising/AdvertisingReportTests", "aLegacyEventTypeHasItsProperties")),
        Row(
            "C23", "Values are dropped in silence",
            .test("BareBLETests/Subscriptions/SubscriptionTests", "lossIsCountedAndMarked")),
        Row(
            "C24", "A release depends on branches",
            .test("BareBLETests/Conformance/DefectTests", "noDependencyIsABranch")),
        Row("C25", "The tests connect to nothing", .notApplicable("about tests; Tests/VM connects by radio")),
    ]
}

/// The place of a row's test.
enum Proof {
    /// Fixtures/att/defects/NAME.dialogue, through the public interface.
    case fixture(String)
    /// A test: the file below Tests, and the name of its function.
    case test(String, String)
    /// There is nothing to prove, because.
    case notApplicable(String)
}
