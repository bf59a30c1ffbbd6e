// The attributes of one peer, as a value: events of its link, keys and time go in, requests and lines come out.
//
// Duties: the tree of services, characteristics and descriptors with their values as they change; one attribute
// selected, by its handle; the line in which a value is typed; the command that is equivalent to the last key; what
// failed, and what to do next.
//
// Invariants:
// - A frame has exactly as many lines as the screen has rows, none is wider than the screen, and nothing in it can
//   control a terminal: every text passes `ScreenLine.add`.
// - No two rows have the same handle, whatever the peer declares.
// - There is at most one operation of an attribute at a time; the keys for another one wait for its end.
// - Without a link nothing is requested but a connection. In a recording nothing is requested at all, and a notice
//   states that.
// - What the peer has sent stays on the screen after the link has ended.
//
// The owner shows it and carries out its requests, see `LiveScreen` and `LinkDriver`; `BrowseView` draws its frames.

import BLECore
import BLEProfiles
import BareBLE

/// The screen of a peer's attributes.
struct BrowseScreen: Sendable {
    /// The link to the peer.
    enum Link: Hashable, Sendable {
        /// The beginning of a connection, and whether the peer is still scanned for.
        case connecting(since: BootInstant, isSearching: Bool)
        /// The attributes are being discovered.
        case discovering(mtu: Int)
        case connected(mtu: Int)
        /// There is none.
        case none
        /// What is shown was recorded.
        case recorded
    }

    /// The view that is shown.
    enum View: Hashable, Sendable {
        case tree
        /// The description of the keys, from a line of it on.
        case keys(line: Int)
    }

    /// What is known of the value of an attribute.
    struct Value: Sendable {
        /// The bytes, or why they cannot be read; `nil` before they were.
        fileprivate(set) var reading: AttributeTree.Reading?
        /// The number of values that the peer has sent.
        fileprivate(set) var count = 0
        /// The number of them that were dropped.
        fileprivate(set) var dropped = 0
        /// The time of the last change.
        fileprivate(set) var changed: BootInstant?
        /// The numbers of the values so far, the first one of each.
        fileprivate(set) var plot = ValuePlot()
        fileprivate(set) var isSubscribed = false
        /// Whether it was written since it was read or sent: what the peer made of that is not known.
        fileprivate(set) var isOutdated = false
        /// The last values that the peer has sent, the oldest first.
        fileprivate(set) var sent: [[UInt8]] = []
        /// The number of values that the peer had sent when the last write began.
        fileprivate var countAtWrite = 0
        /// The line that was typed for the last write.
        fileprivate(set) var lastTyped: String?
        /// The operation in progress.
        fileprivate var operation: Operation?
        /// Whether an operation is in progress.
        var isBusy: Bool { operation != nil }

        /// The sent values that are kept.
        private static let sentLimit = 3
    }

    /// A message about the last operation.
    enum Notice: Hashable, Sendable {
        case done(String)
        case failed(Failure)
    }

    /// The most characters of a typed line.
    private static let longestLine = 2048
    /// The signal strengths that are kept.
    private static let strengthLimit = 8

    /// The peer; `nil` if a recording does not have its address.
    let peer: PeerArgument?
    /// The given options of the link, as words of a command.
    private let linkOptions: [String]
    /// The name in the table, if it comes from there.
    var nameInTable: String?
    /// The title of a recorded link whose peer's address was not recorded.
    let linkTitle: String
    /// How far the recording is; `nil` for a link on air.
    var position: String?
    private(set) var area: ScreenArea
    private(set) var link: Link
    private(set) var view = View.tree
    private(set) var attributes: [AttributeRow] = []
    private var database = GATTDatabase()
    private var values: [AttributeHandle: Value] = [:]
    /// The handles of the services whose attributes are not shown.
    private var folded: Set<ClosedRange<AttributeHandle>> = []
    private(set) var selected: AttributeHandle?
    /// Whether the user has selected it.
    private var isChosen = false
    /// The first attribute that there was room for.
    private(set) var top = 0
    /// Whether values are shown as bytes.
    private var showsBytes = false
    /// The value that is typed; `nil` if none is.
    private(set) var typed: String?
    private(set) var notice: Notice?
    /// The last operation, while its attribute is selected.
    private var lastCommand: (handle: AttributeHandle, command: EquivalentCommand)?
    /// The last signal strengths of the link, in dBm, from the first known one on; `nil` where it was unknown.
    private(set) var strengths: [Int?] = []
    /// Whether there ever was a link.
    private(set) var wasConnected = false

