import BLECore
import Testing

@testable import blescan

/// The message about a command line that the parser refuses.
@Suite struct CommandWordsTests {
    private func failure(_ words: String...) throws -> Failure? {
        try #require(CommandWords(words[...])).failure
    }

    @Test func anUnknownOptionIsNamedBeforeItsValue() throws {
        #expect(try failure("read", "demo:battery", "2a19", "--watch", "1s")?.message == "unknown option --watch")
        #expect(try failure("notify", "demo:battery", "2a19", "-x", "2")?.message == "unknown option -x")
        #expect(try failure("scan", "--tea=green")?.message == "unknown option --tea")
        #expect(try failure("--tea")?.message == "unknown option --tea")
    }

    @Test func onlyNearOptionsAreSuggested() throws {
        #expect(try failure("read", "--jsno")?.hint == "Did you mean --json?")
        #expect(try failure("notify", "--raw")?.hint == "`blescan notify --help` lists the options.")
        #expect(try failure("replay", "--for")?.hint == "`blescan replay --help` lists the options.")
        #expect(try failure("scan", "-t", "5")?.hint == "Did you mean --for?")
        #expect(try failure("scan", "-c", "5")?.hint == "Did you mean --count?")
        #expect(try failure("replay", "x", "-w")?.hint == "`blescan replay --help` lists the options.")
    }

    @Test func theTimeOfDoctorIsThatOfItsScanAlone() throws {
        #expect(try failure("doctor", "--timeout", "5")?.hint == "`blescan doctor --help` lists the options.")
    }

    @Test func valuesOfOptionsAreNotOptions() throws {
        #expect(try failure("write", "demo:uart", "0x0008", "--text", "--tea") == nil)
        #expect(try failure("scan", "--min-rssi", "-70", "--count", "-1") == nil)
        #expect(try failure("decode", "--", "--tea") == nil)
        #expect(try failure("decode", "-") == nil)
        #expect(try failure("notify", "demo:battery", "2a19", "-n", "2", "-j") == nil)
        #expect(try failure("scan", "-h") == nil)
        #expect(try failure("scan", "--name", "read") == nil)
    }

    @Test(arguments: [
        ("watch demo:battery 2a19 -jn1", "watch demo:battery 2a19 -j -n 1"), ("watch x y -n10", "watch x y -n 10"),
        ("read x y -jvt 5", "read x y -j -v -t 5"), ("-jn1", "-j -n 1"), ("watch x y -jn -1", "watch x y -j -n -1"),
        ("write x y --text -jn1", "write x y --text -jn1"), ("talk x -- -jn1", "talk x -- -jn1"),
        ("watch x y -n=1", "watch x y -n=1"), ("watch x y -jx1", "watch x y -jx1"),
        ("scan --min-rssi -70", "scan --min-rssi -70"),
        ("read x - -j", "read x - -j"),
    ])
    func shortOptionsMayBeJoined(_ line: String, _ apart: String) {
        let words = line.split(separator: " ").map(String.init)
        #expect(CommandWords.apart(words[...]).joined(separator: " ") == apart)
    }

    @Test func theUnknownOneOfJoinedOptionsIsNamed() throws {
        #expect(try failure("watch", "demo:battery", "2a19", "-jx1")?.message == "unknown option -x")
        #expect(try failure("watch", "demo:battery", "2a19", "-jnx") == nil, "that is the value of -n")
    }

    @Test func joinedOptionsAskForObjectsToo() async throws {
        let outcome = try await BuiltProgram.run(["read", "demo:battery", "2a6e", "-vj"])
        #expect(outcome.status == 1 && outcome.errors.contains("{\"v\":1,\"error\":"))
        let value = try await BuiltProgram.run(["watch", "demo:battery", "2a19", "-jn1"])
        #expect(try value.objects().count == 1)
    }

