// SPDX-License-Identifier: Apache-2.0
// Parking a job, as its runner does it: orders in the grant file, answers of the processes, all of
// them or none (abi/park.h, docs/adr/0012-parking.md). Never waits: step() polls and advances, and
// is called every few milliseconds while something is under way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "abi/park.h"
#include "base/bytes.h"

namespace mete::launch {

// Why it was not done, as text: "a call into the driver did not come back in time (pid 412)".
std::string describe(abi::ParkReason reason, std::uint32_t detail, std::uint32_t pid);

class Parking {
 public:
  enum class State {
    kRunning,
    kQuiescing,  // on the way to being parked
    kMoving,
    kParked,
    kReturning,
    kUndoing,  // a process could not give its memory away: the others take theirs back
  };
  // The operation is done, or why not; state() then says where the job stands.
  struct End {
    bool done = false;
    std::string why;
    bool no_room = false;  // the mover had no room for it, or the card had none for its return
    bool back = false;     // the failed operation was a return
    bool no_mover = false;
    bool lost = false;  // its memory is gone: it can never come back
  };

  explicit Parking(abi::Grant& grant);

  State state() const { return state_; }
  bool is_busy() const { return state_ != State::kRunning && state_ != State::kParked; }

  // For a job that runs. `patience_ns`: how long its processes may take to come to rest.
  void park(std::uint64_t now_ns, std::uint64_t patience_ns);
  // For a parked job with its bytes granted.
  void unpark();
  // The result of an operation that has ended since the last call.
  std::optional<End> step(std::uint64_t now_ns);

  // What currently prevents parking it; "": nothing known.
  std::string obstacle() const;
  // A call of its program has reached the closed gate since park(), and waits there.
  bool is_wanted() const;
  // What movers hold for it, and what it still holds on its card.
  Bytes moved() const;
  // The part of moved() that is on disk.
  Bytes on_disk() const;
  Bytes held(std::uint32_t card) const;

 private:
  struct Look;
  void order(abi::ParkOrder::Kind kind);
  Look look() const;

  template <class Visit>
  void each_living(Visit visit) const;

  abi::Grant& grant_;
  std::uint64_t viewer_;  // this process, as an owner of slots: whose pids are meaningful here
  State state_ = State::kRunning;
  std::uint64_t number_ = 0;
  std::uint64_t give_up_at_ = 0;
  std::uint64_t knocks_ = 0;   // at park()
  std::optional<End> failed_;  // reported once every process is back in its former state
};

}  // namespace mete::launch
