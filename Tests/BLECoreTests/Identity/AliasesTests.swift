import BLECore
import Testing

@Suite struct AliasesTests {
    @Test func theSameValueKeepsItsNumber() {
        var aliases = Aliases<String>()
        #expect(["a", "b", "a", "c", "b"].map { aliases.number(of: $0) } == [1, 2, 1, 3, 2])
    }

    @Test func numbersContinueWhenThereAreTooMany() {
        var aliases = Aliases<Int>()
        for number in 1...70_000 where aliases.number(of: number) != number { Issue.record("\(number)") }
        #expect(aliases.number(of: 70_000) == 70_000)
        #expect(aliases.number(of: 70_001) == 70_001)
        // Forgotten, and no number is used twice.
        #expect(aliases.number(of: 1) == 70_002)
    }
}
