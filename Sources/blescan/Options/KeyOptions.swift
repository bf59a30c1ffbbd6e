import ArgumentParser
import BLECore
import BLELinux
import BLEProfiles
import BareBLECrypto
import Glibc

/// `--keys`, for every command that decodes advertisements.
struct KeyOptions: ParsableArguments {
    @Option(
        name: .customLong("keys"),
        help: ArgumentHelp(
            "Decrypt BTHome, MiBeacon and Victron sensors with the keys in this file: lines of an address and 32 hex digits. "
                + "Its owner alone may read it.",
            valueName: "file"),
        completion: .file())
    var file: String?

    func validate() throws {
        if file == "" { throw ValidationError("--keys takes the name of a file.") }
    }

    /// - Throws: `ValidationError` for options of a scan's lines that make keys useless.
    func validate(with lines: LineOptions, _ format: LineFormat?) throws {
        guard file != nil else { return }
        if lines.redact {
            throw ValidationError("--redact takes away the addresses that the keys belong to; leave out --keys.")
        }
        if format == .theengs {
            throw ValidationError("--format theengs has the bytes as they came; leave out --keys.")
        }
    }

    /// Reads the file, if there is one; its keys are used from now on.
    ///
    /// - Throws: `Failure`.
    func read() throws(Failure) {
        if let file { SensorKeys.use(try KeyFile.read(file)) }
    }
}

/// A file of sensors' keys: on each line an address and a key; `#` begins a comment.
///
/// No message about it has any of its contents but addresses: a key may stand in any place by mistake.
enum KeyFile {
    private static let limit = 1 << 20

    /// Returns the keys in the file at `path`.
    ///
    /// - Throws: `Failure` for a file that others can read, that belongs to somebody else, or that is malformed.
    static func read(_ path: String) throws(Failure) -> AdvertisementKeys {
        // They are in memory from now on.
        CoreDumps.exclude()
        var bytes: [UInt8]
        do throws(StoredFolder.Exposure) {
            guard let found = try StoredFolder.readSecrets(at: path, limit: limit) else {
                throw .system(SystemCallError(call: "open", errno: ENOENT))
            }
            bytes = found
        } catch {
            throw failure(error, path)
        }
        defer { StoredFile.wipe(&bytes) }
        return try keys(in: bytes, path)
    }

    /// Returns the keys in the text of a file.
    static func keys(in text: [UInt8], _ path: String) throws(Failure) -> AdvertisementKeys {
        var keys = AdvertisementKeys { $0.plaintext }
        var number = 0
        for line in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            let words = line.prefix { $0 != UInt8(ascii: "#") }.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
            guard let first = words.first else { continue }
            let place = "\(path), line \(number)"
            guard let address = BluetoothAddress(String(decoding: first, as: UTF8.self)) else {
                throw malformed("\(place) does not begin with an address")
            }
            guard words.count == 2, let word = words.last else {
                throw malformed("\(place) has \(words.count) words, not an address and a key")
            }
            guard !keys.hasKey(for: address) else { throw malformed("\(place): there is a key for \(address) already") }
            guard var key = try? Hex.decode(String(decoding: word, as: UTF8.self)) else {
                throw malformed("\(place): the key of \(address) is not hexadecimal")
            }
            let isKey = keys.set(key, for: address)
            let count = key.count
            StoredFile.wipe(&key)
            guard isKey else {
                throw malformed(
                    "\(place): the key of \(address) has \(count.counted("byte")), not \(AdvertisementKeys.keyLength)")
            }
        }
        return keys
    }

    private static func malformed(_ message: String) -> Failure {
        Failure(
            message: message,
            hint: "A line is an address and 32 hex digits: AA:BB:CC:DD:EE:FF 00112233…; # begins a comment.",
            status: .badData)
    }

    private static func failure(_ exposure: StoredFolder.Exposure, _ path: String) -> Failure {
        switch exposure {
        case .owner:
            Failure(
                message: "\(path) belongs to another user, who could exchange the keys in it",
                hint: "Copy it: `install -m 600 \(path.shellPath) NEW`.", status: .notPermitted)
        case .mode(let mode):
            Failure(
                message: "others may read or write the keys in \(path) (mode \(String(mode, radix: 8)))",
                hint: "`chmod 600 \(path.shellPath)`.", status: .notPermitted)
        case .system(let error) where error.errno == EFBIG:
            Failure(message: "\(path) is too long for a file of keys", hint: "It may have 1 MB.", status: .badData)
        case .system(let error) where error.errno == EISDIR || error.errno == EINVAL:
            Failure(
                message: "\(path) is not a plain file", hint: "--keys reads no pipe, device or directory.",
                status: .usage)
        case .system(let error):
            Failure(cannot: error.call == "open" ? "open" : "read", path, for: .reading, errno: error.errno)
        }
    }
}
