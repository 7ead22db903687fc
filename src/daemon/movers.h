// SPDX-License-Identifier: Apache-2.0
// The movers of this daemon, one for each card that has a job which can be parked: started when the
// first one comes, told which jobs may come to them and how large their arena is to be, let go when
// none is left. They outlive us, and are found again; one that died is started anew. Nothing waits
// for them: a job needs its mover when it is parked, not when it starts, and a mover that does not
// answer keeps no other from being answered.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
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
  std::string folder;          // of their sockets: abi::kMaxMoverFolder at most
  std::string cuda;            // the driver's library
  bool system = false;         // other users' jobs come to them
  std::optional<Bytes> arena;  // of one card; nullopt: half of the machine's memory for all of them
  std::string spill;
  Bytes spill_max;
};

// Below the state folder, or where that has too long a name below /tmp: a folder of ours.
Result<std::string> mover_folder(const std::string& state_dir, bool system);

class Movers {
 public:
  Movers(MoverSettings settings, seam::Loop loop, seam::Clock& clock,
         std::function<void(const std::string&)> log);
  ~Movers();
  Movers(const Movers&) = delete;
  Movers& operator=(const Movers&) = delete;

  // So many cards share what is not said of the arenas.
  void see_cards(std::size_t count) { cards_ = count; }

  void want(const core::Job& job);
  void forget(core::JobId job);
  wire::ParkDoor door(const core::Job& job) const;

  // The processes that are movers, by card.
  std::map<std::string, pid_t> pids() const;
  // The most that can be parked of one card.
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
    // What it was asked on this line and has not answered yet, and when.
    std::map<park::MoverClient::Question, seam::Nanoseconds> open;
    bool answers = false;           // it has, on this line
    seam::Nanoseconds next_line{};  // not before; after one that was of no use
    pid_t pid = -1;                 // of the one at the other end
    pid_t child = -1;               // to be reaped
    Bytes goal;                     // of its arena, as it was told
    seam::Nanoseconds next_start{};
    int starts = 0;  // and lines of no use, since it has answered last
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
  std::string secret_;           // behind the tokens of jobs
  bool secret_kept_ = false;     // it is on disk: the next daemon will know it
  bool secret_trouble_ = false;  // it was said in the log that it is not
  std::size_t cards_ = 1;
  Bytes host_limit_;  // by the control groups that we are in
  std::map<std::string, Mover> movers_;
  bool scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mete::daemon
