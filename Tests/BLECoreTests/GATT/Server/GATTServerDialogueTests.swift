import TestSupport
import Testing

/// What BlueZ's unit tests expect of a server: Fixtures/gatt/server-dialogues.txt.
@Suite("GATT server: BlueZ's dialogues") struct GATTServerDialogueTests {
    @Test(
        "the server sends what they expect, unless the specification requires something else",
        arguments: ServerDialogue.all)
    func theServerSendsWhatTheDialogueExpects(_ dialogue: ServerDialogue) throws {
        #expect(try dialogue.differences() == ServerDialogue.deviations[dialogue.name]?.differences ?? [])
    }

    @Test("there are 90 of the test suite, so many of each group, and 3 of robustness")
    func allDialoguesOfTheTestSuiteAreThere() throws {
        let dialogues = try ServerDialogue.read()
        #expect(
            Dictionary(grouping: dialogues, by: \.group).mapValues(\.count)
                == ["GAC": 1, "GAD": 19, "GAR": 34, "GAW": 34, "GAN": 1, "GAI": 1, "robustness": 3])
        let names = Set(dialogues.map(\.name))
        #expect(names.count == 93)
        #expect(names.isSuperset(of: ServerDialogue.deviations.keys))
    }

    @Test("a changed bit in any response is found", arguments: ServerDialogue.all)
    func changedResponse(_ dialogue: ServerDialogue) throws {
        let differences = try dialogue.differences()
        var number = 0
        while let changed = dialogue.changing(response: number) {
            #expect(try changed.differences() != differences)
            number += 1
        }
        #expect(number > 0)
    }
}
