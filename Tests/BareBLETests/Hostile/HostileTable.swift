/// Every row of the catalogue of hostile and faulty peers, and where it is shown what comes of it.
enum HostileTable {
    static let rows: [(id: String, proofs: [Proof])] = attributeProtocol + genericAttribute

    private static let links = "BareBLETests/Hostile/HostileLinkTests"
    private static let peerTests = "BLECoreTests/ATT/ATTQueuePeerTests"
    private static let timeTests = "BLECoreTests/ATT/ATTQueueTimeTests"
    private static let changes = "BareBLETests/ServiceChangeTests"
    private static let knowledge = "BLECoreTests/GATT/Caching/DatabaseKnowledgeTests"
    private static let caching = "BareBLETests/CachingTests"

    private static let attributeProtocol: [(id: String, proofs: [Proof])] = [
        ("T01", [.script]), ("T02", [.script]), ("T03", [.script]), ("T04", [.script]), ("T05", [.script]),
        ("T06", [.test(links, "silence"), .test(timeTests, "silence")]),
        // The 30 seconds themselves pass in the tests of the machine only, where time is a number.
        ("T07", [.test(timeTests, "justInTime"), .test(timeTests, "tooLate")]),
        ("T08", [.test("BareBLETests/LinkEndTests", "cancellationReleasesTheCallerAndKeepsTheLink")]),
        ("T09", [.test(links, "cancelledAndNeverAnswered"), .test(timeTests, "orphanWithoutAnswer")]),
        ("T10", [.test(links, "emptyPacket"), .test("BLELinuxTests/LinkSocketTests", "anEmptyPacketIsNotTheEnd")]),
        ("T11", [.script]), ("T12", [.script]), ("T13", [.script]), ("T14", [.script]), ("T15", [.script]),
        ("T16", [.script]), ("T17", [.test(links, "flood")]), ("T18", [.script]),
        // A third one waits only behind a socket that takes nothing.
        ("T19", [.script, .test(peerTests, "overlappingIndications")]),
        ("T20", [.test(links, "flood")]),
        ("T21", [.script]), ("T22", [.script]), ("T23", [.script]),
        ("T24", [.script, .test(peerTests, "overlappingRequests")]),
        ("T25", [.test(links, "requestFlood")]),
        ("T26", [.fixture("security-raised-once"), .fixture("security-never-enough"), .fixture("security-refused")]),
        ("T27", [.notApplicable("a matter of the kernel's security levels, which come with bonding")]),
        ("T28", [.script]), ("T29", [.script]),
    ]

    private static let genericAttribute: [(id: String, proofs: [Proof])] = [
        ("G01", [.script]), ("G02", [.script]), ("G03", [.script]), ("G04", [.script]), ("G05", [.script]),
        ("G06", [.script]), ("G07", [.script]), ("G08", [.script]),
        ("G09", [.test(links, "endlessDiscovery"), .test(links, "slowDiscovery")]),
        ("G10", [.test(links, "tooManyAttributes")]), ("G11", [.test(links, "includeCycles")]), ("G12", [.script]),
        ("G13", [.script]), ("G14", [.test(links, "configurations")]), ("G15", [.fixture("value-without-end")]),
        ("G16", [.script]), ("G17", [.script]), ("G18", [.script]),
        ("G19", [.test(changes, "nonsenseAndFloodsDoNoHarm")]),
        (
            "G20",
            [.test(changes, "aLongWriteFails"), .test(knowledge, "aChangeDuringTheFirstDiscoveryIsLookedAfterAtOnce")]
        ),
        (
            "G21",
            [
                .test(caching, "outOfSyncLeadsToADiscovery"), .test(caching, "anInvalidHandleOfACachePurgesIt"),
                .test(caching, "aWriteIsNotMadeAgain"),
            ]
        ),
        (
            "G22",
            [
                .test(caching, "aHashOfAnotherSizeIsNone"),
                .test("BareBLETests/GATTCacheFileTests", "namesFilesByStableAddresses"),
            ]
        ),
        ("G23", [.test(changes, "anOldCharacteristicIsRefused")]),
        ("G24", [.test(links, "valuesBehindTheEnd"), .fixture("value-with-the-consent")]),
    ]
}
