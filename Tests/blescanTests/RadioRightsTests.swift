import Foundation
import Glibc
import Testing

/// What root is left with in a command that uses the radio. Only root has something to give up; the kernel tests run as root,
/// and see the rest: with an adapter that is on CAP_NET_ADMIN goes too.
@Suite struct RadioRightsTests {
    private static let nobody = "65534"
    private static let overrideFileAccess: UInt64 = 1 << 1
    private static let forRadio: UInt64 = 3 << 12

    /// The capabilities that this process has, and so can give to the program.
    private static let own = UInt64(status(of: "self").first?["CapEff"] ?? "0", radix: 16) ?? 0

    private static var isRoot: Bool { geteuid() == 0 }

    @Test func underSudoEveryThreadIsTheCallers() async throws {
        guard Self.isRoot else { return }
        let threads = try await Self.threads(["SUDO_UID=\(Self.nobody)", "SUDO_GID=\(Self.nobody)"])
        #expect(!threads.isEmpty)
        for thread in threads {
            #expect(thread["Uid"] == Array(repeating: Self.nobody, count: 4).joined(separator: "\t"))
            #expect(thread["Gid"] == Array(repeating: Self.nobody, count: 4).joined(separator: "\t"))
            #expect(thread["Groups"]?.trimmingCharacters(in: .whitespaces) == Self.nobody)
            #expect(thread["NoNewPrivs"] == "1")
            Self.expect(thread, Self.forRadio)
        }
    }

    /// It reads a file of its user's, which may not be root's.
    @Test func rootItselfKeepsItsWayToFiles() async throws {
        guard Self.isRoot else { return }
        let threads = try await Self.threads(["SUDO_UID=0", "SUDO_GID=0"])
        #expect(!threads.isEmpty)
        for thread in threads {
            #expect(thread["Uid"] == "0\t0\t0\t0")
            #expect(thread["NoNewPrivs"] == "1")
            Self.expect(thread, Self.forRadio | Self.overrideFileAccess)
        }
    }

    @Test func aFileIsTheCallersOrIsNotMade() async throws {
        guard Self.isRoot else { return }
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "scan.btsnoop").path
        let outcome = try await RunningProgram(
            ["SUDO_UID=\(Self.nobody)", "SUDO_GID=\(Self.nobody)", BuiltProgram.url.path, "scan", "--record", file],
            of: URL(filePath: "/usr/bin/env")
        ).outcome()
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("Permission denied. Under sudo it would belong to the user who called it"))
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func whereNoRadioIsUsedNothingChanges() async throws {
        let outcome = try await RunningProgram(
            ["SUDO_UID=\(Self.nobody)", "SUDO_GID=nonsense", BuiltProgram.url.path, "read", "demo:battery", "2a19"],
            of: URL(filePath: "/usr/bin/env")
        ).outcome()
        #expect(outcome.status == 0)
    }

    /// What the kernel says of each thread of a command that waits for its value, on an adapter that nobody has.
    private static func threads(_ environment: [String]) async throws -> [[String: String]] {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pipe = folder.appending(path: "value").path
        #expect(unsafe mkfifo(pipe, 0o644) == 0 && chmod(pipe, 0o644) == 0)
        let program = try RunningProgram(
            environment + [
                BuiltProgram.url.path, "write", "AA:BB:CC:DD:EE:FF", "2a19", "--adapter", "hci9999", "--file", pipe,
            ],
            of: URL(filePath: "/usr/bin/env"))
        // It has opened the pipe, and so is behind everything that it does at its beginning.
        let end = try await Self.opened(pipe)
        let found = status(of: String(program.processID))
        close(end)
        // An empty value, and no such adapter.
        #expect(try await program.outcome().status == 69)
        return found
    }

    private static func opened(_ pipe: String) async throws -> Int32 {
        var descriptor: Int32 = -1
        try await waited(for: "the program reads its value") {
            descriptor = unsafe open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return descriptor >= 0
        }
        return descriptor
    }

    private static func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "rights-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        return folder
    }

    private static func expect(_ thread: [String: String], _ capabilities: UInt64) {
        for set in ["CapPrm", "CapEff"] {
            #expect(thread[set].flatMap { UInt64($0, radix: 16) } == capabilities & own)
        }
        for set in ["CapInh", "CapAmb"] {
            #expect(thread[set].flatMap { UInt64($0, radix: 16) } == 0)
        }
    }

    private static func status(of process: String) -> [[String: String]] {
        let tasks = "/proc/\(process)/task"
        return ((try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []).compactMap { task in
            guard let text = try? String(contentsOfFile: "\(tasks)/\(task)/status", encoding: .utf8) else { return nil }
            return Dictionary(
                text.split(separator: "\n").compactMap { line in
                    line.firstRange(of: ":\t").map {
                        (String(line[..<$0.lowerBound]), String(line[$0.upperBound...]))
                    }
                }, uniquingKeysWith: { first, _ in first })
        }
    }
}
