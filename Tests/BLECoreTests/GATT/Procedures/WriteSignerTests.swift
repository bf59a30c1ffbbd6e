import BLECore
import Foundation
import TestSupport
import Testing

/// The samples of `vectors/crypto`: the message that is handed to the function, and where its code goes. The cipher is
/// not run here.
@Suite(.enabled(if: SharedVectors.available(for: "WriteSignerTests"))) struct WriteSignerVectorTests {
    private struct Sample: Decodable {
        let name: String
        let pduWithoutSignature: String
        let signCounter: UInt32
        let authenticationSignature: String
    }

    private struct File: Decodable {
        let sign: [Sample]
    }

    @Test func packetsAreSigned() throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let file = try decoder.decode(File.self, from: SharedVectors.data("crypto/signed_write.json"))
        var count = 0
        for sample in file.sign where sample.pduWithoutSignature.hasPrefix("d2") {
            let unsigned = try Hex.decode(sample.pduWithoutSignature)
            let signature = try Hex.decode(sample.authenticationSignature)
            var signer = WriteSigner(counter: sample.signCounter) { message in
                message == unsigned + signature.prefix(4) ? Array(signature.suffix(8)) : []
            }
            let handle = UInt16(unsigned[1]) | UInt16(unsigned[2]) << 8
            let command = signer.sign(Array(unsigned.dropFirst(3)), for: handle)
            #expect(command?.bytes == unsigned + signature, "\(sample.name)")
            #expect(signer.counter == sample.signCounter + 1)
            count += 1
        }
        #expect(count == 2)
    }
}

@Suite struct WriteSignerTests {
    @Test func theLastCounterIsTheEnd() {
        var signer = WriteSigner(counter: .max) { _ in [UInt8](repeating: 7, count: 8) }
        let last = signer.sign([1], for: 3)
        #expect(last?.signature == [0xFF, 0xFF, 0xFF, 0xFF, 7, 7, 7, 7, 7, 7, 7, 7])
        #expect(signer.counter == nil)
        let more = signer.sign([1], for: 3)
        #expect(more == nil)
    }

    /// The program stores what `reserve` returns, signs, and crashes at any moment: no number comes twice.
    @Test(.row("O38")) func aCrashUsesNoCounterTwice() {
        var (stored, used): (UInt32?, [UInt32]) = (40, [])
        for crashAfter in [0, 1, 3, 8, 9, 2] {
            guard let counter = stored else { break }
            var signer = WriteSigner(counter: counter) { _ in [UInt8](repeating: 7, count: 8) }
            stored = signer.reserve(4)
            for _ in 0..<crashAfter {
                if signer.reservedCount == 0 { stored = signer.reserve(4) }
                guard let number = signer.counter, signer.sign([1], for: 3) != nil else { continue }
                used.append(number)
            }
        }
        #expect(used == [44, 48, 49, 50, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 72, 73])
        #expect(stored == 76)
    }

    @Test func onlyWhatWasSetAsideIsUsed() {
        var signer = WriteSigner(counter: .max - 2) { _ in [UInt8](repeating: 7, count: 8) }
        #expect(signer.reservedCount == nil)
        #expect(signer.reserve(2) == .max)
        for left: UInt32 in [1, 0] {
            #expect(signer.sign([1], for: 3) != nil)
            #expect(signer.reservedCount == left)
        }
        #expect(signer.sign([1], for: 3) == nil)
        #expect(signer.counter == .max, "the last number is there, but nobody has set it aside")
        #expect(signer.reserve(1) == nil, "nothing is left for another signer")
        #expect(signer.sign([1], for: 3)?.signature.prefix(4) == [0xFF, 0xFF, 0xFF, 0xFF])
        #expect(signer.sign([1], for: 3) == nil)
        #expect(signer.reserve(1) == nil && signer.sign([1], for: 3) == nil)
    }

    @Test(arguments: [0, 7, 9, 16]) func aCodeOfAnotherLengthIsNone(length: Int) {
        var signer = WriteSigner(counter: 4) { _ in [UInt8](repeating: 7, count: length) }
        let command = signer.sign([1], for: 3)
        #expect(command == nil)
        #expect(signer.counter == 4)
    }
}
