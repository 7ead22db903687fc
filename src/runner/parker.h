// SPDX-License-Identifier: Apache-2.0
// What the runner of a job (`mete run`, or its keeper) does while the program runs: has it parked
// and brought back as the daemon wants it, lets it grow, and tells the daemon how it stands. Never
// waits for the program; a report to the daemon takes a moment of its time.
//
// What is wanted is the state that the daemon last told (hear()), what is so is in the grant file;
// the two are compared again whenever one changes, so that nothing depends on an order or a report
// that got lost.
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

// POST /v1/jobs/ID/WHAT to this daemon, with the order in which it was said. io: it
// is not there, or did not answer in time (and may do as told yet, unless something is said later).
Result<wire::RunReply> tell_daemon(const DaemonAt& where, core::JobId id, const std::string& what,
                                   const std::string& body);

class Parker {
 public:
  struct Settings {
    // Of a job that this daemon knows.
    static Settings of(const JobPlan& plan, const std::string& socket, core::JobId id);

    std::size_t cards = 0;
    std::optional<wire::ParkDoor> park = {};      // absent: by the driver alone
    std::string checkpoint;                       // the program for that; "": there is none
    std::string cuda;                             // the driver's library; "": the system's
    std::vector<std::pair<Bytes, Bytes>> growth;  // of each card: least and most; empty: none
    std::uint32_t procs = 1;
    // tell_daemon() for this job.
    std::function<Result<wire::RunReply>(const std::string& what, const std::string& body)> tell;
  };
  // Before the first process of the job.
  Parker(const launch::GrantFile& grant, Settings settings);

  // What the daemon says of the job. One that is older than what was heard before is passed over:
  // it may give what was given back since.
  void hear(const wire::RunReply& reply);
  // Looks and goes on; again after tick_ms(), at the latest.
  void step();
  int tick_ms() const;
  // Its programs stand still: no time passes for them, and they hear nothing.
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
  std::uint64_t heard_ = 0;  // the newest of what was heard
  core::JobState wanted_ = core::JobState::kRunning;
  bool wanted_deep_ = false;
  bool sleeps_ = false;  // it was parked because it did nothing
  std::optional<wire::ParkReport> unsent_;
  seam::Nanoseconds mover_until_{};  // so long a mover that is being started is waited for
  seam::Nanoseconds park_again_{};   // zero: not to be tried again
  bool tight_ = false;               // another job waits for what it does not use
  std::string obstacle_;             // as it was told
  std::vector<Bytes> asked_;         // by the program, of each card; zero: nothing
  seam::Nanoseconds ask_until_{};    // then it hears no
  seam::Nanoseconds next_second_{};  // for what need not be quick
  seam::Nanoseconds next_ask_{};
};

}  // namespace mete::runner
