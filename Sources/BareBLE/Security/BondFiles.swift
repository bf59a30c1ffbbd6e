internal import BLECore
internal import BLELinux
internal import Glibc

/// The names of what is stored for one adapter.
struct BondFiles: Sendable {
    let directory: String
    let name: String
    let lockPath: String

    init(directory: String, adapter: BluetoothAddress) {
        let address = String(adapter.description.filter { $0 != ":" })
        self.directory = directory
        name = "\(address).bonds"
        lockPath = "\(directory)/\(address).lock"
    }

    /// The length of a name, which the names of what is moved aside begin with.
    static let nameLength = 18

    /// Returns the adapter whose bonds are in a file of this name; `nil` for other files.
    static func adapter(ofFile name: String) -> BluetoothAddress? {
        guard name.hasSuffix(".bonds"), name.utf8.count == nameLength else { return nil }
        var text = ""
        for (index, digit) in name.prefix(12).enumerated() {
            if index > 0, index.isMultiple(of: 2) { text.append(":") }
            text.append(digit)
        }
        return BluetoothAddress(text)
    }

    var nameOfDamaged: String { name + ".damaged" }
    var nameOfOtherVersion: String { name + ".other-version" }
    /// Whether a file is one that is written here.
    func isWritten(_ other: String) -> Bool {
        other == name || other.hasPrefix(nameOfDamaged) || other.hasPrefix(nameOfOtherVersion)
    }

    /// Whether a file is one with bonds that were moved aside.
    func isMovedAside(_ other: String) -> Bool {
        for name in [nameOfDamaged, nameOfOtherVersion] where other.hasPrefix(name) {
            let rest = other.dropFirst(name.count)
            if rest.isEmpty || rest.first == "-" && UInt(rest.dropFirst()) != nil { return true }
        }
        return false
    }

    /// Returns this name, or with the first number that no file has: what was set aside before stays.
    func unused(_ wanted: String, in folder: borrowing StoredFolder) -> String {
        let names = Set(folder.names())
        guard names.contains(wanted) else { return wanted }
        // One of so many numbers is free.
        let number = (2...names.count + 2).first { !names.contains("\(wanted)-\($0)") }
        return "\(wanted)-\(number ?? names.count + 2)"
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    // MARK: What was moved aside

    /// Returns the peers whose bonds were moved aside, as far as the files show them.
    ///
    /// - Throws: `BLEError` if a file cannot be read now, or the directory cannot be listed.
    func movedPeers(in folder: borrowing StoredFolder, during operation: String) throws(BLEError) -> Set<PeerID> {
        var peers: Set<PeerID> = []
        for name in try movedNames(in: folder, during: operation) {
            guard var bytes = try readMoved(name, in: folder, during: operation) else { continue }
            peers.formUnion(BondFile.peers(ofUnused: bytes))
            StoredFile.wipe(&bytes)
        }
        return peers
    }

    /// Removes the lines of a peer from the files with bonds that were moved aside. A file without any other line is
    /// removed.
    ///
    /// - Throws: `BLEError`; what could not be removed still exists.
    func removeMoved(
        _ peer: PeerID, in folder: borrowing StoredFolder, during operation: String
    ) throws(BLEError) {
        for name in try movedNames(in: folder, during: operation) {
            guard var bytes = try readMoved(name, in: folder, during: operation) else { continue }
            defer { StoredFile.wipe(&bytes) }
            guard var rest = BondFile.bytes(ofUnused: bytes, without: peer) else { continue }
            defer { StoredFile.wipe(&rest) }
            do throws(SystemCallError) {
                if rest.isEmpty { try folder.removeLastingly([name]) } else { try folder.replace(name, with: rest) }
            } catch {
                throw BLEError(error, bonds: path(name), during: operation)
            }
        }
    }

    private func movedNames(
        in folder: borrowing StoredFolder, during operation: String
    ) throws(BLEError) -> [String] {
        do throws(SystemCallError) {
            // An empty list would be taken for one without such files.
            return try folder.names(orAmong: [nameOfDamaged, nameOfOtherVersion]).filter { isMovedAside($0) }
        } catch {
            throw BLEError(error, bonds: directory, during: operation)
        }
    }

    /// Returns the bytes of a file that was moved aside; `nil` for one that this process never reads.
    private func readMoved(
        _ name: String, in folder: borrowing StoredFolder, during operation: String
    ) throws(BLEError) -> [UInt8]? {
        do throws(StoredFolder.Exposure) {
            return try folder.readSecrets(name, limit: BondFile.byteLimit)
        } catch {
            switch error {
            case .owner, .mode: return nil
            case .system(let failure):
                guard ![EACCES, ELOOP, EFBIG, EINVAL, EISDIR].contains(failure.errno) else { return nil }
                throw BLEError(error, bonds: path(name), during: operation)
            }
        }
    }
}

/// Makes the lock of a file a part of an enum.
final class OwnedFileLock: Sendable {
    private let lock: FileLock

    init(_ lock: consuming FileLock) {
        self.lock = lock
    }
}

/// Bonds that are on no disk, by the addresses of adapters.
final class BondMemory: Sendable {
    let turn = Lock<UInt64>(0)
    private let files = Lock<[BluetoothAddress: BondFile]>([:])

    func read(_ adapter: BluetoothAddress) -> BondFile {
        files.withLock { $0[adapter] ?? BondFile() }
    }

    func write(_ file: BondFile, _ adapter: BluetoothAddress) {
        files.withLock { $0[adapter] = file }
    }
}

extension StoredFolder {
    /// Opens a directory of bonds, and checks that other users can exchange nothing in it.
    static func ofBonds(_ path: String, during operation: String) throws(BLEError) -> StoredFolder {
        let folder: StoredFolder
        do throws(SystemCallError) {
            folder = try StoredFolder(path)
        } catch {
            throw BLEError(error, bonds: path, during: operation)
        }
        do throws(Exposure) {
            try folder.checkIsOwn()
        } catch {
            throw BLEError(error, bonds: path, during: operation)
        }
        return folder
    }
}
