// SPDX-License-Identifier: Apache-2.0
// What users ask for: runs and jobs with every option there is, changes of their own and of other
// users' jobs, and orders of administrators. Some of it makes no sense, as with real users.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/job/input.h"
#include "seam/clock.h"
#include "tests/sim/books.h"
#include "tests/sim/cards.h"
#include "tests/sim/dice.h"

namespace mete::sim {

// What is usual for a time.
struct Customs {
  std::uint32_t users = 4;
  bool quotas = true;
  bool reservations = true;
  bool priorities = true;
  bool parking = true;
};

class People {
 public:
  People(Dice& dice, Cards& cards, seam::Clock& clock, const Books& books)
      : dice_(dice), cards_(cards), clock_(clock), books_(books) {}

  void change_customs();
  core::Submit a_run(core::ProcessRef runner);
  core::Submit a_job();
  // The contents that a job refers to, with their hashes.
  static std::vector<std::pair<std::string, std::string>> blobs(const core::JobSpec& spec);
  core::Input a_change();
  core::Input a_park();    // or its end, or an idle job
  core::Input an_order();  // of an administrator, or of a user without permission

  // Lifts everything that prevents the queue from draining.
  std::vector<core::Input> everything_is_lifted() const;

 private:
  core::JobSpec a_spec();
  void say_when(core::JobSpec& spec);
  void say_who_gives_way(core::JobSpec& spec);
  core::JobId some_job();
  core::Caller caller_for(core::JobId id);
  core::Caller an_admin();
  core::Input a_quota();
  core::Input a_reservation();
  std::string some_user();
  WallTime from_now(std::int64_t low_s, std::int64_t high_s);

  Dice& dice_;
  Cards& cards_;
  seam::Clock& clock_;
  const Books& books_;
  Customs customs_;
};

}  // namespace mete::sim
