import ArgumentParser

/// When to use colours.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    case auto, always, never
}

/// `--color`, for every command with output for users.
struct ColorOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Colours: auto (on a terminal, unless NO_COLOR is set), always or never. (default: auto)",
            valueName: "when"))
    var color: ColorChoice?

    /// The look of lines on standard output.
    var look: ScreenLook {
        let choice = color ?? .auto
        return ScreenLook(choice == .auto && !Console.isTerminal ? .never : choice)
    }
}
