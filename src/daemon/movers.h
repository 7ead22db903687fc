// SPDX-License-Identifier: Apache-2.0
// The movers of this daemon, one per card that has a parkable job: started with the first such job,
// told their jobs and the size of their arena, released after the last. They outlive the daemon,
// and are found again; a mover that died is replaced. Nothing waits for them: a job needs its mover
// when it is parked, not when it starts, and a silent mover delays no other.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "core/job/job.h"
#include "park/mover_client.h"
#include "seam/clock.h"
#include "seam/loop.h"
#include "wire/job.h"

namespace mete::daemon {

struct MoverSettings {
  std::string program;  // mete-mover; "": there is none
  std::string state_dir;
  std::string folder;          // for their sockets: abi::kMaxMoverFolder at most
  std::string cuda;            // path of libcuda.so.1
  bool system = false;         // serves the jobs of other users too
  std::optional<Bytes> arena;  // per card; nullopt: its share of half the host's memory
  std::string spill;
  Bytes spill_max;
};

// Below the state folder, or below /tmp if the state folder's path is too long. Owned by us.
Result<std::string> mover_folder(const std::string& state_dir, bool system);

class Movers {
 public:
  Movers(MoverSettings settings, seam::Loop loop, seam::Clock& clock,
         std::function<void(const std::string&)> log);
  ~Movers();
  Movers(const Movers&) = delete;
  Movers& operator=(const Movers&) = delete;

  // The number of cards that share the default arena.
  void see_cards(std::size_t count) { cards_ = count; }

  // Of one card from now on; a mover gives back what it does not need for parked memory.
  void set_arena(std::optional<Bytes> arena);

  void want(const core::Job& job);
  void forget(core::JobId job);
  // Call this while a job waits for room. Movers that have had no guest for a second are told to
  // end, without waiting for their own idle minute: their memory on the card may be what the job
  // lacks.
  void make_room();
  wire::ParkDoor door(const core::Job& job) const;

  // The processes of movers, by UUID of the card.
  std::map<std::string, pid_t> pids() const;
  // The most that can be parked from one card.
  Bytes arena() const;

 private:
  struct Guest {
    std::uint32_t uid = 0;
    park::MoverClient::Token token{};
    Bytes bytes;
    bool told = false;
  };
  struct Mover {
    std::map<core::JobId, Guest> guests;
    std::optional<park::MoverClient> line;
    // Unanswered questions on this connection, with the time when they were sent.
    std::map<park::MoverClient::Question, seam::Nanoseconds> open;
    bool answers = false;             // it has answered on this connection
    seam::Nanoseconds next_line{};    // earliest reconnect, after a useless connection
    pid_t pid = -1;                   // process at the other end
    Fd process;                       // its pidfd
    seam::Nanoseconds alone_since{};  // since when it has no guests
    pid_t child = -1;                 // to be reaped
    Bytes goal;                       // size of its arena, as last sent
    seam::Nanoseconds next_start{};
    int starts = 0;  // starts and useless connections since its last answer
  };

  void look_after_all();
  void look_after(const std::string& uuid, Mover& mover);
  void start(const std::string& uuid, Mover& mover);
  void connect(const std::string& uuid, Mover& mover);
  void tell(const std::string& uuid, Mover& mover);
  bool asked(Mover& mover, const Result<park::MoverClient::Question>& question);
  void hear(const std::string& uuid);
  bool is_silent(const Mover& mover) const;
  bool keep_secret();
  void hang_up(Mover& mover);
  void give_up(const std::string& uuid, Mover& mover, const Error& why);
  void find_left_behind();
  void later(seam::Milliseconds delay);
  park::MoverClient::Token token_of(const core::Job& job) const;
  std::string socket_of(const std::string& uuid) const;
  std::string mover_log() const;
  std::string last_words() const;

  MoverSettings settings_;
  seam::Loop loop_;
  seam::Clock& clock_;
  std::function<void(const std::string&)> log_;
  std::string secret_;           // from which the tokens of jobs are derived
  bool secret_kept_ = false;     // on disk: the next daemon will know it
  bool secret_trouble_ = false;  // the failure to save it was logged
  std::size_t cards_ = 1;
  Bytes host_limit_;  // of our control groups
  std::map<std::string, Mover> movers_;
  bool scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mete::daemon
