import BareBLETestKit
import Foundation
import Testing

@testable import blescan

/// What shells offer, without a radio and without privileges.
@Suite struct CompletionTests {
    /// Each shell asks the program itself in this way, as its script in Docs/completions says.
    private func offered(_ arguments: [String]) async throws -> [String] {
        let outcome = try await BuiltProgram.run(arguments, environment: ["SAP_SHELL": "bash", "HOME": "/nowhere"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        return outcome.output.split(whereSeparator: \.isNewline).map(String.init)
    }

    @Test func virtualDevicesAreOffered() async throws {
        for command in ["read", "notify", "watch", "explore", "write", "talk"] {
            let words = try await offered(
                ["---completion", command, "--", "positional@0", "2", "0", "blescan", command, "demo:"])
            #expect(words.contains("demo:heart-rate") || words.contains { $0.hasPrefix("demo:heart-rate") }, "\(words)")
        }
    }

    @Test(arguments: [
        (["demo:uart"], "n", ["nordic-uart-rx", "nordic-uart-tx"]), (["demo:battery"], "b", ["battery-level"]),
        (["AA:BB:CC:DD:EE:FF"], "battery-l", ["battery-level", "battery-level-status"]), (["demo:uart"], "tea", []),
    ])
    func attributesAreOffered(_ peer: [String], _ word: String, _ names: [String]) async throws {
        let words = ["blescan", "read"] + peer + [word]
        let offered = try await offered(
            ["---completion", "read", "--", "positional@1", "\(words.count - 1)", "\(word.count)"] + words)
        #expect(offered == names)
    }

    @Test(arguments: [("AA:BB:CC:DD:EE:FF", true), ("name:Belt", true), ("demo:battery", false)])
    func theSignalIsOfferedWhereThereIsARadio(_ peer: String, _ isOffered: Bool) async throws {
        let words = ["blescan", "watch", peer, "rss"]
        let names = try await offered(["---completion", "watch", "--", "positional@1", "3", "3"] + words)
        #expect(names.contains("rssi") == isOffered, "\(names)")
    }

    /// What an earlier command has found out about this peer, not what was found out about another one.
    @Test func attributesComeFromTheCache() async throws {
        let folder = try TestFolder()
        let peer = try await SocketPeer(.uart)
        let explored = try await BuiltProgram.run(["explore", "unix:\(peer.path)", "--cache", folder["cache"]])
        #expect(explored.status == 0, "\(explored.errors)")
        let requests = peer.packets.count
        for (option, word, names) in [
            (["--cache", folder["cache"]], "nordic", ["nordic-uart-rx", "nordic-uart-tx"]),
            (["--cache=" + folder["cache"]], "0x0008", ["0x0008"]), ([], "0x0008", []),
        ] {
            let words = ["blescan", "read", "unix:\(peer.path)"] + option + [word]
            let index = words.count - 1
            let place = ["---completion", "read", "--", "positional@1", "\(index)", "\(word.count)"]
            #expect(try await offered(place + words) == names)
        }
        #expect(peer.packets.count == requests, "the device is not asked")
        let other = ["blescan", "read", "unix:/nowhere", "--cache", folder["cache"], "nordic"]
        let names = try await offered(["---completion", "read", "--", "positional@1", "5", "6"] + other)
        #expect(names.count > 2 && names.contains("nordic-led-state"), "the assigned names")
    }

    @Test func whatCanBeServedIsOffered() async throws {
        let folder = try TestFolder()
        for name in ["lamp.txt", "lantern", ".lamp", "$(lamp)", "belt.txt"] {
            try Data().write(to: URL(filePath: folder[name]))
        }
        try FileManager.default.createDirectory(atPath: folder["lamps"], withIntermediateDirectories: false)
        func served(_ word: String) async throws -> [String] {
            try await offered(
                ["---completion", "serve", "--", "positional@0", "2", "\(word.count)", "blescan", "serve", word])
        }
        #expect(try await served("demo:h") == ["demo:heart-rate"])
        #expect(try await served(folder["la"]) == [folder["lamp.txt"], folder["lamps"] + "/", folder["lantern"]])
        #expect(try await served(folder[".l"]) == [folder[".lamp"]])
        #expect(try await served(folder["$"]).isEmpty, "a shell would evaluate it")
    }

    @Test func whatIsWrittenAfterASubscriptionIsOffered() async throws {
        let words = ["blescan", "notify", "demo:uart", "nordic-uart-tx", "--after"]
        func written(_ word: String) async throws -> [String] {
            try await offered(["---completion", "notify", "--", "--after", "5", "\(word.count)"] + words + [word])
        }
        #expect(try await written("nordic-uart-r") == ["nordic-uart-rx="])
        #expect(try await written("nordic-uart-rx=6").isEmpty)
    }

    @Test func testedAdaptersAreOffered() async throws {
        let words = ["blescan", "selftest", "--adapter", "demo:bcm"]
        let offered = try await offered(["---completion", "selftest", "--", "--adapter", "3", "8"] + words)
        #expect(offered.contains("demo:bcm4378"), "\(offered)")
    }

    @Test func advertisedServicesAreOffered() async throws {
        let words = ["blescan", "read", "service:heart"]
        #expect(
            try await offered(["---completion", "read", "--", "positional@0", "2", "13"] + words)
                == ["service:heart-rate"])
        let pair = try await offered(["---completion", "pair", "--", "positional@0", "2", "1", "blescan", "pair", ""])
        #expect(pair.contains("demo:lock") && !pair.contains("name:"))
    }

    @Test(arguments: ["scan", "replay", "explore", "advertise"])
    func servicesAreOffered(_ command: String) async throws {
        let words = ["blescan", command, "--service", "Heart"]
        #expect(try await offered(["---completion", command, "--", "--service", "3", "5"] + words) == ["heart-rate"])
    }

    /// bash itself takes a colon as the end of a word.
    @Test(arguments: [
        ("blescan read demo:heart", "blescan read demo:heart-rate"),
        ("blescan read demo:uart nordic-uart-r", "blescan read demo:uart nordic-uart-rx"),
        ("blescan explore service:heart-r", "blescan explore service:heart-rate"),
        ("blescan explore --adapter hci0 demo:b", "blescan explore --adapter hci0 demo:battery"),
        ("blescan scan --service heart-r", "blescan scan --service heart-rate"),
        ("blescan serve demo:h", "blescan serve demo:heart-rate"), ("blescan help sel", "blescan help selftest"),
        (
            "blescan notify demo:uart nordic-uart-tx --after nordic-uart-r",
            "blescan notify demo:uart nordic-uart-tx --after nordic-uart-rx"
        ),
    ])
    func bashCompletesWordsWithColons(_ typed: String, _ completed: String) async throws {
        let script = Fixtures.folder.deletingLastPathComponent().appending(path: "Docs/completions/blescan.bash")
        let terminal = try PseudoTerminal(columns: 200)
        let shell = try RunningProgram(
            ["--norc", "--noprofile", "-i"], of: URL(filePath: "/bin/bash"), errors: terminal, keyboard: terminal,
            environment: ["PATH": BuiltProgram.url.deletingLastPathComponent().path + ":/usr/bin:/bin", "PS1": "> "])
        terminal.type("source '\(script.path)'; echo rea''dy\n")
        try await shell.printed("ready")
        terminal.type(typed + "\t")
        try await terminal.shown(completed)
        terminal.type("\u{15}exit\n")
        _ = try await shell.outcome()
    }

    /// fish shows the sentence about an option beside each value that has no description, not even an empty one.
    @Test func valuesInFishDoNotRepeatTheSentenceOfTheirOption() throws {
        let path = Fixtures.folder.deletingLastPathComponent().appending(path: "Docs/completions/blescan.fish")
        let script = try String(contentsOf: path, encoding: .utf8)
        let lines = script.split(separator: "\n").filter { $0.contains(/\ -rfk?a\ '[^']/) }
        #expect(lines.count > 20 && lines.allSatisfy { $0.hasSuffix(#"\t'"#) })
        #expect(script.contains(#" -rfka 'packet\t change\t device\t'"#))
    }

    @Test func scriptsAskForPeersAndAdapters() throws {
        let folder = Fixtures.folder.deletingLastPathComponent().appending(path: "Docs/completions")
        for name in ["_blescan", "blescan.bash", "blescan.fish"] {
            let script = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            #expect(script.contains("---completion read -- positional@0"), "\(name)")
            #expect(script.contains("---completion scan -- --adapter"), "\(name)")
            #expect(script.contains("---completion advertise -- --service"), "\(name)")
        }
    }
}