    @Test func optionsBeforeTheCommandAreMisplaced() throws {
        let failure = try failure("--json", "explore", "demo:battery")
        #expect(failure?.message == "options go after the command")
        #expect(failure?.hint == "Write `blescan explore demo:battery --json`.")
        #expect(
            try self.failure("--timeout", "5", "explore", "demo:battery")?.message == "options go after the command")
        #expect(try self.failure("-jv", "explore", "demo:battery")?.hint == "Write `blescan explore demo:battery -jv`.")
        #expect(try self.failure("--tea")?.hint == "`blescan scan --help` lists the options.")
    }

    /// The corrected line would be refused too.
    @Test(arguments: [
        ("--nosuch explore demo:battery", "--nosuch", "`blescan explore --help` lists the options."),
        ("--timout 5 explore demo:battery", "--timout", "Did you mean --timeout?"),
        ("--json --count 5 explore demo:battery", "--count", "`blescan explore --help` lists the options."),
        ("-jx read demo:battery 2a19", "-x", "`blescan read --help` lists the options."),
    ])
    func optionsThatTheCommandDoesNotHaveAreNotPutAfterIt(_ line: String, _ option: String, _ hint: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let failure = try #require(CommandWords(words[...])).failure
        #expect(failure?.message == "unknown option \(option)" && failure?.hint == hint)
    }

    @Test func aPeerIsNoArgumentOfAScan() throws {
        #expect(
            try failure("scan", "name:Therm*")?.hint
                == "Write `blescan scan --name Therm` to hear it alone, or `blescan explore 'name:Therm*'` for its "
                + "attributes.")
        #expect(try failure("scan", "name:-x")?.hint?.hasPrefix("Write `blescan scan --name=-x` ") == true)
        #expect(try failure("scan", "demo:battery")?.hint == "Write `blescan explore demo:battery` for its attributes.")
        let none = try failure("scan", "demo:nope")
        #expect(none?.message == "a scan takes no peer, and there is no demo:nope")
        #expect(
            none?.hint
                == "The virtual devices are demo:heart-rate, demo:battery, demo:uart, demo:long-value, demo:lock.")
        #expect(try failure("scan", "--address", "AA:BB:CC:DD:EE:FF") == nil, "that is the value of an option")
        #expect(try failure("read", "demo:battery", "2a19") == nil)
    }

    @Test func aLineThatEndsTooEarlyNamesWhatIsNext() throws {
        let peer = try failure("explore")
        #expect(
            peer?.message == "missing expected argument '<peer>'" && peer?.hint?.contains("demo:heart-rate") == true)
        #expect(try failure("pair", "--json")?.hint?.contains("demo:lock") == true)
        #expect(try failure("forget")?.hint == "`blescan bonds` lists the peers with a bond.")
        #expect(try failure("serve")?.hint?.contains("demo:heart-rate") == true)
        let attribute = try failure("read", "name:Therm*", "--timeout", "5")
        #expect(attribute?.message == "missing expected argument '<attribute> ...'")
        #expect(attribute?.hint == "`blescan explore 'name:Therm*'` lists what the peer has.")
        #expect(try failure("write", "demo:uart", "--hex", "00")?.message == "missing expected argument '<attribute>'")
        // What is wrong with the peer is more important.
        #expect(try failure("read", "kitchen") == nil)
        for command in ["read", "notify", "write"] {
            let absent = try failure(command, "demo:clear")
            #expect(absent?.message == "there is no demo:clear")
            #expect(absent?.hint == "The virtual devices are \(VirtualPeer.names).")
        }
        #expect(try failure("read", "demo:batery", "tea-making")?.hint == "Did you mean demo:battery?")
        #expect(try failure("watch", "demo:clear", "rssi")?.message == "there is no demo:clear")
        #expect(try failure("replay") == nil)
        #expect(try failure("watch") == nil)
        #expect(try failure("doctor", "--for", "soon") == nil)
        // And so is the value of an option that has taken the peer in its place.
        #expect(try failure("explore", "--timeout", "demo:battery") == nil)
        #expect(try failure("explore", "--timeout", "5")?.message == "missing expected argument '<peer>'")
    }

    @Test func aWordThatIsMeantAsAnOptionBecomesOne() throws {
        for command in ["scan", "explore", "doctor"] {
            let failure = try failure(command, "hci1")
            #expect(failure?.message == "hci1 is an adapter" && failure?.hint == "Write `--adapter hci1`.")
        }
        #expect(try failure("scan", "10")?.hint == "Write `--for 10` for a time.")
        #expect(try failure("scan", "1m30s", "--json")?.hint == "Write `--for 1m30s` for a time.")
        #expect(try failure("scan", "kitchen") == nil)
        #expect(try failure("advertise", "My lamp")?.hint == "Write `--name 'My lamp'` for the device's name.")
        #expect(try failure("advertise", "My", "lamp", "--json")?.hint?.hasPrefix("Write `--name 'My lamp'` ") == true)
        #expect(try failure("bonds", "remove")?.hint == "`blescan forget PEER` removes a bond.")
    }

    /// A wrong suggestion is worse than none.
    @Test func aWordThatIsMeantOtherwiseIsNotForced() throws {
        let service = try failure("scan", "180d")
        #expect(service?.hint == "Write `--service 180d` for the devices that advertise it.", "and not for 180 days")
        #expect(try failure("scan", "1800")?.hint == "Write `--for 1800` for a time.")
        #expect(
            try failure("advertise", "demo:uart")?.hint == "`blescan serve demo:uart` serves a virtual device.")
        #expect(try failure("advertise", "--name", "My", "lamp") == nil)
        #expect(try failure("advertise", "--service", "180d", "180f") == nil)
        #expect(try failure("bonds", "list") == nil)
        #expect(try failure("bonds", "AA:BB:CC:DD:EE:FF") == nil)
        #expect(
            try failure("read", "--device", "AA:BB:CC:DD:EE:FF", "2a19")?.hint
                == "`blescan read --help` lists the options.")
    }

    @Test func optionsOfOtherToolsAreKnown() throws {
        #expect(try failure("scan", "--timeout", "5")?.hint == "Did you mean --for?")
        #expect(try failure("scan", "--uuid", "180f")?.hint == "Did you mean --service?")
        #expect(try failure("explore", "demo:battery", "--verbose")?.hint == "Did you mean --trace?")
        // Where there is no such option, the list helps.
        #expect(try failure("decode", "--verbose")?.hint == "`blescan decode --help` lists the options.")
    }

    @Test(arguments: [
        ("aabb.ccdd.eeff", "did you mean AA:BB:CC:DD:EE:FF?"), ("AA_BB_CC_DD_EE_FF", "did you mean AA:BB:CC:DD:EE:FF?"),
        ("/tmp/belt", "did you mean unix:/tmp/belt?"), ("2a19", "that is an attribute; name the peer"),
        ("battery-level", "that is an attribute; name the peer"), ("180f", "did you mean service:180f or name:180f?"),
        ("battery", "did you mean demo:battery, service:battery or name:battery?"),
        ("beef", "did you mean service:beef or name:beef? An attribute comes after its peer."),
        ("6e400003-b5a3-f393-e0a9-e50e24dcca9e", "that is an attribute; name the peer"),
        ("./street.btsnoop", "that is a recording; `blescan replay` reads it."),
        ("kitchen", "write AA:BB:CC:DD:EE:FF"),
        ("AA:BB:CC:DD:EE", "write AA:BB:CC:DD:EE:FF"),
    ])
    func whatIsMeantAsAPeerIsSuggested(_ text: String, _ words: String) throws {
        let error = try #require(throws: BadValue.self) { try PeerDesignation(argument: text) }
        #expect(error.description.hasPrefix(words), "\(error)")
    }

    @Test(arguments: [
        (["05", "a0"], "Write `--hex '05 a0'` for bytes, or `--text '05 a0'` for a text."),
        (["good", "day"], "Write `--text 'good day'` for a text."), ([""], "Write `--text ''` for a text."),
        ([#"C:\new"#], #"Write `--text 'C:\\new'` for a text."#), (["a\nb"], #"Write `--text 'a\nb'` for a text."#),
    ])
    func aValueWithoutAFormIsSuggestedWhole(_ words: [String], _ hint: String) throws {
        let failure = try #require(CommandWords((["write", "demo:uart", "0x0008"] + words)[...])).failure
        #expect(failure?.hint == hint)
    }

    @Test(arguments: [
        ("read demo:battery tea-making", "`blescan explore demo:battery` lists what the peer has."),
        ("read demo:battery batery-level", "Did you mean battery-level?"),
        (
            "write demo:battery battery --hex 00",
            "Name one of its characteristics; `blescan explore demo:battery` lists them."
        ),
        ("notify demo:battery 20 --count 1", "Did you mean 0x0014?"),
        ("explore heart-rate", "Did you mean demo:heart-rate, service:heart-rate or name:heart-rate?"),
        ("browse DEMO:Battery", "Did you mean demo:battery?"),
        ("read AA:BB:CC:DD:EE:FF/Random 2a19", "Did you mean AA:BB:CC:DD:EE:FF/random?"),
        ("read 2a19 demo:battery --json", "Write `blescan read demo:battery 2a19 --json`."),
        ("explore demo:battery read 2a19", "Write `blescan read demo:battery 2a19`."),
        ("explore demo:lock --json pair", "Write `blescan pair demo:lock --json`."),
        ("watch demo:battery 2a19 rssi", "Leave out `rssi`."),
        ("watch demo:battery rssi", "Name a value; `blescan explore demo:battery` lists them."),
        ("write demo:uart 0x0008 --hex 05 a0", "Write `--hex '05 a0'` for all of it."),
        ("write demo:uart 0x0008 --text good day --json", "Write `--text 'good day'` for all of it."),
        ("decode --hex 04 3e 01", "Write `--hex '04 3e 01'` for all of it."),
        ("write demo:uart 0x0008 --uint8 300", "Did you mean --u8?"),
        ("selftest demo:csr8510", "Write `--adapter demo:csr8510`."),
        ("doctor demo:csr8510", "`blescan selftest --adapter demo:csr8510` tests a virtual adapter."),
        ("doctor demo:battery", "Write `--connect demo:battery` to connect to it as well."),
    ])
    func theHintSaysWhatToWrite(_ line: String, _ hint: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let failure = try #require(CommandWords(words[...])).failure
        #expect(failure?.hint == hint)
    }

    /// What the parser has refused is another word.
    @Test(arguments: [
        "write --hex 05 demo:uart 2a19", "write demo:uart 0x0008 --hex 01 extra", "decode --hex 04 lines.txt",
        "read kitchen 2a19", "watch AA:BB:CC:DD:EE:FF rssi --hex-only", "read demo:battery battery --raw",
        "talk demo:uart read", "explore demo:battery kitchen",
    ])
    func aLineWithoutSuchAMistakeHasNoSuchHint(_ line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let failure = try #require(CommandWords(words[...])).failure
        #expect(failure == nil)
    }

    @Test func aNameThatIsNearThatOfAVirtualDeviceIsSuggested() {
        #expect(VirtualPeer.advice(for: "heart-rat") == "Did you mean demo:heart-rate?")
        #expect(VirtualPeer.advice(for: "Heart-Rate") == "Did you mean demo:heart-rate?")
        #expect(VirtualPeer.advice(for: "toaster") == "The virtual devices are \(VirtualPeer.names).")
        #expect(SelfTestDemo.advice(for: "intelax200") == "Did you mean demo:intelAX200?")
        #expect(SelfTestDemo.advice(for: "toaster") == "The virtual adapters are \(SelfTestDemo.names).")
    }

    @Test func whatIsSuggestedIsQuotedForAShell() throws {
        #expect(
            try failure("--json", "talk", "demo:uart", "read 2a00", "explore")?.hint
                == "Write `blescan talk demo:uart 'read 2a00' explore --json`.")
        #expect(
            try failure("-j", "write", "name:Therm*", "fff1", "--text", "it's")?.hint
                == "Write `blescan write 'name:Therm*' fff1 --text 'it'\\''s' -j`.")
    }
}

