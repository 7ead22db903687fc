// SPDX-License-Identifier: Apache-2.0
// Parking a job with the driver's own checkpoint (mete-checkpoint), which also takes its contexts
// off the card: for `--deep`, and for jobs that the meter cannot park. Where the meter can park, it
// goes first, since it moves memory twenty times as fast; the driver then takes the rest. On the
// way back the driver goes first. Never waits: step() polls and advances, as that of
// launch::Parking does.
//
// A restore that failed for want of room cannot be retried (driver 580): unpark() begins only when
// the grant file allows the job what it held, and the card has that much free and kReturnMargin
// more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/grant.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "launch/host_room.h"
#include "launch/parking.h"

namespace mete::launch {

class DeepParking {
 public:
  enum class State {
    kRunning,
    kMeterOut,   // on the way to being parked
    kDriverOut,  //
    kParked,
    kDriverIn,  // on the way back
    kMeterIn,
    kUndoing,  // one process could not be parked: the others come back
    kAsking,   // before all of this: the driver is asked whether it supports this
  };
  using End = Parking::End;

  // What a checkpointed process leaves on a card where it had a context (measured).
  static constexpr Bytes kLeft = Bytes::from_mib(4);
  // What must be free on a card beyond the returning bytes and the reserve of each process, lent or
  // not.
  static constexpr Bytes kReturnMargin = Bytes::from_mib(32);

  // What the host must have free beyond the bytes that the driver takes off the cards.
  static constexpr Bytes kHostMargin = Bytes::from_mib(512);

  struct Options {
    std::string program;                  // mete-checkpoint; "": not installed
    std::string cuda;                     // path of the driver's library; "": the system's
    std::string mps = "/tmp/nvidia-mps";  // where an MPS daemon leaves its pid, unless a process
                                          // has another setting
    HostFiles host = {};
  };

  // `meter` parks the same grant; no other code uses it while this object is busy or parked.
  DeepParking(abi::Grant& grant, Parking& meter, Options options);
  DeepParking(const DeepParking&) = delete;
  DeepParking& operator=(const DeepParking&) = delete;

  State state() const { return state_; }
  bool is_busy() const { return state_ != State::kRunning && state_ != State::kParked; }

  // Asks the driver whether it supports checkpoints; obstacle() knows once step() has read the
  // answer.
  void learn();
  // What currently prevents parking; "": nothing known.
  std::string obstacle() const;

  // For a job that runs, or is parked by the meter; if this fails, the job returns to that state.
  // `patience_ns`: how long its processes may take to come to rest.
  void park(std::uint64_t now_ns, std::uint64_t patience_ns);
  // For a parked job with its bytes granted. Without room for them nothing begins, and step()
  // reports it.
  void unpark(std::uint64_t now_ns);
  // The result of an operation that has ended since the last call.
  std::optional<End> step(std::uint64_t now_ns);

  // What must be granted on a card before unpark().
  Bytes needs(std::uint32_t card) const;
  // What the job holds on a card; while it is parked, what is left of it there.
  Bytes held(std::uint32_t card) const;

 private:
  // The program at work, and its output so far.
  struct Program {
    pid_t pid = -1;
    std::uint64_t since_ns = 0;  // when it was first polled
    Fd out;
    std::string said;
  };
  struct Answer {
    std::string end;  // "": it ended without an answer
    std::string why;
  };

  template <class Visit>
  void each_process(Visit visit) const;
  bool start(Program& program, const char* verb);
  static std::optional<Answer> collect(Program& program);
  std::optional<Answer> give_up(std::uint64_t now_ns);
  void run(State state, const char* verb);
  void begin(std::uint64_t now_ns);
  std::optional<End> driver_out(const Answer& answer);
  std::optional<End> driver_in(const Answer& answer);
  std::optional<End> undone(const Answer& answer);
  std::optional<End> meter_ended(const End& end);
  void undo(const std::string& why);
  End parked_end();
  std::string no_host_room() const;
  std::string no_room(std::uint64_t now_ns) const;
  bool under_mps(std::uint32_t pid) const;
  Bytes before(std::uint32_t card) const;

  abi::Grant& grant_;
  Parking& meter_;
  Options options_;
  std::uint64_t viewer_;
  State state_ = State::kRunning;
  bool by_meter_ = false;    // the meter has moved the memory
  bool was_parked_ = false;  // the meter had parked the job before park()
  std::uint64_t patience_ns_ = 0;
  std::uint64_t parked_at_ns_ = 0;
  int tries_ = 0;
  std::vector<std::uint32_t> pids_;    // the processes that the driver was asked to take
  std::vector<std::uint64_t> before_;  // units held at park(), by part and card
  std::optional<End> told_;            // returned by the next step()
  std::optional<End> failed_;          // returned once every process is back in its former state
  Program program_;
  Program probe_;
  std::optional<std::string> cannot_;  // why the driver cannot; "": it can; nullopt: not known
};

}  // namespace mete::launch