    /// Creates a screen that waits for the link to `peer`.
    ///
    /// - Parameters:
    ///   - name: The name in the table.
    ///   - isRecorded: Whether it shows a recording, and there is no link.
    ///   - linkTitle: The title of a recorded link without an address.
    ///   - linkOptions: The given options of the link, as words of a command.
    init(
        _ peer: PeerArgument?, name: String? = nil, isRecorded: Bool = false, linkTitle: String = "a recorded link",
        linkOptions: [String] = [], in area: ScreenArea, at now: BootInstant
    ) {
        self.peer = peer
        self.linkOptions = linkOptions
        self.area = area
        nameInTable = name
        self.linkTitle = linkTitle
        link = isRecorded ? .recorded : .connecting(since: now, isSearching: peer?.isUntyped ?? false)
    }

    /// Returns what is known of the value of an attribute.
    func value(of handle: AttributeHandle) -> Value { values[handle] ?? Value() }

    /// The peer's own name, or that of the table.
    var name: String? {
        guard let row = attributes.first(where: { $0.type == 0x2A00 }),
            case .value(let bytes)? = values[row.handle]?.reading, let first = bytes.first, first != 0
        else { return nameInTable }
        // Many devices fill their names with zeros, and some have other bytes after these.
        return String(decoding: bytes.prefix(while: { $0 != 0 }), as: UTF8.self)
    }

    /// The attributes that are shown: all but those of folded services.
    var shown: [AttributeRow] {
        if folded.isEmpty { return attributes }
        return attributes.filter { row in
            row.kind == .service || !folded.contains { $0.contains(row.handle) }
        }
    }

    /// Returns whether an attribute is a service whose attributes are not shown.
    func isFolded(_ row: AttributeRow) -> Bool {
        row.kind == .service && folded.contains { $0.lowerBound == row.handle }
    }

    /// Returns the characteristic of a service that can be read; `nil` if it has none, or several.
    func onlyReadable(of service: AttributeRow) -> AttributeRow? {
        let handles = database.services.first { $0.handles.lowerBound == service.handle }?.handles
        let readable = attributes.filter { row in
            row.kind == .characteristic && row.properties.contains(.read) && handles?.contains(row.handle) == true
        }
        return readable.count == 1 ? readable.first : nil
    }

    /// The place of the selected attribute among those that are shown.
    var selectedPlace: Int? { selected.flatMap { handle in shown.firstIndex { $0.handle == handle } } }

    /// The selected attribute.
    var selectedRow: AttributeRow? { selected.flatMap { handle in attributes.first { $0.handle == handle } } }

    /// Returns the value of an attribute as text; `nil` if there is nothing to show.
    func text(of row: AttributeRow) -> ValueText? {
        switch values[row.handle]?.reading {
        case nil: return nil
        case .refused(let error): return ValueText(refusal: error, spelled: spelled)
        case .value(let bytes): return text(of: bytes, at: row)
        }
    }

    /// Returns a value of an attribute as text.
    func text(of bytes: [UInt8], at row: AttributeRow) -> ValueText {
        if showsBytes { return ValueText(bytes, nil, spelled: spelled) }
        guard let type = row.type else {
            return ValueText(bytes, ValueDescription.of(bytes, uuid: nil), spelled: spelled)
        }
        let meaning = database.meaning(of: bytes, at: row.handle, type) { descriptor in
            guard case .value(let bytes)? = values[descriptor]?.reading else { return nil }
            return bytes
        }
        return ValueText(bytes, meaning, spelled: spelled)
    }

    /// Returns a text in the characters of the terminal.
    private func spelled(_ text: String) -> String { ScreenText.shown(text, area.look) }

    /// The command that is equivalent to the last key, or that shows the selected attribute.
    var command: EquivalentCommand? {
        guard let row = selectedRow else { return nil }
        if let typed {
            guard let write = try? parsed(typed, for: row) else { return EquivalentCommand(about: row, of: target) }
            return writing(write.bytes, to: row, write.kind)
        }
        if let lastCommand, lastCommand.handle == row.handle { return lastCommand.command }
        return EquivalentCommand(about: row, of: target)
    }

