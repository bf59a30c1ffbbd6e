package import BLECore
internal import CBluetooth
internal import Glibc

/// The steps that were taken for one adapter on this machine, in a file that every run of the helper program reads: one
/// step at a time, and so many in an hour.
package struct RecoveryRecord: ~Copyable {
    private let lock: FileLock
    private let path: String

    /// The number of steps in an hour: four runs of three steps.
    package static let limit = 12
    private static let hour: Int64 = 3_600
    private static let byteLimit = 4096

    /// Creates the folder of the records, where it is missing.
    ///
    /// - Throws: `RecoveryFailure.notPermitted` without the right; `.unavailable` where it cannot be created, as on a
    ///   full file system: nothing was done, so that no harsher step must follow.
    package static func makeFolder(_ path: String) throws(RecoveryFailure) {
        if unsafe mkdir(path, 0o755) == 0 {
            // The socket for daemons may come into it later, whatever may be created by default.
            unsafe chmod(path, 0o755)
            return
        }
        let error = SystemCallError(call: "mkdir", errno: errno)
        guard error.errno != EEXIST else { return }
        if case .notPermitted = RecoveryFailure(error) { throw .notPermitted(error.description) }
        throw .unavailable(unnoted(error.description))
    }

    /// Opens the record of an adapter in a folder of root's; it stays locked for as long as the value lives.
    ///
    /// - Throws: `RecoveryFailure.underWay` while another run of the helper program has it; `.unavailable` where it
    ///   cannot be opened, as on a full file system: nothing was done, so that no harsher step must follow.
    package init(of adapter: BluetoothAddress, in folder: String) throws(RecoveryFailure) {
        let name = String(decoding: adapter.description.utf8.filter { $0 != 0x3A }, as: UTF8.self)
        path = "\(folder)/recover-\(name)"
        do throws(FileLock.Failure) {
            lock = try FileLock(path + ".lock")
        } catch {
            switch error {
            case .held: throw .underWay
            case .system(let error) where error.errno == ENOENT: throw .notPermitted(error.description)
            case .system(let error):
                if case .failed(let reason) = RecoveryFailure(error) { throw .unavailable(Self.unnoted(reason)) }
                throw RecoveryFailure(error)
            }
        }
    }

    /// Notes that a step is being taken now.
    ///
    /// - Throws: `RecoveryFailure.refused` after too many; `.unavailable` where it cannot be read or written.
    package borrowing func noteStep(at seconds: Int64 = ble_boot_nanoseconds() / 1_000_000_000) throws(RecoveryFailure)
    {
        let times = try times(until: seconds)
        guard times.count < Self.limit else { throw .refused("\(times.count) steps were taken in the last hour") }
        let lines = (times + [seconds]).map { "\($0)\n" }.joined()
        do throws(SystemCallError) {
            try StoredFile.replace(path, with: Array(lines.utf8))
        } catch {
            throw .unavailable(Self.unnoted(error.description))
        }
    }

    private static func unnoted(_ reason: String) -> String { "the step could not be noted: \(reason)" }

    /// The times of the last hour. The folder is emptied at each start of the machine,
    /// so that later ones are not of this record.
    private borrowing func times(until seconds: Int64) throws(RecoveryFailure) -> [Int64] {
        do throws(SystemCallError) {
            let text = try StoredFile.read(path, limit: Self.byteLimit).map { String(decoding: $0, as: UTF8.self) }
            return (text ?? "").split(separator: "\n").compactMap { Int64($0) }.filter {
                // The file may be damaged: no difference from a time in it.
                $0 <= seconds && $0 > seconds - Self.hour
            }
        } catch {
            // That is no record of this program. It is replaced: otherwise no step would be taken any more.
            if error.errno == EFBIG { return [] }
            throw .unavailable(Self.unnoted(error.description))
        }
    }
}
