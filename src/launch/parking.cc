// SPDX-License-Identifier: Apache-2.0
// See parking.h. order() writes a new number and kind into the grant file and wakes the processes;
// look() collects the answers to that number from the slots of all living processes. step() is the
// state machine over both: when all have answered it gives the next order, and when one refuses it
// orders the opposite, so that the whole job is parked or runs.
#include "launch/parking.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "abi/process.h"

namespace mete::launch {

using abi::ParkAnswer;
using abi::ParkOrder;
using abi::ParkReason;

std::string describe(ParkReason reason, std::uint32_t detail, std::uint32_t pid) {
  std::string text;
  switch (reason) {
    case ParkReason::kNone:
      text = "it did not answer in time";
      break;
    case ParkReason::kBusy:
      text = "a call into the driver did not come back in time";
      break;
    case ParkReason::kWork:
      text = "the card did not finish its work in time";
      break;
    case ParkReason::kCapture:
      text = "a stream is being captured";
      break;
    case ParkReason::kManaged:
      text = "it has managed memory, which is not only on the card";
      break;
    case ParkReason::kShared:
      text = "it shares memory with other processes or hardware";
      break;
    case ParkReason::kMulticast:
      text = "it has multicast objects";
      break;
    case ParkReason::kGraphics:
      text = "it shares memory with a graphics interface";
      break;
    case ParkReason::kNoMover:
      text = "no mover answers";
      break;
    case ParkReason::kNoRoom:
      text = "there is no room for it";
      break;
    case ParkReason::kDriver:
      text = "the driver refused (error " + std::to_string(detail) + ")";
      break;
    case ParkReason::kSticky:
      text = "its work on the card has failed before (error " + std::to_string(detail) + ")";
      break;
    case ParkReason::kThread:
      text = "it was not started to be parkable";
      break;
    case ParkReason::kLost:
      text = "the mover that held its memory is gone: it cannot come back";
      break;
    case ParkReason::kSilent:
      text = "the mover does not answer";
      break;
    case ParkReason::kForeign:
      text = "it shares memory with other processes, which the driver cannot take away";
      break;
  }
  return pid == 0 ? text : text + " (pid " + std::to_string(pid) + ")";
}

namespace {

std::uint32_t pid_of(std::uint64_t owner) { return abi::OwnerWord::unpack(owner).pid; }

}  // namespace

// The answers of the living processes to the last order.
struct Parking::Look {
  std::size_t waiting = 0;  // processes that have not answered
  std::string waits_for;    // the first of these
  std::string refusal;      // the first refusal
  bool no_room = false;     // of the first refusal
  bool no_mover = false;    // of the first refusal
  bool lost = false;        // of the first refusal
};

Parking::Parking(abi::Grant& grant)
    : grant_(grant), viewer_(abi::owner_of(grant, abi::read_self())) {}

// Calls visit(slot, owner) for each process of the job that is not certainly gone; helpers do not
// count.
template <class Visit>
void Parking::each_living(Visit visit) const {
  const std::uint64_t high = std::min<std::uint64_t>(grant_.header.slot_high, abi::kSlots);
  for (std::uint64_t i = 0; i < high; ++i) {
    abi::Slot& slot = grant_.slots[i];
    const std::uint64_t owner = slot.owner.load();
    if (slot.role.load() == static_cast<std::uint64_t>(abi::SlotRole::kProcess) && owner != 0 &&
        !abi::process_is_gone(owner, viewer_))
      visit(slot, owner);
  }
}

void Parking::order(ParkOrder::Kind kind) {
  ++number_;
  abi::Word& word = grant_.header.park_order;
  word.store(ParkOrder{number_, kind}.pack(), std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Parking::Look Parking::look() const {
  Look look;
  each_living([&](const abi::Slot& slot, std::uint64_t owner) {
    const ParkAnswer answer = ParkAnswer::unpack(slot.park.load(std::memory_order_acquire));
    const bool current = answer.number == (number_ & 0xffffffff);
    const auto reason = static_cast<ParkReason>(answer.reason);
    if (!current || answer.kind == ParkAnswer::kNone) {
      // A process without a park thread will never answer.
      const bool deaf = (slot.unparkable.load() >> static_cast<int>(ParkReason::kThread) & 1) != 0;
      if (deaf && look.refusal.empty()) {
        look.refusal = describe(ParkReason::kThread, 0, pid_of(owner));
      } else if (!deaf && look.waiting++ == 0) {
        look.waits_for = describe(current ? reason : ParkReason::kNone, 0, pid_of(owner));
      }
    } else if (answer.kind == ParkAnswer::kRefused && look.refusal.empty()) {
      look.refusal = describe(reason, answer.detail, pid_of(owner));
      look.no_room = reason == ParkReason::kNoRoom;
      look.no_mover = reason == ParkReason::kNoMover;
      look.lost = reason == ParkReason::kLost;
    }
  });
  return look;
}

void Parking::park(std::uint64_t now_ns, std::uint64_t patience_ns) {
  if (state_ != State::kRunning) return;
  give_up_at_ = now_ns + patience_ns;
  knocks_ = grant_.header.park_knocks.load();
  grant_.header.park_disk_bytes.store(0);  // nothing is away
  state_ = State::kQuiescing;
  order(ParkOrder::kQuiesce);
}

void Parking::unpark() {
  if (state_ != State::kParked) return;
  state_ = State::kReturning;
  order(ParkOrder::kBack);
}

std::optional<Parking::End> Parking::step(std::uint64_t now_ns) {
  if (!is_busy()) return std::nullopt;
  const Look seen = look();
  switch (state_) {
    case State::kQuiescing: {
      const bool late = now_ns >= give_up_at_;
      if (seen.refusal.empty() && seen.waiting > 0 && !late) return std::nullopt;
      if (!seen.refusal.empty() || seen.waiting > 0) {
        order(ParkOrder::kRun);
        state_ = State::kRunning;
        return End{false, seen.refusal.empty() ? seen.waits_for : seen.refusal, seen.no_room, false,
                   seen.no_mover};
      }
      state_ = State::kMoving;
      order(ParkOrder::kMove);
      return std::nullopt;
    }
    case State::kMoving:
      if (seen.waiting > 0) return std::nullopt;
      if (failed_) {
        // The job could not come back, and its memory is away again, as far as possible.
        state_ = State::kParked;
        return *std::exchange(failed_, std::nullopt);
      }
      if (seen.refusal.empty()) {
        state_ = State::kParked;
        return End{true, "", false};
      }
      failed_ = End{false, seen.refusal, seen.no_room, false, seen.no_mover};
      state_ = State::kUndoing;
      order(ParkOrder::kBack);
      return std::nullopt;
    case State::kReturning:
      if (seen.waiting > 0) return std::nullopt;
      if (!seen.refusal.empty()) {
        // Processes that are back give their memory away again: the job stays parked as a whole.
        failed_ = End{false, seen.refusal, seen.no_room, true, false, seen.lost};
        state_ = State::kMoving;
        order(ParkOrder::kMove);
        return std::nullopt;
      }
      state_ = State::kRunning;
      order(ParkOrder::kRun);
      return End{true, "", false};
    case State::kUndoing: {
      if (seen.waiting > 0) return std::nullopt;
      End end = *std::exchange(failed_, std::nullopt);
      if (!seen.refusal.empty()) {
        end.why += "; and it could not take back what it had given away: " + seen.refusal;
        state_ = State::kParked;  // parked until an unpark() succeeds
        return end;
      }
      state_ = State::kRunning;
      order(ParkOrder::kRun);
      return end;
    }
    case State::kRunning:
    case State::kParked:
      break;
  }
  return std::nullopt;
}

std::string Parking::obstacle() const {
  if ((grant_.header.features & abi::kParkable) == 0) return "it was not started to be parkable";
  std::string found;
  each_living([&](const abi::Slot& slot, std::uint64_t owner) {
    const std::uint64_t bits = slot.unparkable.load() & ~abi::kOnlyOfTheDriver;
    if (bits != 0 && found.empty())
      found = describe(static_cast<ParkReason>(__builtin_ctzll(bits)), 0, pid_of(owner));
  });
  return found;
}

bool Parking::is_wanted() const { return grant_.header.park_knocks.load() != knocks_; }

Bytes Parking::moved() const {
  std::uint64_t sum = 0;
  each_living(
      [&](const abi::Slot& slot, std::uint64_t /*owner*/) { sum += slot.moved_bytes.load(); });
  return Bytes::from_bytes(std::min(sum, abi::kMaxUnits * abi::kUnitBytes));
}

// The sum still includes the bytes of a process that died while it was parked.
Bytes Parking::on_disk() const {
  return std::min(Bytes::from_bytes(grant_.header.park_disk_bytes.load()), moved());
}

Bytes Parking::held(std::uint32_t card) const {
  std::uint64_t units = 0;
  for (std::uint32_t part = 0; part < std::min(grant_.header.part_count, abi::kMaxParts); ++part) {
    const abi::Account& account = grant_.accounts[part][card];
    units += abi::TotalWord::unpack(account.total.load()).units;
    units += std::min(account.excess_units.load(), abi::kMaxUnits);
  }
  return Bytes::from_bytes(units * abi::kUnitBytes);
}

}  // namespace mete::launch
