import ArgumentParser
import BLECore
import BareBLE

struct Bonds: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the bonds.",
        usage: "blescan bonds [--bonds <dir>] [--utc] [--color <when>] [--json]",
        discussion: """
            EXAMPLES
              blescan bonds
              sudo blescan bonds --json
              blescan bonds --bonds /var/lib/gateway/bonds

            Those of all adapters, also while another program uses them. No key is
            shown. A line with `rejected by the peer` is a bond that the peer has lost:
            forget it, and pair again.

            A warning names the files to which damaged bonds were moved. As long as
            they are there, no command connects to a device without a bond, unless
            --pair or --no-bond specifies how, and no program pairs one on demand. Pair
            what is missing, then remove the files.
            """)

    @OptionGroup var bonds: BondOptions

    @OptionGroup var times: TimeOptions

    @OptionGroup var color: ColorOptions

    @Flag(name: [.long, .customShort("j")], help: "Print one JSON object per line.")
    var json = false

    func run() throws {
        let directory = try BondDirectory(bonds)
        let stored = try directory.stored()
        let all = stored.flatMap(\.bonds)
        let look = color.look
        for bond in all { Console.out(json ? bond.json().text : bond.line.painted(look)) }
        for error in stored.compactMap(\.movedAside) { Console.warn(error.description) }
        let damage = stored.compactMap(\.damage)
        for error in damage.dropLast() { Console.warn(error.description) }
        if let error = damage.last { throw error }
        guard all.isEmpty else { return }
        throw Failure(
            message: "there are no bonds in \(directory.path)", hint: "`blescan pair` makes one.", status: .notFound)
    }
}

extension StoredBonds {
    /// The bonds, without keys.
    var bonds: [Bond] { records.map { Bond($0, adapter: adapter) } }
}
