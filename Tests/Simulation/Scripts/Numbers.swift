/// Random numbers that a seed repeats (SplitMix64). One seed gives many streams, so that a draw more in one of them
/// does not change what the others bring.
struct Numbers: RandomNumberGenerator {
    /// What a stream decides about.
    enum Stream: UInt64 {
        case world = 1
        case peers, applications, faults, schedule
        /// What one peer is, and what it does later; with its number.
        case device, conduct
        /// Other programs.
        case neighbours
        /// Bonds: the programs that have them, how the peers pair, and what becomes of both; with a peer's number plus
        /// one, how that peer pairs.
        case security
        /// The peripheral role; with a central's number plus one, what that central does.
        case serving
        /// Peers that lose their bonds, and connects that find it out.
        case lostBonds = 32
        /// What programs may do about adapters that have stopped reporting or responding.
        case recovery
        /// How many links the controllers can have.
        case linkLimits
        /// Which of them do not complete an attempt beyond that.
        case stalls
        /// Which of them lose the data of their links.
        case dataLosses
    }

    private var state: UInt64

    init(seed: UInt64, _ stream: Stream, _ number: Int = 0) {
        var mixer = Numbers(state: seed)
        state = mixer.next() ^ (stream.rawValue << 32 | UInt64(number)) &* 0xD6E8_FEB8_6659_FD93
        _ = next()
    }

    private init(state: UInt64) {
        self.state = state
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func pick(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &self)
    }

    mutating func chance(_ percent: Int) -> Bool {
        pick(0...99) < percent
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[pick(0...elements.count - 1)]
    }

    mutating func byte() -> UInt8 {
        UInt8(truncatingIfNeeded: next())
    }

    mutating func bytes(_ range: ClosedRange<Int>) -> [UInt8] {
        (0..<pick(range)).map { _ in byte() }
    }

    /// Some of the elements, each with an even chance.
    mutating func some<Element>(of elements: [Element]) -> [Element] {
        elements.filter { _ in chance(50) }
    }
}
