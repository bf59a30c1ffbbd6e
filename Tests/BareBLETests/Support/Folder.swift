import BareBLE
import Foundation

/// A directory of one test, which goes with it.
final class Folder: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "bareble-\(UUID().uuidString)").path

    init() throws { try make() }
    deinit { try? FileManager.default.removeItem(atPath: path) }

    func make() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
    /// Writes a text into a file, which keeps its mode if it exists.
    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path).appending(path: name))
    }
    func remove() throws { try FileManager.default.removeItem(atPath: path) }
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}

/// The code of the error that `body` throws; `nil` when it throws none.
func code(_ body: () throws(BLEError) -> Void) -> BLEError.Code? {
    do throws(BLEError) {
        try body()
        return nil
    } catch {
        return error.code
    }
}
