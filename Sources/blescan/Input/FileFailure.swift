import BLELinux
import Glibc

extension Failure {
    /// The use of a file.
    enum FileUse { case reading, writing }

    /// The system cannot open, read or create the file at `path`, which the user has named; `verb` is the failed
    /// action.
    init(cannot verb: String, _ path: String, for use: FileUse, errno: Int32, advice: String = "Check the path.") {
        let reason = unsafe String(cString: strerror(errno))
        let message = "cannot \(verb) \(path): \(reason)"
        switch errno {
        case EACCES, EPERM:
            self.init(message: message, hint: Self.permission(for: use), status: .notPermitted)
        case ENOSPC where use == .writing, EDQUOT where use == .writing, EFBIG where use == .writing:
            self.init(notWritten: message, hint: "Make room there, or name a file on another disk.")
        default:
            self.init(message: message, hint: advice, status: .usage)
        }
    }

    /// The results cannot be written, for this reason of the system.
    init(unwritable number: Int32) {
        let isFull = [ENOSPC, EDQUOT, EFBIG].contains(number)
        self.init(
            notWritten: "could not write the results: \(unsafe String(cString: strerror(number))) [errno \(number)]",
            hint: isFull ? "Make room there, or write to another disk." : nil)
    }

    private static func permission(for use: FileUse) -> String {
        let tool = Privileges.Caller.current?.tool.rawValue
        return switch (use, tool) {
        case (.reading, let tool?):
            "Under \(tool) it is read by the user who ran it: let that user read it."
        case (.reading, nil): "Let this user read it, or be a user who may."
        case (.writing, let tool?):
            "Under \(tool) it would belong to the user who ran it: name a file where that user may write."
        case (.writing, nil): "Name a file where this user may write."
        }
    }
}
