import BLELinux
import Foundation
import TestSupport
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

    @Test(.row("O39")) func onlyItsOwnFileIsRemoved() throws {
        let (made, moved) = (folder.appending(path: "made"), folder.appending(path: "moved"))
        let (others, manager) = (folder.appending(path: "others"), FileManager.default)
        for place in [made, others] { try manager.createDirectory(at: place, withIntermediateDirectories: true) }
        defer { try? manager.removeItem(at: folder) }
        let file = try AppendedFile(made.appending(path: "scan").path, isReplacing: false)
        try file.append([1, 2])
        // Somebody puts a link to another directory in the place of the file's, where a small file has the same name.
        try Data([7]).write(to: others.appending(path: "scan"))
        try manager.moveItem(at: made, to: moved)
        try manager.createSymbolicLink(at: made, withDestinationURL: others)
        file.remove(ifAtMost: 1)
        #expect(manager.fileExists(atPath: moved.appending(path: "scan").path), "it has more bytes than that")
        file.remove(ifAtMost: 2)
        #expect(!manager.fileExists(atPath: moved.appending(path: "scan").path))
        #expect(try Data(contentsOf: others.appending(path: "scan")) == Data([7]))
        // Another file has the name by now.
        let second = try AppendedFile(moved.appending(path: "scan").path, isReplacing: false)
        try manager.removeItem(at: moved.appending(path: "scan"))
        try Data().write(to: moved.appending(path: "scan"))
        second.remove(ifAtMost: 16)
        #expect(manager.fileExists(atPath: moved.appending(path: "scan").path))
        // One that may have been there before stays.
        let third = try AppendedFile(moved.appending(path: "scan").path)
        third.remove(ifAtMost: 16)
        #expect(manager.fileExists(atPath: moved.appending(path: "scan").path))
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
