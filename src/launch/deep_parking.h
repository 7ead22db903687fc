// SPDX-License-Identifier: Apache-2.0
// Parking a job by the driver's own checkpoint (mete-checkpoint), which takes its contexts off the
// card too: for `--deep`, and for jobs that the meter cannot park. Where it can, it does so first,
// since it moves memory twenty times as fast; the driver then takes what is left. On the way back
// the driver is first. Never waits: step() looks and goes on, as launch::Parking's.
//
// A restore without room can never be repeated (driver 580): unpark() begins only when the grant
// file allows the job what it held, and the card has that much free and kReturnMargin more.
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
    kUndoing,  // one could not be parked: the others come back
    kAsking,   // before all of this: the driver is asked whether it can at all
  };
  using End = Parking::End;

  // What a process that is checkpointed leaves on a card where it had a context (measured).
  static constexpr Bytes kLeft = Bytes::from_mib(4);
  // What must be free on a card beyond the bytes that come back and the reserve of each process,
  // lent or not.
  static constexpr Bytes kReturnMargin = Bytes::from_mib(32);

  // What the host must have beyond the bytes that the driver takes off the cards.
  static constexpr Bytes kHostMargin = Bytes::from_mib(512);

  struct Options {
    std::string program;  // mete-checkpoint; "": it is not there
    std::string cuda;     // which driver's library; "": the system's
    std::string mps =
        "/tmp/nvidia-mps";  // where an MPS daemon says that it runs, unless a process says
    HostFiles host = {};
  };

  // `meter` parks the same grant, and is used by nobody else while this one is busy or parked.
  DeepParking(abi::Grant& grant, Parking& meter, Options options);
  DeepParking(const DeepParking&) = delete;
  DeepParking& operator=(const DeepParking&) = delete;

  State state() const { return state_; }
  bool is_busy() const { return state_ != State::kRunning && state_ != State::kParked; }

  // Asks the driver whether it can at all; obstacle() knows once step() has heard the answer.
  void learn();
  // What stands in the way as things are; "": nothing that is known.
  std::string obstacle() const;

  // While it runs, or is parked by the meter: it is so again where this fails. `patience_ns`: how
  // long its processes may take to come to rest.
  void park(std::uint64_t now_ns, std::uint64_t patience_ns);
  // While it is parked, with its bytes granted. Without room for them nothing is begun, and step()
  // says so.
  void unpark(std::uint64_t now_ns);
  // Something has come to its end since the last call.
  std::optional<End> step(std::uint64_t now_ns);

  // What must be granted on a card before unpark().
  Bytes needs(std::uint32_t card) const;
  // What the job holds on a card: what is left of it while it is parked.
  Bytes held(std::uint32_t card) const;

 private:
  // The program at work, and what it has said so far.
  struct Program {
    pid_t pid = -1;
    std::uint64_t since_ns = 0;  // first looked at
    Fd out;
    std::string said;
  };
  struct Answer {
    std::string end;  // "": it ended without a word
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
  bool by_meter_ = false;    // the meter has moved its memory
  bool was_parked_ = false;  // and had done so before
  std::uint64_t patience_ns_ = 0;
  std::uint64_t parked_at_ns_ = 0;
  int tries_ = 0;
  std::vector<std::uint32_t> pids_;    // what the driver was asked to take
  std::vector<std::uint64_t> before_;  // units held at park(), by part and card
  std::optional<End> told_;            // told at the next step()
  std::optional<End> failed_;          // told once all stand where they stood
  Program program_;
  Program probe_;
  std::optional<std::string> cannot_;  // why the driver cannot; "": it can; nothing: not known
};

}  // namespace mete::launch
