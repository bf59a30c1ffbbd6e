internal import BLECore
internal import BLELinux
internal import Glibc

/// The files of a recording, written in queue order, off the event loop.
actor RecordingFiles {
    /// A pending write.
    enum Job: Sendable {
        /// A record of the capture.
        case packet(CapturedPacket)
        /// The start of a link's dialogue.
        case open(Int, header: [UInt8])
        /// Lines of a link's dialogue.
        case line(Int, [UInt8])
        /// The end of a link's dialogue.
        case close(Int)

        var byteCount: Int {
            switch self {
            case .packet(let packet): packet.bytes.count + Self.recordOverhead
            case .open(_, let bytes), .line(_, let bytes): bytes.count
            case .close: 0
            }
        }

        /// About as many bytes as a record has beside its packet.
        private static let recordOverhead = 25
    }

    /// The capture of all links, and its name in messages.
    private enum Capture {
        case file(AppendedFile, path: String)
        /// It is read while it is written.
        case pipe(PipeWriter, name: String)
    }

    private var capture: Capture?
    private let dialogue: String?
    private let isReplacing: Bool
    private var dialogues: [Int: AppendedFile] = [:]

    init(capture target: Recorder.Target?, dialogue: String?, isReplacing: Bool) throws(RecorderError) {
        self.dialogue = dialogue
        self.isReplacing = isReplacing
        switch target {
        case nil: break
        case .file(let path):
            let file = try Self.create(path, isReplacing)
            do throws(RecorderError) {
                try Self.append(BTSnoopWriter().header, to: file, path)
            } catch {
                file.remove(ifAtMost: Self.emptySize)
                throw error
            }
            capture = .file(file, path: path)
        case .pipe(let pipe, let name):
            try Self.write(PcapWriter().header, to: pipe, name)
            capture = .pipe(pipe, name: name)
        }
        // The first link's file is created now, so that an invalid path is reported at once.
        if let dialogue { dialogues[1] = try Self.create(dialogue, isReplacing) }
    }

    /// Writes until the queue is empty. Returns the failure that ended the recording, if any.
    func write(_ queue: Lock<Recorder.Queue>) -> RecorderError? {
        while true {
            let jobs = queue.withLock { $0.takeJobs() }
            if jobs.isEmpty { return nil }
            do throws(RecorderError) {
                for job in jobs { try perform(job) }
            } catch {
                return queue.withLock { $0.fail(error) } ? error : nil
            }
        }
    }

    /// What a btsnoop file begins with, and consists of as long as there was no packet.
    private static let emptySize = 16

    /// Closes the files; a btsnoop file that was made, replaced nothing and has no packet goes, where that is wanted.
    ///
    /// - Throws: `RecorderError` if the reader of a pipe does not take the rest.
    func close(removingEmpty: Bool = false) throws(RecorderError) {
        defer {
            capture = nil
            dialogues = [:]
        }
        switch capture {
        case nil: break
        case .file(let file, _):
            if removingEmpty { file.remove(ifAtMost: Self.emptySize) }
        case .pipe(let pipe, let name):
            do throws(SystemCallError) {
                try pipe.drain()
            } catch {
                throw Self.failure(error, name)
            }
        }
    }

    private func perform(_ job: Job) throws(RecorderError) {
        switch job {
        case .packet(let packet):
            switch capture {
            case nil: break
            case .file(let file, let path): try Self.append(BTSnoopWriter().record(packet) ?? [], to: file, path)
            // Wireshark reads only pcap from a pipe.
            case .pipe(let pipe, let name): try Self.write(PcapWriter().record(packet) ?? [], to: pipe, name)
            }
        case .open(let link, let header):
            guard let path = path(of: link) else { return }
            if link > 1 { dialogues[link] = try Self.create(path, isReplacing) }
            try append(header, to: link)
        case .line(let link, let bytes):
            try append(bytes, to: link)
        case .close(let link):
            dialogues[link] = nil
        }
    }

    private func append(_ bytes: [UInt8], to link: Int) throws(RecorderError) {
        guard let file = dialogues[link], let path = path(of: link) else { return }
        try Self.append(bytes, to: file, path)
    }

    /// `visit.dialogue`, then `visit-2.dialogue`.
    private func path(of link: Int) -> String? {
        guard let dialogue, link > 1 else { return dialogue }
        let ending = ".dialogue"
        guard dialogue.hasSuffix(ending) else { return "\(dialogue)-\(link)" }
        return "\(dialogue.dropLast(ending.count))-\(link)\(ending)"
    }

    private static func create(_ path: String, _ isReplacing: Bool) throws(RecorderError) -> AppendedFile {
        do throws(SystemCallError) {
            return try AppendedFile(path, isReplacing: isReplacing)
        } catch {
            throw .cannotCreate(path: path, errno: error.errno)
        }
    }

    private static func append(_ bytes: [UInt8], to file: AppendedFile, _ path: String) throws(RecorderError) {
        do throws(SystemCallError) {
            try file.append(bytes)
        } catch {
            throw failure(error, path)
        }
    }

    private static func write(_ bytes: [UInt8], to pipe: PipeWriter, _ name: String) throws(RecorderError) {
        do throws(SystemCallError) {
            try pipe.write(bytes)
        } catch {
            throw failure(error, name)
        }
    }

    private static func failure(_ error: SystemCallError, _ path: String) -> RecorderError {
        error.errno == EAGAIN
            ? .tooSlow(waitingBytes: PipeWriter.capacity) : .cannotWrite(path: path, errno: error.errno)
    }
}
