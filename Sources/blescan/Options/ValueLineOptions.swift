import ArgumentParser

/// The form of lines with values, for `read`, `notify` and `watch`.
struct ValueLineOptions: ParsableArguments {
    /// The output formats.
    enum Format: String, ExpressibleByArgument, CaseIterable, Sendable {
        case plain, json, csv
    }

    @Flag(help: "Print the bytes only.")
    var hexOnly = false

    @Option(help: ArgumentHelp("Output format: plain, json or csv.", valueName: "form"))
    var format: Format?

    @OptionGroup var color: ColorOptions

    /// - Throws: `ValidationError` for two different forms.
    func validate(json: Bool) throws {
        if json, let format, format != .json {
            throw ValidationError("--json is --format json; leave it out, or --format \(format.rawValue).")
        }
        if hexOnly, json || (format ?? .plain) != .plain {
            throw ValidationError(
                "--hex-only prints no \(json ? "json" : (format ?? .plain).rawValue); leave one of them out.")
        }
    }

    /// The form of the lines.
    func form(json: Bool) -> OperationOutput.Form {
        if hexOnly { return .hex }
        return switch format {
        case .json: .json
        case .csv: .csv
        case .plain, nil: json ? .json : .plain
        }
    }

    /// How the lines look.
    var look: ScreenLook { color.look }

    /// Returns the lines about values of a peer.
    func lines(of peer: PeerArgument, json: Bool) -> OperationOutput {
        OperationOutput(peer: peer.description, form: form(json: json), look: look, columns: { Console.resultWidth })
    }
}

/// `--plot`, for commands whose values come again and again.
struct PlotOptions: ParsableArguments {
    @Flag(help: "Draw the numbers as a row of blocks; on a terminal the line is rewritten.")
    var plot = false

    /// - Throws: `ValidationError` for a form that has no room for a row.
    func validate(with values: ValueLineOptions, json: Bool) throws {
        guard plot else { return }
        switch values.form(json: json) {
        case .plain: break
        case .hex: throw ValidationError("--plot draws lines for users; leave out --hex-only.")
        case .csv: throw ValidationError("--plot draws lines for users; leave out --format csv.")
        case .json:
            throw ValidationError("--plot draws lines for users; leave out \(json ? "--json" : "--format json").")
        }
    }

    /// The plots of values of this number of attributes; `nil` without `--plot`.
    func plots(of count: Int, look: ScreenLook) -> PlotOutput? {
        guard plot else { return nil }
        let isRewriting = count == 1 && Console.isTerminal && Terminal.limitation == nil
        return PlotOutput(look: look, in: isRewriting ? Console.plotLine : nil)
    }
}
