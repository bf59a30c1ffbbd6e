/// A reference that does not keep its object.
final class WeakReference: @unchecked Sendable {
    weak var object: AnyObject?
}
