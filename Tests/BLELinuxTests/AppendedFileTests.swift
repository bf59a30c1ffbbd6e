import BLELinux
import Foundation
import Testing

@Suite struct AppendedFileTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "appended-\(UUID().uuidString)")

    @Test func whatWasThereIsReplacedAndHidden() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "visit.btsnoop")
        try Data("old and long".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        let appended = try AppendedFile(file.path)
        try appended.append([1, 2])
        try appended.append([3])
        #expect(try Data(contentsOf: file) == Data([1, 2, 3]))
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func whatWasThereIsKeptWhereNothingIsToBeReplaced() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "visit.btsnoop")
        try AppendedFile(file.path, isReplacing: false).append([1, 2])
        #expect(throws: SystemCallError(call: "open", errno: EEXIST)) {
            _ = try AppendedFile(file.path, isReplacing: false)
        }
        #expect(try Data(contentsOf: file) == Data([1, 2]))
        let link = folder.appending(path: "link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder.appending(path: "nowhere"))
        #expect(throws: SystemCallError(call: "open", errno: EEXIST)) {
            _ = try AppendedFile(link.path, isReplacing: false)
        }
        // A device keeps nothing that could be lost.
        try AppendedFile("/dev/null", isReplacing: false).append([1])
    }

    @Test func aSymbolicLinkIsNotFollowed() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "passwords")
        try Data("secret".utf8).write(to: file)
        let link = folder.appending(path: "visit.btsnoop")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        #expect(throws: SystemCallError(call: "open", errno: ELOOP)) { _ = try AppendedFile(link.path) }
        #expect(try Data(contentsOf: file) == Data("secret".utf8))
    }
}
