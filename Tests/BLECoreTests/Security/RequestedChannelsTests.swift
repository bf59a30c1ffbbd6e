import Testing

@testable import BLECore

/// Which signs of the kernel mean that a peer has refused a channel.
@Suite("requested channels") struct RequestedChannelsTests {
    private static let start = BootInstant(nanoseconds: 1_000_000_000)
    private static let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)
    private static let other = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0008), type: .random)

    @Test(
        "a question about a pairing that nobody has requested refuses the requests that are out",
        arguments: [false, true])
    func question(isEncrypted: Bool) {
        var channels = RequestedChannels()
        let first = channels.begin(with: Self.peer, isEncrypted: isEncrypted)
        let elsewhere = channels.begin(with: Self.other, isEncrypted: isEncrypted)
        #expect(!channels.isRefused(first, at: Self.start))
        #expect(!channels.isRefusedByItsEnd(first))
        channels.pairingRefused(with: Self.peer, at: Self.start)
        let later = channels.begin(with: Self.peer, isEncrypted: isEncrypted)
        #expect(channels.isRefused(first, at: Self.start))
        #expect(!channels.isRefused(elsewhere, at: Self.start + .seconds(60)))
        #expect(!channels.isRefused(later, at: Self.start + .seconds(60)))
        channels.end(first)
        #expect(!channels.isRefused(first, at: Self.start + .seconds(60)))
    }

    @Test("on an encrypted link a pairing that fails without a question refuses the requests that are out")
    func failureOnEncryptedLink() {
        var channels = RequestedChannels()
        let number = channels.begin(with: Self.peer, isEncrypted: true)
        let isForChannel = channels.pairingFailed(with: Self.other, at: Self.start)
        #expect(!isForChannel)
        #expect(!channels.isRefused(number, at: Self.start + .seconds(60)))
        let isForChannelThen = channels.pairingFailed(with: Self.peer, at: Self.start)
        #expect(isForChannelThen)
        #expect(channels.isRefused(number, at: Self.start))
    }

    @Test("of several channels of one peer each has some time to open")
    func failureBesideAnotherRequest() {
        var channels = RequestedChannels()
        let first = channels.begin(with: Self.peer, isEncrypted: true)
        let second = channels.begin(with: Self.peer, isEncrypted: true)
        _ = channels.begin(with: Self.other, isEncrypted: true)
        let isForChannel = channels.pairingFailed(with: Self.peer, at: Self.start)
        #expect(isForChannel)
        #expect(!channels.isRefused(first, at: Self.start + .milliseconds(1_999)))
        #expect(!channels.isRefused(second, at: Self.start + .milliseconds(1_999)))
        // It has opened.
        channels.end(second)
        #expect(channels.isRefused(first, at: Self.start + .seconds(2)))
        #expect(!channels.isRefused(second, at: Self.start + .seconds(2)))
    }

    @Test("on an unencrypted link it may be the end of a Security Request, and the channel has some time to open")
    func failureOnLinkInClear() {
        var channels = RequestedChannels()
        let number = channels.begin(with: Self.peer, isEncrypted: false)
        let isForChannel = channels.pairingFailed(with: Self.peer, at: Self.start)
        #expect(!isForChannel)
        #expect(!channels.isRefused(number, at: Self.start + .milliseconds(1_999)))
        #expect(channels.isRefusedByItsEnd(number), "a link that ends after that was not secure enough")
        // A peer that goes on asking does not extend that.
        let isForChannelThen = channels.pairingFailed(with: Self.peer, at: Self.start + .seconds(1))
        #expect(!isForChannelThen)
        #expect(channels.isRefused(number, at: Self.start + .seconds(2)))
        let asked = channels.begin(with: Self.peer, isEncrypted: false)
        _ = channels.pairingFailed(with: Self.peer, at: Self.start)
        channels.pairingRefused(with: Self.peer, at: Self.start + .seconds(1))
        #expect(channels.isRefused(asked, at: Self.start + .seconds(1)))
    }

    @Test("a channel for which the kernel wants more security has some time to open")
    func securityWanted() {
        var channels = RequestedChannels()
        let number = channels.begin(with: Self.peer, isEncrypted: false)
        let beside = channels.begin(with: Self.peer, isEncrypted: false)
        channels.securityWanted(for: number, after: .milliseconds(100), at: Self.start)
        #expect(channels.isRefusedByItsEnd(number))
        // Asking again does not extend that.
        channels.securityWanted(for: number, after: .milliseconds(1_100), at: Self.start + .seconds(1))
        #expect(!channels.isRefused(number, at: Self.start + .milliseconds(1_999)))
        #expect(channels.isRefused(number, at: Self.start + .seconds(2)))
        #expect(!channels.isRefused(beside, at: Self.start + .seconds(60)))
        channels.end(number)
        channels.securityWanted(for: number, after: .milliseconds(100), at: Self.start)
        #expect(!channels.isRefused(number, at: Self.start + .seconds(60)))
    }

    @Test("a channel for which the kernel wants more security is refused at once where it pairs with nobody")
    func securityWantedOfAKernelThatCannotPair() {
        var channels = RequestedChannels()
        let number = channels.begin(with: Self.peer, isEncrypted: false)
        channels.securityWanted(for: number, after: nil, at: Self.start)
        #expect(channels.isRefused(number, at: Self.start))
    }

    @Test("on a slow link a channel has the time that a pairing takes there")
    func securityWantedOnASlowLink() {
        var channels = RequestedChannels()
        let number = channels.begin(with: Self.peer, isEncrypted: false)
        channels.securityWanted(for: number, after: .seconds(1), at: Self.start)
        #expect(!channels.isRefused(number, at: Self.start + .milliseconds(11_999)))
        #expect(channels.isRefused(number, at: Self.start + .seconds(12)))
        #expect(channels.isRefusedByItsEnd(number))
    }

    @Test("without a request nothing is refused")
    func withoutRequest() {
        var channels = RequestedChannels()
        let isForChannel = channels.pairingFailed(with: Self.peer, at: Self.start)
        #expect(!isForChannel)
        let number = channels.begin(with: Self.peer, isEncrypted: true)
        channels.end(number)
        let isForChannelThen = channels.pairingFailed(with: Self.peer, at: Self.start)
        #expect(!isForChannelThen)
        #expect(!channels.isRefused(number, at: Self.start))
    }
}