    /// Returns the command for a write; with the values that the peer sends then, if any of the service are subscribed
    /// to, where that command writes in the same way.
    private func writing(
        _ bytes: [UInt8], to row: AttributeRow, _ kind: Peripheral.WriteKind
    ) -> EquivalentCommand {
        let handles = database.services.first { $0.handles.contains(row.handle) }?.handles
        let sent = attributes.map(\.handle).filter { handles?.contains($0) == true && value(of: $0).isSubscribed }
        let isUsual = row.properties.contains(.write) == (kind == .withResponse)
        guard row.kind == .characteristic, isUsual, !sent.isEmpty, !bytes.isEmpty else {
            return .writing(bytes, to: row.handle, of: target, kind)
        }
        return .subscribing(to: sent, writing: bytes, to: row.handle, of: target)
    }

    private var target: EquivalentCommand.Target {
        EquivalentCommand.Target(peer: peer?.description ?? "PEER", options: linkOptions)
    }

    /// The line of the last write to the selected attribute.
    var recalled: String? { selected.flatMap { value(of: $0).lastTyped } }

    /// Whether a value can be read or written now.
    var isConnected: Bool {
        if case .connected = link { return true }
        return false
    }
}

// MARK: - Events

extension BrowseScreen {
    /// Something has happened on the link.
    mutating func take(_ event: LinkEvent, at now: BootInstant) {
        switch event {
        case .found:
            if case .connecting(let since, _) = link { link = .connecting(since: since, isSearching: false) }
        case .connected(let mtu):
            if link != .recorded { link = .discovering(mtu: mtu) }
            wasConnected = true
            strengths = []
        case .discovered(let found):
            if case .discovering(let mtu) = link { link = .connected(mtu: mtu) }
            discovered(found)
        case .strength(let strength):
            // Where none was ever known, there may be no radio.
            guard strength != nil || !strengths.isEmpty else { return }
            strengths.append(strength)
            if strengths.count > Self.strengthLimit { strengths.removeFirst() }
        case .value(let handle, let bytes, let origin):
            show(handle)
            values[handle, default: Value()].take(bytes, origin, at: now)
            plot(bytes, at: handle)
        case .unreadable(let handle, let error):
            show(handle)
            values[handle, default: Value()].reading = .refused(error)
            values[handle]?.isOutdated = false
        case .written(let handle, let count, let kind):
            values[handle]?.written()
            let isConfirmed = kind == .withResponse
            let attribute = CharacteristicReference.handle(handle)
            notice = .done(
                isConfirmed
                    ? "wrote \(count.counted("byte")) to \(attribute)"
                    : "sent \(count.counted("byte")) to \(attribute), no response expected")
        case .subscribed(let handle): subscriptionChanged(handle, true, at: now)
        case .unsubscribed(let handle): subscriptionChanged(handle, false, at: now)
        case .failed(let handle, let failure, let mayBeCarriedOut):
            if mayBeCarriedOut, values[handle]?.operation == .write { values[handle]?.written() }
            values[handle]?.operation = nil
            notice = .failed(failure)
        case .ended(let failure):
            // A value that is being typed stays: its next digit would be a key, and d or c leave the screen or connect.
            link = .none
            for handle in values.keys {
                // The peer may have carried out a write that it has not responded to.
                if values[handle]?.operation == .write { values[handle]?.written() }
                values[handle]?.operation = nil
                // The peer keeps the configuration only of a client with a bond.
                if values[handle]?.isSubscribed == true { configured(handle, nil, at: now) }
                values[handle]?.isSubscribed = false
            }
            notice = failure.map { .failed($0) } ?? .done("disconnected; c connects again")
        }
    }

    /// Adds the number of a value to those of its attribute, if it has one.
    private mutating func plot(_ bytes: [UInt8], at handle: AttributeHandle) {
        // The bits of a descriptor are no measurements.
        guard let row = attributes.first(where: { $0.handle == handle }), row.kind == .characteristic,
            let type = row.type,
            let field = ValueDescription.of(bytes, uuid: type)?.fields.first(where: { $0.number != nil }),
            let number = field.number
        else { return }
        values[handle]?.plot.add(number, digits: field.json.text)
    }

