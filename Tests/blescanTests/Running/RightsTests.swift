import Foundation
import Glibc
import TestSupport
import Testing

/// The user who runs the tests.
private enum Runner {
    static func isRoot(for suite: String) -> Bool {
        if geteuid() == 0 { return true }
        print("SKIPPED: \(suite): only root has rights to give up")
        return false
    }
}

/// The capabilities that the radio requires.
private let forRadio: UInt64 = 3 << 12
private let nothing: UInt64 = 0

/// On an adapter that does not exist, and therefore is not on.
private let radio = ["write", "AA:BB:CC:DD:EE:FF", "2a19", "--adapter", "hci9999", "--file"]
private let socket = ["write", "unix:/nowhere", "2a19", "--file"]

/// The privileges that a command keeps of those that it was started with. Only root has privileges to drop. The kernel
/// tests run as root and cover the rest: with an adapter that is on, CAP_NET_ADMIN is dropped too.
@Suite(.enabled(if: Runner.isRoot(for: "RightsTests"))) struct RightsTests {
    private static let nobody = "65534"
    private static let sudo = ["SUDO_UID=\(nobody)", "SUDO_GID=\(nobody)"]
    private static let login = ["SUDO_UID=0", "SUDO_GID=0"]
    private static let overrideFileAccess: UInt64 = 1 << 1

    /// The capabilities of this process, which it can pass to the program.
    private static let own = UInt64(status(of: "self").first?["CapEff"] ?? "0", radix: 16) ?? 0

    @Test(arguments: [
        (radio, forRadio), (["write", "demo:battery", "2a19", "--file"], nothing), (["decode"], nothing),
        (["replay"], nothing),
    ])
    func underSudoEveryThreadIsTheCallers(_ command: [String], _ capabilities: UInt64) async throws {
        let threads = try await Self.threads(Self.sudo, command)
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: Self.nobody, capabilities) }
    }

    /// The files that it reads are its user's, which root may not be able to read.
    @Test(arguments: [(radio, forRadio), (socket, nothing), (["decode"], nothing), (["replay"], nothing)])
    func rootItselfKeepsItsWayToFiles(_ command: [String], _ capabilities: UInt64) async throws {
        let threads = try await Self.threads(Self.login, command)
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: "0", capabilities | Self.overrideFileAccess) }
    }

    /// The socket may belong to root.
    @Test func underSudoRootConnectsToASocket() async throws {
        let threads = try await Self.threads(Self.sudo, socket)
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: "0", Self.overrideFileAccess) }
    }

    /// With the capabilities of a service: CAP_CHOWN is not one that blescan uses.
    @Test(arguments: [(radio, forRadio), (["decode"], nothing)])
    func aCallerWithCapabilitiesKeepsThoseOfTheRadio(_ command: [String], _ capabilities: UInt64) async throws {
        let given = [(0, "+chown"), (12, "+net_admin"), (13, "+net_raw")]
            .filter { Self.own >> $0.0 & 1 != 0 }.map(\.1).joined(separator: ",")
        let threads = try await Self.threads(
            [
                "setpriv", "--reuid", Self.nobody, "--regid", Self.nobody, "--groups", Self.nobody, "--inh-caps", given,
                "--ambient-caps", given,
            ], command)
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: Self.nobody, capabilities) }
    }

    /// It waits for the file that simulates the sockets of a machine.
    @Test(.row("O35"), arguments: [(sudo, nobody, nothing), (login, "0", overrideFileAccess)])
    func doctorGivesUpItsRightsToo(_ environment: [String], _ user: String, _ capabilities: UInt64) async throws {
        let threads = try await Self.threads(environment, ["doctor", "--root"], waitingFor: "bluetooth.json")
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: user, capabilities) }
    }

    /// With CAP_NET_ADMIN only if something must be switched on; the socket may belong to root.
    @Test(.row("O35"), arguments: [([], forRadio & ~(1 << 12)), (["--fix", "up"], forRadio)])
    func doctorConnectsWithTheRightsOfTheOthers(_ options: [String], _ capabilities: UInt64) async throws {
        let peer = try SocketPeer { _ in .silence }
        let program = try RunningProgram(
            Self.sudo + [BuiltProgram.url.path, "doctor", "--no-scan", "--connect", "unix:" + peer.path] + options,
            of: URL(filePath: "/usr/bin/env"))
        try await waited(for: "the peer is asked something") { !peer.packets.isEmpty }
        let threads = Self.status(of: String(program.processID))
        program.signal(SIGKILL)
        _ = try await program.outcome()
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: "0", capabilities | Self.overrideFileAccess) }
    }

    @Test(.row("O35")) func doctorsRecordingIsTheCallers() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "visit.btsnoop").path
        let command = ["doctor", "--no-scan", "--connect", "demo:heart-rate", "--record", file]
        let refused = try await Self.run(Self.sudo, command)
        #expect(refused.status == 77 && refused.errors.contains("Permission denied\nhint: Under sudo it would belong"))
        #expect(!FileManager.default.fileExists(atPath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
        // Whether there is an adapter does not matter.
        let outcome = try await Self.run(Self.sudo, command)
        #expect(outcome.output.contains("demo:heart-rate: connected in "), "\(outcome.errors)")
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect((attributes[.ownerAccountID] as? NSNumber)?.stringValue == Self.nobody)
        #expect((attributes[.groupOwnerAccountID] as? NSNumber)?.stringValue == Self.nobody)
    }

    /// Other variables name the user too; nobody is in Debian's list of users.
    @Test(arguments: ["DOAS_USER=nobody", "PKEXEC_UID=\(nobody)"])
    func underOtherToolsEveryThreadIsTheCallers(_ variable: String) async throws {
        let threads = try await Self.threads(["-u", "SUDO_UID", variable], ["decode"])
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: Self.nobody, nothing) }
    }

    @Test func aFileIsTheCallersOrIsNotMade() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "scan.btsnoop").path
        let outcome = try await Self.run(Self.sudo, ["scan", "--record", file])
        #expect(outcome.status == 77)
        #expect(outcome.errors.contains("Permission denied\nhint: Under sudo it would belong to the user who ran it"))
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func aDialogueIsTheCallersOrIsNotMade() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let capture = folder.appending(path: "visit.dialogue")
        // A request for the name of a device, and its response.
        try Data("mtu: 23\n< 0a 03 00\n> 0b 41 42\n".utf8).write(to: capture)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: capture.path)
        let made = folder.appending(path: "made.dialogue").path
        let command = ["replay", capture.path, "--as-fixture", made]
        let refused = try await Self.run(Self.sudo, command)
        #expect(refused.status == 77 && refused.errors.contains("Permission denied"))
        #expect(!FileManager.default.fileExists(atPath: made))
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
        let outcome = try await Self.run(Self.sudo, command)
        #expect(outcome.status == 0, "\(outcome.errors)")
        let attributes = try FileManager.default.attributesOfItem(atPath: made)
        #expect((attributes[.ownerAccountID] as? NSNumber)?.stringValue == Self.nobody)
        #expect((attributes[.groupOwnerAccountID] as? NSNumber)?.stringValue == Self.nobody)
    }

    @Test(arguments: [["replay"], ["decode"], ["replay", "--check"], ["replay", "--as-fixture", "/nowhere/made"]])
    func aFileThatTheCallerMayNotReadIsNotRead(_ command: [String]) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "visit.dialogue")
        try Data("< 0a 03 00\n> 0b 41 42\n".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        let outcome = try await Self.run(Self.sudo, command + [file.path])
        #expect(outcome.status == 77)
        #expect(
            outcome.errors
                == "blescan: cannot open \(file.path): Permission denied\nhint: Under sudo it is read by the user who "
                + "ran it: let that user read it.\n")
    }

    /// An invalid number names no user: root stays root.
    @Test func aCallerThatIsNoNumberIsIgnored() async throws {
        let threads = try await Self.threads(["SUDO_UID=\(Self.nobody)", "SUDO_GID=nonsense"], ["decode"])
        #expect(!threads.isEmpty)
        for thread in threads { Self.expect(thread, user: "0", Self.overrideFileAccess) }
    }

    private static func run(_ environment: [String], _ command: [String]) async throws -> Outcome {
        try await RunningProgram(environment + [BuiltProgram.url.path] + command, of: URL(filePath: "/usr/bin/env"))
            .outcome()
    }

    /// Returns the kernel's status of each thread of a command that waits for the pipe in its last argument, or for a
    /// file of that name in it.
    private static func threads(
        _ environment: [String], _ command: [String], waitingFor name: String = ""
    ) async throws -> [[String: String]] {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pipe = folder.appending(path: name.isEmpty ? "value" : name).path
        let last = name.isEmpty ? pipe : folder.path
        #expect(unsafe mkfifo(pipe, 0o644) == 0 && chmod(pipe, 0o644) == 0)
        let program = try RunningProgram(
            environment + [BuiltProgram.url.path] + command + [last], of: URL(filePath: "/usr/bin/env"))
        // It has opened the pipe, and so has finished its start.
        let end = try await Self.opened(pipe)
        let found = status(of: String(program.processID))
        close(end)
        // The pipe is empty, which each command handles differently.
        _ = try await program.outcome()
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

    private static func expect(_ thread: [String: String], user: String, _ capabilities: UInt64) {
        #expect(thread["Uid"] == Array(repeating: user, count: 4).joined(separator: "\t"))
        #expect(thread["Gid"] == Array(repeating: user, count: 4).joined(separator: "\t"))
        if user != "0" { #expect(thread["Groups"]?.trimmingCharacters(in: .whitespaces) == user) }
        #expect(thread["NoNewPrivs"] == "1")
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
