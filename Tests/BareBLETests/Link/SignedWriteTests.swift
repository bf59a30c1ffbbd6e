import BareBLE
import BareBLETestKit
import Testing

@Suite(.timeLimit(.minutes(10))) struct SignedWriteTests {
    /// GATT/GAW/CL/BV-02-C as BlueZ's unit/test-gatt.c has it: the key's code of this one message.
    @Test func goesOutWithItsSignature() async throws {
        let peer = ScriptedPeripheral(try Dialogue("< d2 0700 010203 00000000 311f0acd1c3a5b0a"))
        let device = try await Central().attach(descriptor: peer.connect(), ConnectOptions(mtu: 23))
        var signer = WriteSigner(counter: 0) { message in
            let expected: [UInt8] = [0xD2, 7, 0, 1, 2, 3, 0, 0, 0, 0]
            return message == expected ? [0x31, 0x1F, 0x0A, 0xCD, 0x1C, 0x3A, 0x5B, 0x0A] : []
        }
        try await device.write([1, 2, 3], to: .handle(7), signedBy: &signer)
        #expect(signer.counter == 1)
        #expect(await peer.finish().isComplete)
    }

    @Test func whatCannotBeSentSpendsNoCounter() async throws {
        let plain = VirtualPeripheral(.battery)
        let device = try await Central().attach(descriptor: plain.connect(), ConnectOptions(mtu: 23))
        var signer = WriteSigner(counter: 5) { _ in [UInt8](repeating: 0, count: 8) }
        await #expect(throws: error(.tooLong)) {
            try await device.write([UInt8](repeating: 1, count: 9), to: .handle(3), signedBy: &signer)
        }
        await #expect(throws: error(.notSupported)) {
            try await device.write([1], to: 0x2A19, signedBy: &signer)
        }
        #expect(signer.counter == 5)
        var spoilt = WriteSigner(counter: 5) { _ in [] }
        await #expect(throws: error(.invalidArgument)) {
            try await device.write([1], to: .handle(3), signedBy: &spoilt)
        }
    }
}