    private mutating func discovered(_ found: GATTDatabase) {
        let former = Dictionary(
            attributes.compactMap { row in row.type.map { (row.handle, $0) } }, uniquingKeysWith: { first, _ in first })
        database = found
        // Two declarations may claim the same handle, by which an attribute is selected.
        var handles: Set<AttributeHandle> = []
        attributes = AttributeRow.rows(of: found.services, in: found).filter { handles.insert($0.handle).inserted }
        // After a change of its services the peer may have another attribute at a handle.
        for row in attributes {
            if let type = former[row.handle], type != row.type { values[row.handle] = nil }
        }
        if link == .recorded {
            addUnknown(at: values.keys.filter { handles.insert($0).inserted }.sorted())
        } else {
            values = values.filter { handles.contains($0.key) }
        }
        folded.formIntersection(found.services.map(\.handles))
        if isChosen, let selected, handles.contains(selected) { return }
        // What can be read or subscribed to is what users come for.
        let rows = shown
        selected = (rows.first { $0.kind == .characteristic } ?? rows.first)?.handle
        isChosen = false
        top = 0
    }

    /// Takes over what the user has chosen on the screen of the same recorded link at another time.
    mutating func resume(_ former: BrowseScreen) {
        (area, nameInTable, showsBytes, top) = (former.area, former.nameInTable, former.showsBytes, former.top)
        folded = former.folded.intersection(database.services.map(\.handles))
        guard former.isChosen, let handle = former.selected, attributes.contains(where: { $0.handle == handle }) else {
            return
        }
        selected = handle
        isChosen = true
    }

    /// Reports something that a key could not do, until the next key.
    mutating func report(_ text: String) {
        notice = .done(text)
    }

    /// A recorded client may have known an attribute without discovering it.
    private mutating func show(_ handle: AttributeHandle) {
        guard link == .recorded, !attributes.contains(where: { $0.handle == handle }) else { return }
        addUnknown(at: [handle])
        selected = selected ?? handle
    }

    /// Adds attributes of which only the handles are known, each in its place among the others. It is one pass: there
    /// may be thousands, and each discovery adds them again.
    private mutating func addUnknown(at handles: [AttributeHandle]) {
        var rest = handles[...]
        var all: [AttributeRow] = []
        for row in attributes {
            while let handle = rest.first, handle < row.handle {
                all.append(.unknown(at: handle))
                rest.removeFirst()
            }
            all.append(row)
        }
        attributes = all + rest.map { AttributeRow.unknown(at: $0) }
    }

    private mutating func subscriptionChanged(_ handle: AttributeHandle, _ isSubscribed: Bool, at now: BootInstant) {
        configured(handle, isSubscribed, at: now)
        values[handle, default: Value()].isSubscribed = isSubscribed
        values[handle]?.operation = nil
        let attribute = CharacteristicReference.handle(handle)
        notice = .done(isSubscribed ? "subscribed to \(attribute); s unsubscribes" : "unsubscribed from \(attribute)")
    }
}

extension BrowseScreen {
    /// A characteristic's Client Characteristic Configuration was written (Core Vol 3 Part G, 3.3.3.3), or is not known
    /// any longer. The library prefers notifications where the peer has both.
    private mutating func configured(_ handle: AttributeHandle, _ isSubscribed: Bool?, at now: BootInstant) {
        guard let characteristic = database.characteristic(valueHandle: handle),
            let descriptor = database.descriptors(of: characteristic).first(where: { $0.uuid == 0x2902 })
        else { return }
        if case .refused? = values[descriptor.handle]?.reading { return }
        var bytes: [UInt8]?
        switch isSubscribed {
        case true?: bytes = characteristic.properties.contains(.notify) ? [1, 0] : [2, 0]
        // The library subscribes to Service Changed for itself, and may go on.
        case false?: bytes = characteristic.uuid == 0x2A05 ? nil : [0, 0]
        case nil: bytes = nil
        }
        values[descriptor.handle, default: Value()].reading = bytes.map { AttributeTree.Reading.value($0) }
        values[descriptor.handle]?.changed = now
        values[descriptor.handle]?.isOutdated = false
    }
}

extension BrowseScreen.Value {
    fileprivate mutating func take(_ bytes: [UInt8], _ origin: LinkEvent.Origin, at now: BootInstant) {
        var former: [UInt8]?
        if case .value(let bytes)? = reading { former = bytes }
        switch origin {
        // All values are read once, at first, whatever else is in progress.
        case .read: if operation == .read { operation = nil }
        case .sent: keep(bytes)
        case .sentAfter(let lost):
            keep(bytes)
            dropped += lost
        }
        // The first one is no change.
        if former != nil && former != bytes || origin != .read { changed = now }
        reading = .value(bytes)
        isOutdated = false
    }

    /// The peer has sent a value.
    private mutating func keep(_ bytes: [UInt8]) {
        count += 1
        sent.append(bytes)
        if sent.count > Self.sentLimit { sent.removeFirst() }
    }

