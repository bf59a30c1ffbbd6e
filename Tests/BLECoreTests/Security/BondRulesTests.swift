import TestSupport
import Testing

@testable import BLECore

/// Which keys become a bond, which bond replaces another one, and which keys the kernel is given.
@Suite struct BondRulesTests {
    private let good = RecordedBonds.first
    private let legacy = RecordedBonds.first.with(keys: RecordedBonds.legacy, level: .authenticated)

    private func refusal(
        _ record: BondRecord, isForStorage: Bool = true, replacing: PeerID? = nil, minimum: Int = 16,
        among bonds: [BondRecord] = []
    ) -> BondRefusal? {
        do throws(BondRefusal) {
            _ = try BondRules.accept(
                record, isForStorage: isForStorage, replacing: replacing, minimumKeySize: minimum, among: bonds)
            return nil
        } catch {
            #expect(!"\(error)".isEmpty)
            return error
        }
    }

    private func peer(_ address: String, _ type: AddressType = .random) -> PeerID {
        PeerID(address: BluetoothAddress(address)!, type: type)
    }

    // MARK: Storing

    @Test func whatAPairingMakesIsStoredAsItIs() throws {
        #expect(try BondRules.accept(good, isForStorage: true, among: []) == good)
        #expect(try BondRules.accept(legacy, isForStorage: true, among: [RecordedBonds.second]) == legacy)
        #expect(refusal(legacy.with(keys: [RecordedBonds.legacy[0]])) == nil)
        #expect(BondRules.minimumKeySize == 16)
    }

    @Test(.row("S10")) func theKernelsHintDecides() {
        #expect(refusal(good, isForStorage: false) == .notForStorage)
    }

    @Test(.row("S07")) func debugAndUnknownKindsOfKeysAreRefused() {
        for kind: UInt8 in [4, 5, 255] {
            #expect(refusal(good.with { $0.kind = .init(rawValue: kind) }) == .kind(.init(rawValue: kind)))
        }
        for kind: UInt8 in 0...3 {
            let record = good.with {
                $0.kind = .init(rawValue: kind)
                $0.isCentral = kind < 2
            }
            #expect(refusal(record.with(level: .encrypted)) == nil)
        }
    }

    @Test(.row("S06")) func theSizeIsAtLeastTheMinimum() {
        let short = good.with {
            $0.size = 15
            $0.key = RecordedBonds.secret("ef8c26c1e45e8cbe9d7e39d53905d600")
        }
        #expect(refusal(short) == .keyTooShort(15, minimum: 16))
        #expect(refusal(short, minimum: 15) == nil)
        for size: UInt8 in [0, 6, 17, 255] {
            #expect(refusal(good.with { $0.size = size }, minimum: 0) == .invalidSize(size))
        }
    }

    @Test(.row("S07")) func theKeyIsNotZeroAndFitsItsSize() {
        #expect(refusal(good.with { $0.key = .zero }) == .zeroKey)
        #expect(refusal(good.with { $0.size = 15 }, minimum: 7) == .longerThanItsSize)
        // Also the key of the other role.
        var keys = RecordedBonds.legacy
        keys[1].key = .zero
        #expect(refusal(legacy.with(keys: keys)) == .zeroKey)
    }

    @Test(
        "a published key", .row("S07"),
        arguments: ["bf01fb9d4ef3bc36d874f5394138684c", "a599bae4e17ca618228e0756b4e85f01"])
    func aPublishedKeyIsUnusable(hex: String) throws {
        let key = RecordedBonds.secret(hex)
        #expect(refusal(good.with { $0.key = key }) == .publishedKey)
        let accepted = try BondRules.accept(good.with(identityKey: .key(key)), isForStorage: true, among: [])
        #expect(accepted.identityKey == .unusable(.published))
    }

