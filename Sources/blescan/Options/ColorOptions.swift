import ArgumentParser

/// When to use colours.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    case auto, always, never

    /// Returns the last choice in a command line, also in one that the parser refuses; `nil` if there is none.
    init?(in arguments: ArraySlice<String>) {
        let words = ValueOptions.withoutTexts(arguments).prefix { $0 != "--" }
        var value: String?
        for (word, next) in zip(words, words.dropFirst() + [""]) {
            if word == "--color" { value = next } else if let text = word.dropped(prefix: "--color=") { value = text }
        }
        guard let choice = value.flatMap({ ColorChoice(rawValue: $0) }) else { return nil }
        self = choice
    }
}

/// `--color`, for every command; for messages, `Console` looks for it.
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