    fileprivate mutating func writeBegins(_ line: String) {
        operation = .write
        countAtWrite = count
        lastTyped = line
    }

    /// A write has ended, and may have changed the value.
    fileprivate mutating func written() {
        operation = nil
        // Some peers send the new value before their response.
        if case .value? = reading, count == countAtWrite { isOutdated = true }
    }
}

// MARK: - Keys

extension BrowseScreen: LiveContent {
    static let withoutScreen = "`blescan explore` prints lines."

    /// Text is selected to be copied here.
    var usesMouse: Bool { false }

    mutating func resize(columns: Int, rows: Int) {
        area.resize(columns: columns, rows: rows)
    }

    mutating func frame(at now: BootInstant) -> [ScreenLine] {
        let drawn = BrowseView(self, at: now).drawn
        // Otherwise the way back would be as long as the way beyond the end.
        switch view {
        case .tree: top = drawn.first
        case .keys: view = .keys(line: drawn.first)
        }
        return drawn.lines
    }

    /// Nothing changes by time alone.
    mutating func timePassed(at now: BootInstant) {}

    mutating func press(_ key: ScreenKey, at now: BootInstant) -> ScreenAction {
        if key == .redraw { return .redraw }
        if typed != nil { return type(key) }
        notice = nil
        if case .keys(let line) = view {
            view = key.scrolled(line, rows: area.rows).map { .keys(line: $0) } ?? .tree
            return .none
        }
        let rows = shown
        if let next = key.moved(from: selectedPlace, count: rows.count, page: max(1, area.rows / 2)) {
            selected = rows[next].handle
            isChosen = true
            return .none
        }
        switch key {
        case .escape, .character("q"), .character("d"): return .quit
        case .character("?"), .character("h"): view = .keys(line: 0)
        case .character("x"): showsBytes.toggle()
        case .character("y"):
            guard let command else { return .none }
            notice = .done("copied, where the terminal has a clipboard for programs (OSC 52)")
            return .copy(command.text)
        case .character("c"): return connect(at: now)
        case .enter, .character("r"): return request(.read)
        case .character("w"): return request(.write)
        case .character("s"), .character("n"): return request(.subscribe)
        case .left: fold()
        case .right: unfold()
        case .up, .down, .pageUp, .pageDown, .home, .end, .character, .backspace, .delete, .clear, .redraw, .click:
            break
        }
        return .none
    }

    /// The service that the selected attribute is or belongs to.
    private var selectedService: GATTService? {
        selected.flatMap { handle in database.services.first { $0.handles.contains(handle) } }
    }

    private mutating func fold() {
        guard let service = selectedService else { return }
        folded.insert(service.handles)
        // The selected attribute must be shown.
        selected = service.handles.lowerBound
        isChosen = true
    }

    private mutating func unfold() {
        guard let service = selectedService else { return }
        folded.remove(service.handles)
    }

    private mutating func connect(at now: BootInstant) -> ScreenAction {
        switch link {
        case .recorded:
            notice = .failed(Self.isRecording)
            return .none
        case .none:
            guard let peer else { return .none }
            link = .connecting(since: now, isSearching: peer.isUntyped)
            return .link(.connect(peer))
        case .connecting, .discovering, .connected: return .none
        }
    }

    /// An operation on the selected attribute.
    fileprivate enum Operation {
        case read, write, subscribe
    }

    private mutating func request(_ operation: Operation) -> ScreenAction {
        guard link != .recorded else {
            notice = .failed(Self.isRecording)
            return .none
        }
        guard isConnected else {
            if link == .none { notice = .failed(Self.isDisconnected) }
            return .none
        }
        guard let row = selectedRow, values[row.handle]?.isBusy != true else { return .none }
        guard row.kind == .characteristic || row.kind == .descriptor else {
            notice = .failed(
                Failure(
                    message: "\(CharacteristicReference.handle(row.handle)) has no value",
                    hint: "Select one of its characteristics.", status: .usage))
            return .none
        }
        switch operation {
        case .read:
            lastCommand = (row.handle, .reading(row.handle, of: target))
            values[row.handle, default: Value()].operation = .read
            return .link(.read(row.handle))
        case .write:
            if row.kind == .characteristic, !row.properties.canWrite {
                notice = .failed(Self.refusal("writable", of: row))
            } else {
                typed = ""
            }
            return .none
        case .subscribe:
            guard row.properties.canSubscribe else {
                notice = .failed(Self.refusal("sent by the peer", of: row))
                return .none
            }
            let isSubscribed = values[row.handle]?.isSubscribed == true
            values[row.handle, default: Value()].operation = .subscribe
            if !isSubscribed { lastCommand = (row.handle, .subscribing(to: row.handle, of: target)) }
            return .link(isSubscribed ? .unsubscribe(row.handle) : .subscribe(row.handle))
        }
    }

