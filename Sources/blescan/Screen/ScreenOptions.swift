import ArgumentParser

/// The options of the live table.
struct ScreenOptions: ParsableArguments {
    @Flag(help: "Print lines on a terminal too, instead of the live table.")
    var plain = false

    @Option(help: ArgumentHelp("Colours in the live table.", valueName: "when"))
    var color = ColorChoice.auto
}
