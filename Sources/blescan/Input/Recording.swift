import BLECapture
import BLECore

/// The contents of a file, by its format: the packets of a capture, chunk by chunk, or a dialogue.
enum Recording {
    /// Reads the file at `path`, `-` for standard input, also one that gzip has compressed; `packet` or `dialogue` is
    /// called with its contents.
    ///
    /// - Returns: A sentence about a damaged end of the file; `nil` for a whole one.
    /// - Throws: `Failure` for a file that is neither, or is damaged. What came before was passed on.
    static func read(
        _ path: String, packet: (CapturedPacket) throws -> Void, dialogue: (Dialogue) throws -> Void
    ) throws -> String? {
        InputFile.announce("a recording", from: path)
        var chunks = try FileChunks(path)
        var first: [UInt8] = []
        while first.count < longestMagic, let chunk = try chunks.next() { first += chunk }
        if first.isEmpty {
            let hint =
                path == "-"
                ? "Name a recording: `blescan replay FILE`."
                : "Nothing was recorded, or it is not written yet."
            throw Failure(message: "\(InputFile.name(of: path)) is empty", hint: hint, status: .badData)
        }
        if first.starts(with: InputFile.compressed) {
            throw InputFile.compressedTwice(InputFile.name(of: path))
        }
        guard isCapture(first) else {
            while first.count <= longestDialogue, let chunk = try chunks.next() { first += chunk }
            try dialogue(try text(first, path))
            return nil
        }
        var reader = CaptureReader()
        var next: [UInt8]? = first
        do {
            while let chunk = next {
                reader.append(chunk)
                while let read = try reader.next() { try packet(read) }
                next = try chunks.next()
            }
            try reader.finish()
            return nil
        } catch let error as CaptureError {
            // The recorder was stopped while it wrote: everything before is valid.
            if case .truncated(let count) = error, count > 0 {
                return
                    "the last record is cut off; \(count.counted("packet")) before it \(count == 1 ? "is" : "are") whole."
            }
            throw Failure(message: "\(InputFile.name(of: path)): \(error)", hint: advice(error), status: .badData)
        }
    }

    private static let longestDialogue = 1 << 24
    /// The number of bytes that identify every capture format.
    static let longestMagic = 8

    /// Returns whether the first `longestMagic` bytes of a file are those of a capture.
    static func isCapture(_ beginning: [UInt8]) -> Bool {
        var reader = CaptureReader()
        reader.append(beginning)
        do throws(CaptureError) {
            return try reader.next() != nil || beginning.count >= longestMagic
        } catch .notACapture {
            return false
        } catch {
            return true
        }
    }

    private static func text(_ bytes: [UInt8], _ path: String) throws(Failure) -> Dialogue {
        let isNamedSo = path.hasSuffix(".dialogue")
        var reason = "it is too long for one"
        if bytes.count <= longestDialogue {
            do throws(Dialogue.ParsingError) {
                let dialogue = try Dialogue(String(decoding: bytes, as: UTF8.self))
                if isNamedSo || !dialogue.steps.isEmpty { return dialogue }
            } catch {
                reason = "\(error)"
            }
        }
        guard isNamedSo else {
            let name = InputFile.name(of: path)
            throw Failure(
                message: "\(name): \(CaptureError.notACapture), and no dialogue", hint: advice(.notACapture),
                status: .badData)
        }
        throw Failure(
            message: "\(path) is not a dialogue: \(reason)",
            hint: "Each PDU is on a line of its own, such as \"< 0a 0300\".",
            status: .badData)
    }

    private static func advice(_ error: CaptureError) -> String {
        switch error {
        case .notACapture: "Record one with `btmon -w FILE`; hexadecimal text is read by `blescan decode`."
        case .unsupportedDatalink:
            "Record between host and controller, with `btmon -w FILE` or Android's HCI log, or with a sniffer that writes "
                + "link type 251, 256 or 272."
        case .unsupportedVersion: "Convert it with a newer tool."
        case .truncated, .corruptRecord: "The part before that was read."
        }
    }
}

/// The contents of a file in chunks, with their progress.
private struct FileChunks: ~Copyable {
    private var file: InputFile
    private let name: String
    private var progress: FileProgress

    /// Opens the file at `path`, `-` for standard input; what gzip has compressed is unpacked.
    ///
    /// - Throws: `Failure` if it cannot be opened, or is a directory.
    init(_ path: String) throws(Failure) {
        name = InputFile.name(of: path)
        file = try InputFile(path, advice: "Check the name.", unpacks: true)
        progress = FileProgress(file.descriptor, named: name)
    }

    deinit {
        progress.end()
    }

    /// Returns the next chunk; `nil` at the end of the file.
    ///
    /// - Throws: `Failure` if the file cannot be read to its end.
    mutating func next() throws(Failure) -> [UInt8]? {
        let bytes = try file.next()
        progress.advance(by: bytes.count, isCompressed: file.isCompressed)
        return bytes.isEmpty ? nil : bytes
    }
}
