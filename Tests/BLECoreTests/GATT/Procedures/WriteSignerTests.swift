import BLECore
import Foundation
import Testing

/// The samples of `vectors/crypto`: the message that is handed to the function, and where its code goes. The cipher is not
/// run here.
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

    @Test(arguments: [0, 7, 9, 16]) func aCodeOfAnotherLengthIsNone(length: Int) {
        var signer = WriteSigner(counter: 4) { _ in [UInt8](repeating: 7, count: length) }
        let command = signer.sign([1], for: 3)
        #expect(command == nil)
        #expect(signer.counter == 4)
    }
}
