// SPDX-License-Identifier: Apache-2.0
// See fake_launcher.h.
#include "tests/support/fake_launcher.h"

#include <utility>

namespace mete::tests {

void FakeLauncher::call(const char* what, core::JobId job) {
  calls_.push_back(std::string(what) + " " + to_string(job));
}

bool FakeLauncher::reserve(core::JobId job, const std::vector<core::GrantedCard>& cards) {
  call("reserve", job);
  if (others_agree && !others_agree(job, cards)) return false;
  reserved_[job] = cards;
  return true;
}

void FakeLauncher::start(const core::Job& job) {
  if (before_act) before_act();
  call("start", job.id);
  kept_[job.id] = job;
}

void FakeLauncher::watch(core::JobId job, core::ProcessRef runner) {
  if (before_act) before_act();
  call("watch", job);
  watched_[job] = runner;
}

void FakeLauncher::wake(core::JobId job, core::ProcessRef) {
  if (before_act) before_act();
  call("wake", job);
}

void FakeLauncher::stop(core::JobId job) {
  if (before_act) before_act();
  call("stop", job);
  ++stops_[job];
}

void FakeLauncher::forget(core::JobId job) {
  if (before_act) before_act();
  call("forget", job);
  reserved_.erase(job);
  watched_.erase(job);
  kept_.erase(job);
  stops_.erase(job);
}

void FakeLauncher::crash() {
  reserved_.clear();
  watched_.clear();
  kept_.clear();
  stops_.clear();
}

std::vector<std::string> FakeLauncher::take_calls() { return std::exchange(calls_, {}); }

}  // namespace mete::tests
