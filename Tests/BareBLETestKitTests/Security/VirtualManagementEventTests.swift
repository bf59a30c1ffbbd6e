import BLECore
import Testing

@testable import BareBLETestKit

/// The layouts of the kernel's `mgmt.h`, and packets that kernel 6.12 sent.
@Suite("Virtual management events")
struct VirtualManagementEventTests {
    private static let name = "1122334455c602"
    private static let peer = ManagementPeer(KernelSecurityBench.id)

    private static func secret(_ hex: String) -> Secret128 { Secret128(padding: (try? Hex.decode(hex)) ?? []) }

    /// Keys as the kernel has reported them, after the store hint.
    static let keys: [(String, ManagementLongTermKey)] = [
        (
            "1122334455c6 02 03 00 10 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e",
            ManagementLongTermKey(
                peer: peer, kind: .secureConnectionsAuthenticated, isCentral: false, size: 16, ediv: 0, rand: 0,
                key: secret("ef8c26c1e45e8cbe9d7e39d53905d68e"))
        ),
        (
            "1122334455c6 02 01 00 10 86b3 8512f2f27da034bc d970e770609e64246dd1d9f24a5938bc",
            ManagementLongTermKey(
                peer: peer, kind: .legacyAuthenticated, isCentral: false, size: 16, ediv: 0xB386,
                rand: 0xBC34_A07D_F2F2_1285, key: secret("d970e770609e64246dd1d9f24a5938bc"))
        ),
        (
            "1122334455c6 02 01 01 10 0000 0000000000000000 a4e41d70088de98196ae36dec58877be",
            ManagementLongTermKey(
                peer: peer, kind: .legacyAuthenticated, isCentral: true, size: 16, ediv: 0, rand: 0,
                key: secret("a4e41d70088de98196ae36dec58877be"))
        ),
    ]

    @Test("A key is sent as the kernel sends it", arguments: keys)
    func aKeyIsSentAsTheKernelSendsIt(_ hex: String, _ key: ManagementLongTermKey) {
        let event = VirtualManagementEvent.newLongTermKey(isForStorage: true, key)
        #expect(Hex.encode(event.packet(adapter: 0)) == packet("0a000000 2500 01", hex))
    }

    static let events: [(VirtualManagementEvent, String)] = [
        (.commandComplete(.setPowered, .success, [0xD1, 0x0A, 0, 0]), "01000100 0700 0500 00 d10a0000"),
        (.commandStatus(.setPrivacy, .rejected), "02000100 0300 2f00 0b"),
        (.indexAdded, "04000100 0000"),
        (.indexRemoved, "05000100 0000"),
        (.newSettings([.powered, .lowEnergy, .secureConnections]), "06000100 0400 010a0000"),
        (.deviceConnected(peer), "0b000100 0d00 \(name) 00000000 0000"),
        (.deviceDisconnected(peer, .authenticationFailure), "0c000100 0800 \(name) 04"),
        (
            .userConfirmationRequest(peer, isJustWorks: false, number: 123_456), "0f000100 0c00 \(name) 00 40e20100"
        ),
        (.userPasskeyRequest(peer), "10000100 0700 \(name)"),
        (.authenticationFailed(peer, .authenticationFailed), "11000100 0800 \(name) 05"),
        (.deviceUnpaired(peer), "16000100 0700 \(name)"),
        (.passkeyNotify(peer, 123_456), "17000100 0c00 \(name) 40e20100 00"),
        (
            .newIdentityResolvingKey(
                isForStorage: true, privateAddress: BluetoothAddress(rawValue: 0x62CC_28F3_EE75),
                ManagementIdentityResolvingKey(peer: peer, key: secret("000102030405060708090a0b0c0d0e0f"))),
            "18000100 1e00 01 75eef328cc62 \(name) 000102030405060708090a0b0c0d0e0f"
        ),
        (
            .newSignatureKey(isForStorage: false, peer, kind: 2, secret("0f")),
            "19000100 1900 00 \(name) 02 0f000000000000000000000000000000"
        ),
        (.advertisingAdded(3), "23000100 0100 03"),
        (.advertisingRemoved(3), "24000100 0100 03"),
    ]

    @Test("An event has the layout of the kernel's header", arguments: events)
    func anEventHasTheLayoutOfTheKernelsHeader(_ event: VirtualManagementEvent, _ hex: String) throws {
        let bytes = event.packet(adapter: 1)
        #expect(Hex.encode(bytes) == packet(hex))
        // The library knows each of them.
        if case .unknown = try ManagementEvent(bytes.span).content { Issue.record("unknown") }
    }
}

@Suite("Private addresses of virtual peers")
struct PrivateAddressTests {
    @Test("The cipher is AES-128: FIPS 197, appendix B and C.1")
    func theCipherIsAES128() throws {
        let second = VirtualCipher(key: try Hex.decode("000102030405060708090a0b0c0d0e0f"))
        #expect(
            Hex.encode(second.encrypt(try Hex.decode("00112233445566778899aabbccddeeff")))
                == "69c4e0d86a7b0430d8cdb78070b4c55a")
        let first = VirtualCipher(key: try Hex.decode("2b7e151628aed2a6abf7158809cf4f3c"))
        #expect(
            Hex.encode(first.encrypt(try Hex.decode("3243f6a8885a308d313198a2e0370734")))
                == "3925841d02dc09fbdc118597196a0b32")
    }

    @Test("The hash is that of the sample data: Core Vol 3 Part H, D.7")
    func theHashIsThatOfTheSampleData() throws {
        let key = Secret128(padding: try Hex.decode("ec0234a357c8ad05341010a60a397d9b").reversed())
        #expect(PrivateAddress.hash(key, 0x70_8194) == 0x0D_FBAA)
        #expect(PrivateAddress.address(key, prand: 0x70_8194) == BluetoothAddress("70:81:94:0D:FB:AA"))
    }

    /// Addresses of Bumble peers, which kernels resolved.
    @Test(
        "Addresses that a kernel resolved",
        arguments: [
            ("000102030405060708090a0b0c0d0e0f", "62:CC:28:F3:EE:75"),
            ("202122232425262728292a2b2c2d2e2f", "77:12:FB:36:5B:CF"),
            ("202122232425262728292a2b2c2d2e2f", "5A:8D:ED:8E:AB:1E"),
        ])
    func addressesAreResolvedAsByTheKernel(_ hex: String, _ address: String) throws {
        let key = Secret128(padding: try Hex.decode(hex))
        let peer = PeerID(address: try #require(BluetoothAddress(address)), type: .random)
        #expect(PrivateAddress.isResolved(peer, by: key))
        #expect(!PrivateAddress.isResolved(peer, by: .zero))
        // Public and static addresses are not resolved, whatever their bytes are.
        #expect(!PrivateAddress.isResolved(PeerID(address: peer.address, type: .public), by: key))
        let high = BluetoothAddress(rawValue: peer.address.rawValue | 0xC000_0000_0000)
        #expect(!PrivateAddress.isResolved(PeerID(address: high, type: .random), by: key))
    }
}
