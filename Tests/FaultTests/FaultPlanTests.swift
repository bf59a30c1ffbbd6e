import BLELinux
import FaultySystem
import Foundation
import TestSupport
import Testing

/// The layer itself: that it is in front of all calls, and that a plan sees its own ones only.
@Suite(.serialized) struct FaultPlanTests {
    @Test func thePlanKnowsEveryCall() {
        #expect(SystemCall.allCases.count == Int(FAULTY_CALL_COUNT.rawValue))
        #expect(SystemCall.memfd.rawValue == FAULTY_MEMFD.rawValue)
        #expect(SystemCall.epollWait.rawValue == FAULTY_EPOLL_WAIT.rawValue)
    }

    @Test func theCallsOfTheShimAreReached() throws {
        let plan = try FaultPlan()
        let (near, far) = try LinkSocket.pair()
        var sender = LinkSocket(adopting: near)
        var receiver = LinkSocket(adopting: far)
        plan.take(near)
        plan.set(.sending, .fail(ENOBUFS), skip: 1)
        #expect(sender.send([1]) == .sent)
        #expect(sender.send([2]) == .failed(errno: ENOBUFS))
        #expect(sender.send([3]) == .sent)
        #expect(plan.notes == [1, -ENOBUFS, 1].map { FaultPlan.Note(call: .send, descriptor: near, result: $0) })
        #expect(plan.hits == 1)
        #expect(receiver.receivePacket() == [1])
        #expect(receiver.receivePacket() == [3])
        #expect(plan.count() == 3, "the other end does not belong to it")
    }

    @Test func theCallsOfSwiftAreReached() throws {
        let folder = try Folder(inMemory: true)
        let plan = try FaultPlan()
        plan.take(path: folder.path)
        plan.set(SystemCalls(.rename), .fail(EIO))
        #expect(throws: SystemCallError(call: "rename", errno: EIO)) {
            try StoredFile.replace(folder.path + "/file", with: [1, 2, 3])
        }
        #expect(folder.names == [])
        try StoredFile.replace(folder.path + "/file", with: [1, 2, 3])
        #expect(try StoredFile.read(folder.path + "/file", limit: 10) == [1, 2, 3])
        #expect(plan.count(SystemCalls(.open)) == 7)
        #expect(plan.count(SystemCalls(.fsync)) == 3)
        #expect(plan.openCount == 0)
    }

    @Test func twoPlansDoNotMeet() throws {
        let folder = try Folder(inMemory: true)
        let (one, other) = (try FaultPlan(), try FaultPlan())
        one.take(path: folder.path + "/one")
        other.take(path: folder.path + "/other")
        one.set(SystemCalls(.open), .fail(EMFILE), times: nil)
        #expect(throws: SystemCallError(call: "open", errno: EMFILE)) {
            _ = try StoredFile.read(folder.path + "/one", limit: 10)
        }
        #expect(try StoredFile.read(folder.path + "/other", limit: 10) == nil)
        #expect(one.count() == 1)
        #expect(other.count() == 1)
    }
}