    private mutating func type(_ key: ScreenKey) -> ScreenAction {
        guard var line = typed else { return .none }
        switch key {
        case .character(let scalar):
            guard !scalar.isUnprintable, line.unicodeScalars.count < Self.longestLine else { return .none }
            line.unicodeScalars.append(scalar)
            typed = line
        case .backspace:
            guard !line.isEmpty else {
                typed = nil
                break
            }
            line.unicodeScalars.removeLast()
            typed = line
        case .clear: typed = ""
        case .escape: typed = nil
        case .enter: return write(line)
        case .up:
            guard let last = recalled else { return .none }
            typed = last
        case .down, .left, .right, .pageUp, .pageDown, .home, .end, .delete, .redraw, .click: return .none
        }
        notice = nil
        return .none
    }

    private mutating func write(_ line: String) -> ScreenAction {
        guard let row = selectedRow else { return .none }
        guard isConnected else {
            notice = .failed(Self.isDisconnectedInLine)
            return .none
        }
        do {
            let (bytes, kind) = try parsed(line, for: row)
            typed = nil
            notice = nil
            lastCommand = (row.handle, writing(bytes, to: row, kind))
            values[row.handle, default: Value()].writeBegins(line)
            return .link(.write(row.handle, bytes, kind))
        } catch {
            // The line stays, to be corrected.
            notice = .failed(error)
            return .none
        }
    }

    /// Parses a typed value: bytes, or the options of `blescan write`.
    private func parsed(
        _ line: String, for row: AttributeRow
    ) throws(Failure) -> (bytes: [UInt8], kind: Peripheral.WriteKind) {
        let attribute = CharacteristicReference.handle(row.handle).description
        let empty = Failure(message: "there is no value", hint: Self.forms, status: .usage)
        guard line.contains(where: { !$0.isWhitespace }) else { throw empty }
        let operation: TalkOperation?
        do throws(Failure) {
            operation = try TalkOperation("write \(attribute) \(line)")
        } catch {
            // Bytes need no option.
            let message = ["write: ", line.contains("--hex") ? "" : "--hex: "].reduce(error.message) {
                $0.dropped(prefix: $1) ?? $0
            }
            throw Failure(message: message, hint: Self.forms, status: .usage)
        }
        guard case .write(_, let value, let given)? = operation else { throw empty }
        // A screen is a value: it reads no files.
        guard value.file == nil else {
            throw Failure(
                message: "a value from a file cannot be typed here",
                hint: "`\(EquivalentCommand.writingFile(to: row.handle, of: target).text)` writes it.", status: .usage)
        }
        do {
            let bytes = try value.bytes()
            let isCommand = row.kind == .characteristic && !row.properties.contains(.write)
            return (bytes, isCommand ? .withoutResponse : given)
        } catch {
            throw Failure(message: "\(error)", hint: Self.forms, status: .usage)
        }
    }

    // MARK: Texts

    static let forms = "Type bytes such as 05a0, or --text hi, --u16 500."
    private static let isRecording = Failure(
        message: "this is a recording: nothing can be read, written or connected to",
        hint: "It shows what was transferred when it was recorded.", status: .usage)
    private static let isDisconnected = Failure(
        message: "there is no link", hint: "c connects again.", status: .linkLost)
    private static let isDisconnectedInLine = Failure(
        message: "there is no link", hint: "Esc, then c, connects again.", status: .linkLost)

    private static func refusal(_ what: String, of row: AttributeRow) -> Failure {
        let properties = row.properties.words.isEmpty ? "none" : row.properties.words
        return Failure(
            message: "\(CharacteristicReference.handle(row.handle)) is not \(what)",
            hint: row.kind == .descriptor ? "Select the characteristic." : "Its properties: \(properties).",
            status: .usage)
    }
}

extension PeerArgument {
    /// Whether the peer is scanned for first, to learn the type of its address.
    var isUntyped: Bool {
        if case .address(_, nil) = self { return true }
        return false
    }
}
