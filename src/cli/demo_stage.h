// SPDX-License-Identifier: Apache-2.0
// The stage of `mete demo`: a temporary folder with everything that mete needs (state, socket,
// simulated cards), so that the demo affects no other job, and the `mete` processes that run in it.
// They are ordinary child processes in their own process groups: we get Ctrl-C and pass it on.
// Closing the stage ends them all, the daemon and the simulated cards, and removes the folder. For
// single-threaded programs.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "launch/parts.h"

namespace mete::cli {

// A `mete` process, and its output so far, in lines.
struct Actor {
  pid_t pid = -1;
  Fd input;
  Fd output;
  Fd errors;
  std::vector<std::string> lines;     // stdout
  std::vector<std::string> talk;      // stderr
  std::string part_of_line;           // of stdout: an incomplete line
  std::string part_of_talk;           // of stderr: an incomplete line
  std::optional<int> exit_code = {};  // once it has ended; 128+N for a signal

  bool ended() const { return exit_code.has_value(); }
};

class Stage {
 public:
  // Called about ten times a second during a wait: for what, and since when.
  using Progress = std::function<void(std::string_view what, int seconds)>;

  // `sim`: METE_SIM; "": the machine's own cards.
  static Result<std::unique_ptr<Stage>> open(const launch::Parts& parts, const std::string& sim,
                                             Progress progress);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Starts `mete WORDS`; the actor lives as long as the stage. With `listens` its stdin stays open
  // until end_input(), else it has none.
  Result<Actor*> start(const std::vector<std::string>& words, bool listens = false);
  void nudge(Actor& actor);  // sends an empty line
  static void end_input(Actor& actor) { actor.input.reset(); }

  // Waits until `done` or until all actors have ended, which is no error. busy: timeout. io: a
  // signal came, see signal().
  Result<void> wait(std::string_view what, const std::function<bool()>& done);
  // The output of `mete WORDS`. Its failure is an error.
  Result<std::string> ask(std::string_view what, const std::vector<std::string>& words);

  // The signal that ends the demo; 0: none.
  int signal() const { return signal_; }
  const std::string& folder() const { return folder_; }

  // Ends everything; call once. Returns what had to be killed or could not be removed: empty when
  // all is well.
  std::vector<std::string> close();

 private:
  Stage(const launch::Parts& parts, const std::string& sim, Progress progress);

  Result<void> prepare();
  Result<Actor*> spawn(const std::string& program, const std::vector<std::string>& words,
                       bool listens);
  void turn(int timeout_ms);
  void reap();
  void hear_signals();
  void run_to_end(const std::string& program, const std::vector<std::string>& words);
  bool wait_for_actors(int seconds);
  std::vector<std::string> end_leftovers();

  launch::Parts parts_;
  std::string sim_;
  Progress progress_;
  std::string self_;
  std::string folder_;
  std::vector<std::string> environment_;
  std::vector<std::unique_ptr<Actor>> actors_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_ {};
  Fd signals_;
  int signal_ = 0;
  bool closed_ = false;
};

}  // namespace mete::cli
