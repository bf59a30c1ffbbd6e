import BLECore

extension ScanScreen {
    /// Returns the source, the mode, the counts, and the keys. If there is no room for all, the key to quit stays
    /// longest, then the number of devices; the source is clipped before the mode is removed.
    func headingLine(at now: BootInstant) -> ScreenLine {
        let counts = [devices.count.counted("device"), "\(rate.perSecond(at: now)) adv/s", "\(lossCount) lost"]
        let least = [counts[0], counts[2]]
        let (all, some, quit) = ("q quit · s sort · / filter · r raw · ? keys", "? keys · q quit", "q quit")
        let whole =
            [[heading.source, heading.address].compactMap(\.self).joined(separator: " "), heading.mode] + counts
        let forms: [(leastSource: Int?, parts: [String], keys: String)] = [
            (nil, whole, all), (nil, whole, some), (24, [heading.mode] + counts, some),
            (12, [heading.mode] + counts, quit), (8, [heading.mode] + least, quit), (nil, [heading.mode] + least, quit),
            (nil, [heading.brief].compactMap(\.self) + counts, quit),
            (nil, [heading.brief].compactMap(\.self) + least, quit), (nil, least, quit), (nil, [counts[0]], quit),
        ]
        for form in forms {
            var parts = form.parts
            var needed = parts.reduce(0) { $0 + ScreenText.width(ScreenText.shown($1, look)) + 2 } + form.keys.count
            if let leastSource = form.leastSource {
                let source = ScreenText.shown(heading.source, look)
                let room = min(24, columns - needed - 2)
                guard room >= min(leastSource, ScreenText.width(source)) else { continue }
                parts.insert(ScreenText.clipped(source, to: room, look), at: 0)
                needed += ScreenText.width(parts[0]) + 2
            }
            guard needed <= columns else { continue }
            var line = self.line(parts.joined(separator: "  "), .bold)
            line.add(form.keys, .dim, column: columns - line.width, isRightAligned: true)
            return line
        }
        return line(quit, .dim)
    }
}
