/// The queue of a client's prepared writes, bounded by entries and bytes.
///
/// Spec: Core Vol 3 Part F, 3.4.6.
struct PreparedWrites: Sendable {
    /// One attribute that the queue writes: the joined parts, from `offset`.
    struct Joined: Sendable {
        let handle: AttributeHandle
        /// The offset at which the value begins; more than 0 if the first part continues the old value.
        let offset: Int
        var value: [UInt8]
    }

    private let entryLimit: Int
    private let byteLimit: Int
    private var entries: [ATTPrepareWriteRequest] = []
    /// The sum of the parts' lengths.
    private(set) var byteCount = 0
    /// Whether the services have changed since the first entry.
    private(set) var isStale = false
    /// The attributes of entries that a change of the services has affected since.
    private(set) var overtaken: Set<AttributeHandle> = []

    init(entryLimit: Int, byteLimit: Int) {
        self.entryLimit = entryLimit
        self.byteLimit = byteLimit
    }

    /// Adds a part. Returns `false` if there is no room.
    mutating func append(_ request: ATTPrepareWriteRequest) -> Bool {
        guard entries.count < entryLimit, byteCount + request.part.count <= byteLimit else { return false }
        entries.append(request)
        byteCount += request.part.count
        return true
    }

    /// The entries, in their order.
    var parts: [ATTPrepareWriteRequest] { entries }

    mutating func databaseChanged() {
        isStale = !entries.isEmpty
    }

    /// The services in `handles` have changed.
    mutating func databaseChanged(_ handles: ClosedRange<AttributeHandle>) {
        for entry in entries where handles.contains(entry.handle) { overtaken.insert(entry.handle) }
    }

    mutating func removeAll() {
        self = PreparedWrites(entryLimit: entryLimit, byteLimit: byteLimit)
    }

    /// Returns the value of each attribute, in the order of first parts.
    ///
    /// A part at offset 0 begins a new value, a later one continues what is there: the parts before it, or the value
    /// that the attribute has.
    ///
    /// - Parameter oldLength: Returns the length of an attribute's present value.
    /// - Returns: The values, or the handle of the first part that leaves a gap.
    func joined(oldLength: (AttributeHandle) -> Int) -> Result<[Joined], InvalidPart> {
        var values: [Joined] = []
        for entry in entries {
            let offset = Int(entry.offset)
            guard let index = values.firstIndex(where: { $0.handle == entry.handle }) else {
                guard offset <= oldLength(entry.handle) else { return .failure(InvalidPart(handle: entry.handle)) }
                values.append(Joined(handle: entry.handle, offset: offset, value: entry.part))
                continue
            }
            let start = values[index].offset
            guard offset >= start else {
                // It begins before the parts so far, and replaces them.
                values[index] = Joined(handle: entry.handle, offset: offset, value: entry.part)
                continue
            }
            guard offset - start <= values[index].value.count else {
                return .failure(InvalidPart(handle: entry.handle))
            }
            values[index].value = Array(values[index].value.prefix(offset - start)) + entry.part
        }
        return .success(values)
    }

    /// A part that begins after the end of the value.
    struct InvalidPart: Error {
        let handle: AttributeHandle
    }
}