/// The values of filters.
@Suite struct FilterArgumentTests {
    @Test(arguments: ["004c", "4c", "0x4c", "0x004C", "apple", "Apple, Inc.", "APPLE INC"])
    func aCompanyHasSeveralSpellings(_ text: String) throws {
        #expect(try CompanyArgument(argument: text).number == 0x004C)
    }

    @Test func swappedBytesAreNoticed() throws {
        let error = try #require(throws: BadValue.self) { try CompanyArgument(argument: "4c00") }
        #expect(error.description.hasPrefix("4c00 is not assigned; did you mean 004c, Apple, Inc.?"))
        #expect(try CompanyArgument(argument: "0x4c00").number == 0x4C00)
        #expect(try CompanyArgument(argument: "ffff").number == 0xFFFF)
    }

    @Test(arguments: ["", "12345", "0x", "-1", "+1", "tea", "0x12g4"]) func otherTextsAreNone(_ text: String) {
        #expect(throws: BadValue.self) { try CompanyArgument(argument: text) }
    }

    @Test func severalCompaniesAreListed() throws {
        let error = try #require(throws: BadValue.self) { try CompanyArgument(argument: "appl") }
        #expect(error.description.contains("004c Apple, Inc."))
    }

    @Test func anAddressMayHaveAType() throws {
        let address = try AddressArgument(argument: "aa:bb:cc:dd:ee:ff/random")
        #expect(address.address.description == "AA:BB:CC:DD:EE:FF" && address.type == .random)
        #expect(try AddressArgument(argument: "AA:BB:CC:DD:EE:FF").type == nil)
        for text in ["zz", "AA:BB", "AA:BB:CC:DD:EE:FF/tea"] {
            let error = try #require(throws: BadValue.self) { try AddressArgument(argument: text) }
            #expect(error.description.hasPrefix("write AA:BB:CC:DD:EE:FF"))
        }
    }

    @Test func strengthIsNegative() throws {
        #expect(try RSSIArgument.parse("-70") == -70)
        let error = try #require(throws: BadValue.self) { try RSSIArgument.parse("70") }
        #expect(error.description == "RSSI is negative; did you mean -70?")
        for text in ["500", "-200", "tea"] {
            let error = try #require(throws: BadValue.self) { try RSSIArgument.parse(text) }
            #expect(error.description == "it takes dBm from -128 to 0.", "what is refused is not in the range")
        }
    }

    @Test func anAddressThatIsCutOffIsNoCommand() async throws {
        let outcome = try await BuiltProgram.run(["AA:BB:CC:DD:EE"])
        #expect(outcome.status == 64)
        #expect(
            outcome.errors == "blescan: 'AA:BB:CC:DD:EE' is neither a command nor an address\n"
                + "hint: An address has six pairs of digits, as AA:BB:CC:DD:EE:FF.\n")
    }
}