    @Test(.row("S09")) func theIdentityIsAnAddressThatStays() {
        let invalid = [
            peer("62:CC:28:F3:EE:75"), peer("22:CC:28:F3:EE:75"), peer("A2:CC:28:F3:EE:75"),
            peer("C0:00:00:00:00:00"), peer("FF:FF:FF:FF:FF:FF"), peer("00:00:00:00:00:00", .public),
        ]
        for identity in invalid {
            let record = good.with(
                identity: identity, keys: [RecordedBonds.key(RecordedKeys.secureConnections, of: identity)])
            #expect(refusal(record) == .noIdentity, "\(identity)")
        }
        let known = RecordedBonds.scale
        #expect(
            refusal(good.with(identity: known, keys: [RecordedBonds.key(RecordedKeys.secureConnections, of: known)]))
                == nil)
        #expect(refusal(good.with(identity: known)) == .foreignKey)
    }

    @Test func thereIsOneKeyForEachRole() {
        #expect(refusal(good.with(keys: [])) == .noKey)
        #expect(refusal(legacy.with(keys: [RecordedBonds.legacy[1]])) == .noCentralKey)
        #expect(refusal(legacy.with(keys: RecordedBonds.legacy + RecordedBonds.legacy)) == .surplusKeys)
        #expect(refusal(legacy.with(keys: [RecordedBonds.legacy[0], RecordedBonds.legacy[0]])) == .surplusKeys)
        #expect(
            refusal(good.with(keys: [RecordedBonds.legacy[0], RecordedBonds.secureConnections])) == .surplusKeys)
    }

    /// The kernel pairs again when more is requested than the key is worth.
    @Test func theLevelIsWhatTheKeyIsWorth() {
        #expect(refusal(legacy.with(level: .secureConnections)) == .levelBeyondKey)
        #expect(refusal(good.with { $0.kind = .secureConnections }) == .levelBeyondKey)
        #expect(refusal(good.with { $0.kind = .secureConnections }.with(level: .encrypted)) == nil)
        #expect(refusal(good.with(level: .encrypted)) == nil)
    }

    @Test func aKeyOfPrivateAddressesThatMatchesStrangersIsLeftOut() throws {
        let zero = try BondRules.accept(good.with(identityKey: .key(.zero)), isForStorage: true, among: [])
        #expect(zero.identityKey == .unusable(.zero))
        #expect(zero.resolvingKey == nil)
        let other = RecordedBonds.second.with(identityKey: good.identityKey)
        // One that another bond has as well is kept: that bond may be forgotten.
        let shared = try BondRules.accept(good, isForStorage: true, among: [other])
        #expect(shared.identityKey == good.identityKey)
        let again = try BondRules.accept(good, isForStorage: true, replacing: good.identity, among: [good])
        #expect(again.identityKey == good.identityKey, "its own key is no other bond's")
    }

    @Test func thereIsAnEndOfBonds() {
        let bonds = (0..<BondFile.recordLimit).map { RecordedBonds.numbered($0) }
        #expect(refusal(good, among: bonds) == .full)
        #expect(refusal(bonds[3], replacing: bonds[3].identity, among: bonds) == nil)
        #expect(refusal(good, among: Array(bonds.dropLast())) == nil)
    }

    // MARK: Replacing

    @Test func aBondIsReplacedByRequestOnly() {
        #expect(refusal(good, among: [good]) == .bondExists)
        #expect(refusal(good, replacing: RecordedBonds.scale, among: [good, RecordedBonds.second]) == .bondExists)
        #expect(refusal(good, replacing: good.identity, among: [good]) == nil)
    }

    @Test(.row("S05")) func aReplacementIsNeverWeaker() {
        func replacing(_ former: BondRecord, by record: BondRecord) -> BondRefusal? {
            refusal(record, replacing: good.identity, minimum: 7, among: [former])
        }
        let unauthenticated = good.with { $0.kind = .secureConnections }.with(level: .encrypted)
        #expect(replacing(good, by: unauthenticated) == .weakerKind)
        #expect(replacing(good, by: legacy) == .weakerKind)
        #expect(replacing(unauthenticated, by: legacy) == .weakerKind)
        #expect(replacing(unauthenticated, by: good) == nil)
        #expect(replacing(legacy, by: good) == nil)
        #expect(replacing(legacy, by: unauthenticated) == .weakerLevel)
        let short = good.with {
            $0.size = 7
            $0.key = RecordedBonds.secret("ef8c26c1e45e8c000000000000000000")
        }
        #expect(replacing(good, by: short) == .weakerSize)
        #expect(replacing(short, by: good) == nil)
        #expect(replacing(good, by: good.with(level: .authenticated)) == .weakerLevel)
    }

    // MARK: Loading

    @Test func allKeysAreLoadedAsTheyCame() {
        let bonds = [legacy.with(identityKey: BondRecord.IdentityKey.none), RecordedBonds.second, good]
        let lists = BondRules.keyLists(of: bonds, adapter: "usb-1.2%")
        #expect(lists.omissions == [])
        let scale = bytes("010203040506 01")
        #expect(
            lists.longTermKeys.parameters
                == bytes("0500") + RecordedKeys.legacyCentral + scale + RecordedKeys.legacyCentral.dropFirst(7)
                + RecordedKeys.secureConnections + RecordedKeys.legacyPeripheral
                + scale + RecordedKeys.legacyPeripheral.dropFirst(7))
        #expect(
            lists.identities.parameters == bytes("0100 1122334455c6 02 000102030405060708090a0b0c0d0e0f"))
        let none = BondRules.keyLists(of: [])
        #expect(none.longTermKeys.parameters == bytes("0000") && none.identities.parameters == bytes("0000"))
    }

    /// What the kernel would skip and still report as loaded, or refuse with the whole list.
    @Test func whatTheKernelWouldSkipIsReportedAndNotSent() {
        let rotating = peer("62:CC:28:F3:EE:75")
        let cases: [(BondRecord, BondRefusal)] = [
            (
                good.with(identity: rotating, keys: [RecordedBonds.key(RecordedKeys.secureConnections, of: rotating)]),
                .noIdentity
            ),
            (good.with { $0.kind = .debug }, .kind(.debug)),
            (good.with { $0.kind = .init(rawValue: 5) }, .kind(.init(rawValue: 5))),
            (good.with { $0.size = 17 }, .invalidSize(17)),
            (good.with { $0.key = .zero }, .zeroKey),
            (good.with { $0.key = RecordedBonds.secret("bf01fb9d4ef3bc36d874f5394138684c") }, .publishedKey),
            (good.with { $0.peer = ManagementPeer(RecordedBonds.scale) }, .foreignKey),
        ]
        for (record, reason) in cases {
            let lists = BondRules.keyLists(of: [RecordedBonds.second, record], adapter: "usb-1.2%")
            #expect(lists.omissions == [.init(identity: record.identity, part: .bond, reason: reason)])
            #expect(lists.longTermKeys.keys == RecordedBonds.second.keys)
            #expect(lists.identities.keys == [], "an identity without its key would be connected to without encryption")
        }
    }

    /// One such key would make the kernel refuse the whole list, or match strangers.
    @Test func identityKeysAreChecked() {
        let other = RecordedBonds.numbered(1)
        for (key, fault): (Secret128, BondRecord.IdentityKeyFault) in [
            (.zero, .zero), (RecordedBonds.secret("a599bae4e17ca618228e0756b4e85f01"), .published),
        ] {
            let lists = BondRules.keyLists(of: [good.with(identityKey: .key(key)), other])
            #expect(
                lists.omissions == [.init(identity: good.identity, part: .identityKey, reason: .identityKey(fault))])
            #expect(lists.longTermKeys.keys.count == 2)
            #expect(lists.identities.keys == [other.resolvingKey])
        }
        let twin = other.with(identityKey: good.identityKey)
        let lists = BondRules.keyLists(of: [good, twin, RecordedBonds.numbered(2)])
        #expect(
            lists.omissions
                == [good, twin].map {
                    .init(identity: $0.identity, part: .identityKey, reason: .identityKey(.shared))
                })
        #expect(lists.identities.keys == [RecordedBonds.numbered(2).resolvingKey])
        #expect(BondRules.sharedIdentityKeys(of: [good, twin]) == [good.resolvingKey?.key])
        // When one of them is forgotten, the other's key is used again.
        let left = BondRules.keyLists(of: [twin])
        #expect(left.omissions == [] && left.identities.keys == [twin.resolvingKey])
    }

    @Test(.row("S18")) func aPinnedBondIsForItsAdapterOnly() {
        let pinned = good.with(adapterPin: "usb-1.2")
        #expect(BondRules.keyLists(of: [pinned], adapter: "usb-1.2").omissions == [])
        for adapter in ["usb-1.3", nil] {
            let lists = BondRules.keyLists(of: [pinned], adapter: adapter)
            #expect(lists.omissions == [.init(identity: pinned.identity, part: .bond, reason: .otherAdapter)])
            #expect(lists.longTermKeys.keys == [] && lists.identities.keys == [])
        }
    }

    /// 1,820 keys fit into one packet: each bond's own, and then as many others as there is room for.
    @Test func allBondsFitIntoOnePacket() {
        let bonds = (0..<BondFile.recordLimit).map { number in
            let bond = RecordedBonds.numbered(number)
            return bond.with(
                keys: RecordedBonds.legacy.map { key in
                    var key = key
                    key.peer = ManagementPeer(bond.identity)
                    return key
                })
        }
        let lists = BondRules.keyLists(of: bonds)
        #expect(lists.longTermKeys.keys.count == 1_820)
        #expect(lists.longTermKeys.keys.prefix(1_024).map(\.peer) == bonds.map { ManagementPeer($0.identity) })
        #expect(lists.longTermKeys.keys.prefix(1_024).allSatisfy { $0.isCentral })
        #expect(lists.identities.keys.count == 1_024)
        #expect(lists.omissions.count == 2 * 1_024 - 1_820)
        #expect(lists.omissions.allSatisfy { $0.reason == .listIsFull && $0.part == .peripheralKey })
        #expect(lists.omissions.map(\.identity) == bonds.suffix(lists.omissions.count).map(\.identity))
    }
}
