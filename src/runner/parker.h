// SPDX-License-Identifier: Apache-2.0
// What the runner of a job (`mete run`, or its keeper) does while the program runs: parks and
// unparks it as the daemon wants, lets it grow, and reports its state to the daemon. Never waits
// for the program; a report to the daemon takes a moment.
//
// The wanted state is what the daemon sent last (hear()), the actual state is in the grant file;
// they are compared whenever either changes, so that no lost order or report matters.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/deep_parking.h"
#include "launch/grant_file.h"
#include "launch/growth.h"
#include "launch/parking.h"
#include "runner/daemon_client.h"
#include "runner/job_runner.h"
#include "seam/clock.h"
#include "wire/job.h"

namespace mete::runner {

// POST /v1/jobs/ID/WHAT to this daemon, with a sequence number from the clock. io: the daemon is
// not there, or did not answer in time (it may still act on this request, unless it gets a later
// one).
Result<wire::RunReply> tell_daemon(const DaemonAt& where, core::JobId id, const std::string& what,
                                   const std::string& body);

class Parker {
 public:
  struct Settings {
    // For a job that this daemon knows.
    static Settings of(const JobPlan& plan, const std::string& socket, core::JobId id);

    std::size_t cards = 0;
    std::optional<wire::ParkDoor> park = {};      // absent: parked by the driver alone
    std::string checkpoint;                       // program for deep parking; "": there is none
    std::string cuda;                             // path of libcuda.so.1; "": the system's
    std::vector<std::pair<Bytes, Bytes>> growth;  // per card: least and most; empty: none
    std::uint32_t procs = 1;
    // tell_daemon() for this job.
    std::function<Result<wire::RunReply>(const std::string& what, const std::string& body)> tell;
  };
  // Construct before the first process of the job.
  Parker(const launch::GrantFile& grant, Settings settings);

  // Takes the daemon's view of the job. A view older than the last one is ignored: it may grant
  // memory that was given back since.
  void hear(const wire::RunReply& reply);
  // Advances what is under way; call again after tick_ms() at the latest.
  void step();
  int tick_ms() const;
  // The program is parked: its time does not count, and it cannot handle signals.
  bool is_away() const;

 private:
  bool is_news(const wire::RunReply& reply);
  bool is_busy() const;
  std::optional<launch::Parking::End> look(seam::Nanoseconds time);
  Bytes held(std::uint32_t card) const;
  void follow();
  void report(wire::ParkReport report);
  void send_report();
  wire::ParkReport how_it_stands() const;
  void look_for_obstacles();
  std::string too_large() const;
  void look_at_growth(seam::Nanoseconds now);
  void set_growth(const core::Job& job);
  void give_back();

  abi::Grant& grant_;
  Settings settings_;
  launch::Parking parking_;
  launch::DeepParking deep_;
  std::optional<launch::Growth> growth_;
  std::uint64_t heard_ = 0;  // sequence number of the newest view
  core::JobState wanted_ = core::JobState::kRunning;
  bool wanted_deep_ = false;
  bool sleeps_ = false;  // parked because it was idle
  std::optional<wire::ParkReport> unsent_;
  seam::Nanoseconds mover_until_{};  // deadline for a mover that is being started
  seam::Nanoseconds park_again_{};   // next attempt to park; zero: none
  bool tight_ = false;               // another job waits for unused memory of this one
  std::string obstacle_;             // as last reported
  std::vector<Bytes> asked_;         // per card: what the program asks for; zero: nothing
  seam::Nanoseconds ask_until_{};    // then the program's request is refused
  seam::Nanoseconds next_second_{};  // for checks that can wait
  seam::Nanoseconds next_ask_{};
};

}  // namespace mete::runner
