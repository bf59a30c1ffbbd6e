import BLECore
import TestSupport
import Testing

/// Resolution with a hash that anybody can compute by hand: the random part of the address, each byte of it xored with
/// the key's most significant byte. The real one is tested where AES is.
@Suite struct AddressResolverTests {
    private let belt = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)
    private let scale = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_55C6), type: .public)

    private func key(_ last: UInt8) throws -> Secret128 { try key([UInt8](repeating: 1, count: 15) + [last]) }

    private func key(_ bytes: [UInt8]) throws -> Secret128 {
        let key = Secret128(bytes.span)
        return try #require(key)
    }

    private func address(_ value: UInt64, _ type: AddressType = .random) -> PeerID {
        PeerID(address: BluetoothAddress(rawValue: value), type: type)
    }

    private static func hash(_ message: AddressHashMessage) -> UInt32 {
        message.random ^ UInt32(message.withKey { $0[0] }) &* 0x01_0101
    }

    private func resolver(_ keys: [PeerID: Secret128], capacity: Int = AddressResolver.capacity) -> AddressResolver {
        var resolver = AddressResolver(capacity: capacity)
        resolver.setKeys(keys) { Self.hash($0) }
        return resolver
    }

    @Test func theMessageIsTheOneOfTheSpecification() throws {
        // The sample of Core Vol 3 Part H, D.7, with its key as it comes on air.
        let bytes = try Hex.decode("9b7d390aa610103405adc857a33402ec")
        let message = AddressHashMessage(key: try key(bytes), random: 0x70_8194)
        #expect(Hex.encode(message.block) == "00000000000000000000000000708194")
        let taken = message.withKey { key in (0..<key.count).map { key[$0] } }
        #expect(Hex.encode(taken) == "ec0234a357c8ad05341010a60a397d9b")
        #expect("\(message)" == "AddressHashMessage(key: (128 bits), random: 7373204)")
    }

    @Test func anAddressBelongsToTheIdentityWhoseKeyMadeIt() throws {
        var resolver = resolver([belt: try key(0xA5), scale: try key(0x3C)])
        let found = [
            address(0x4123_45E4_86E0), address(0x7000_014C_3C3D), address(0x4123_45E4_86E1),
            // Of the other kinds none is resolvable, whatever its lower half: static, public, not resolvable, reserved.
            address(0xC123_4564_86E0), address(0x4123_45E4_86E0, .public), address(0x0123_45A4_86E0),
            address(0x8123_4524_86E0), belt, scale,
        ].map { resolver.identity(of: $0) }
        #expect(found == [belt, scale, nil, nil, nil, nil, nil, nil, nil])
        let counts = resolver.counts
        #expect(counts.resolved == 2 && counts.unknown == 1 && counts.ambiguous == 0)
    }

    @Test func aKnownAddressCostsNoHash() throws {
        var resolver = resolver([belt: try key(0xA5), scale: try key(0x3C)])
        for _ in 0..<1_000 {
            let found = [address(0x4123_45E4_86E0), address(0x4000_0000_0001)].map { resolver.identity(of: $0) }
            #expect(found == [belt, nil])
        }
        #expect(resolver.counts.hashes == 4 && resolver.rememberedCount == 2)
    }

    @Test func aFloodOfAddressesIsForgottenAndTheKnownOnesAreNot() throws {
        var resolver = resolver([belt: try key(0xA5)], capacity: 100)
        var numbers = SeededNumbers(seed: 7)
        _ = resolver.identity(of: address(0x4123_45E4_86E0))
        var most = 0
        for _ in 0..<20_000 {
            let random = numbers.next() & 0x3FFF_FFFF_FFFF | 0x4000_0000_0000
            _ = resolver.identity(of: address(random))
            most = max(most, resolver.rememberedCount)
        }
        #expect(most <= 200)
        let before = resolver.counts.hashes
        let known = resolver.identity(of: address(0x4123_45E4_86E0))
        #expect(known == belt && resolver.counts.hashes == before)
        // Its own addresses are bounded as well.
        for random in 0..<300 as Range<UInt64> {
            let lower = (random | 0x40_0000) ^ 0xA5_A5A5
            let own = resolver.identity(of: address((random | 0x40_0000) << 24 | lower))
            #expect(own == belt)
        }
        #expect(resolver.rememberedCount == 200)
    }

    @Test func theSameKeysKeepTheMemory() throws {
        let third = address(0xC000_0000_0003)
        let keys = [belt: try key(0xA5), scale: try key(0x3C), third: try key(0x3C)]
        var resolver = resolver(keys)
        let (own, shared, strange) = (
            address(0x4123_45E4_86E0), address(0x7000_014C_3C3D), address(0x4000_0000_0001)
        )
        var found = [own, shared, strange].map { resolver.resolution(of: $0) }
        let hashes = resolver.counts.hashes
        for _ in 0..<3 {
            resolver.setKeys(keys) { Self.hash($0) }
            let again = [own, shared, strange].map { resolver.resolution(of: $0) }
            #expect(again == found && resolver.counts.hashes == hashes && resolver.rememberedCount == 3)
        }
        #expect(found == [.identity(belt), .ambiguous, .unknown])
        // The same number of keys, and of identities; then one of them less.
        resolver.setKeys([belt: try key(0x3C), scale: try key(0xA5), third: try key(0xA5)]) { Self.hash($0) }
        found = [own, shared, strange].map { resolver.resolution(of: $0) }
        #expect(found == [.ambiguous, .identity(belt), .unknown])
        resolver.setKeys([belt: try key(0x3C), scale: try key(0xA5)]) { Self.hash($0) }
        found = [own, shared, strange].map { resolver.resolution(of: $0) }
        #expect(found == [.identity(scale), .identity(belt), .unknown])
    }

    @Test func newKeysEmptyTheMemory() throws {
        var resolver = resolver([belt: try key(0xA5)])
        let (first, second) = (address(0x4123_45E4_86E0), address(0x7000_014C_3C3D))
        var found = [resolver.identity(of: first), resolver.identity(of: second)]
        #expect(found == [belt, nil])
        resolver.setKeys([scale: try key(0x3C)]) { Self.hash($0) }
        #expect(resolver.rememberedCount == 0)
        found = [resolver.identity(of: first), resolver.identity(of: second)]
        #expect(found == [nil, scale])
        resolver.setKeys([:]) { Self.hash($0) }
        found = [resolver.identity(of: first), resolver.identity(of: second)]
        #expect(found == [nil, nil] && resolver.isEmpty && resolver.rememberedCount == 0)
        #expect(resolver.resolves(scale) == false)
    }

    /// Cloned firmware has one key in all devices: which of them it is nobody knows.
    @Test(.row("S08")) func anAddressThatTwoCouldHaveMadeBelongsToNone() throws {
        let third = address(0xC000_0000_0003)
        var resolver = resolver([belt: try key(0xA5), scale: try key(0xA5), third: try key(0x3C)])
        let shared = resolver.resolution(of: address(0x4123_45E4_86E0))
        let identity = resolver.identity(of: address(0x4123_45E4_86E0))
        let own = resolver.resolution(of: address(0x7000_014C_3C3D))
        #expect(shared == .ambiguous && identity == nil && own == .identity(third))
        #expect(!resolver.resolves(belt) && !resolver.resolves(scale) && resolver.resolves(third))
        #expect(resolver.counts.ambiguous == 1)
        // A key that several share is tried once.
        #expect(resolver.counts.hashes == 4)

        // Two keys whose hashes happen to be the same.
        resolver.setKeys([belt: try key(1), scale: try key(2)]) { _ in 7 }
        let chance = resolver.resolution(of: address(0x4123_4500_0007))
        #expect(chance == .ambiguous)
    }

    @Test func whatIsNoKeyIsNeverTried() throws {
        var resolver = AddressResolver()
        let strange = [address(0x4000_0000_0001), address(0x0000_0000_0001), address(0x8000_0000_0001)]
        var keys: [PeerID: Secret128] = [belt: .zero]
        for identity in strange { keys[identity] = try key(1) }
        resolver.setKeys(keys) { $0.random }
        #expect(resolver.isEmpty == true)
        let found = resolver.identity(of: address(0x4123_4541_2345))
        #expect(found == nil && resolver.counts.hashes == 0 && resolver.rememberedCount == 0)
        resolver.setKeys([belt: try key(1)], nil)
        #expect(resolver.isEmpty == true)
        // A hash that could not be computed.
        resolver.setKeys([belt: try key(1)]) { _ in .max }
        let none = resolver.identity(of: address(0x4123_45FF_FFFF))
        #expect(none == nil && !resolver.isEmpty)
    }

    @Test func aFloodOfNewAddressesCostsABoundedTime() throws {
        var keys: [PeerID: Secret128] = [belt: try key(0xA5)]
        for number in 1..<100 as Range<UInt64> { keys[address(0xC000_0000_0100 + number)] = try key(UInt8(number)) }
        var resolver = resolver(keys)
        let start = BootInstant(nanoseconds: 1_000_000_000)
        let known = address(0x4123_45E4_86E0)
        var found = resolver.identity(ofReportFrom: known, at: start)
        #expect(found == belt)
        for number in 0..<5_000 as Range<UInt64> {
            _ = resolver.identity(ofReportFrom: address(0x4000_0000_0001 | number << 24), at: start)
        }
        #expect(resolver.counts.hashes == AddressResolver.hashesPerSecond)
        #expect(resolver.counts.deferred == 5_001 - AddressResolver.hashesPerSecond / 100)
        // What is known is known, and a call of the program is served.
        found = resolver.identity(ofReportFrom: known, at: start)
        #expect(found == belt)
        let new = address(0x4123_46E4_86E3)
        found = resolver.identity(ofReportFrom: new, at: start + .milliseconds(999))
        #expect(found == nil)
        found = resolver.identity(ofReportFrom: new, at: start + .seconds(1))
        #expect(found == belt)
        let another = resolver.identity(of: address(0x4123_47E4_86E2))
        #expect(another == belt)
    }
}
