// SPDX-License-Identifier: Apache-2.0
// For the tests of job/ and order/: a daemon without a disk and without processes. Inputs are
// decided and applied at once, time moves on request. The tests use these verbs: submit, run,
// grant, started, ended, fails, cancel, later.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/job/state.h"
#include "wire/wait_text.h"

namespace mete::core {

using Ids = std::vector<JobId>;

inline Pool pool_of(std::vector<std::uint64_t> gib) {
  Pool pool;
  for (std::uint32_t i = 0; i < gib.size(); ++i) {
    PoolCard card;
    card.card = {i, "GPU-" + std::to_string(i), "H200", Bytes::from_gib(gib[i])};
    pool.cards.push_back(card);
  }
  return pool;
}

inline std::uint32_t uid_of(const std::string& user) {
  if (user == "root") return 0;
  return 1000 + static_cast<std::uint32_t>(user.front() - 'a');  // alice 1000, bob 1001, ...
}

inline Caller caller(const std::string& user) { return {uid_of(user), user == "root", user}; }

inline JobSpec spec_of(const std::string& gpu, const std::string& user = "alice") {
  JobSpec spec;
  spec.name = "train";
  spec.uid = uid_of(user);
  spec.user = user;
  spec.request.gpu = *parse_gpu(gpu);
  spec.command = {"train"};
  spec.folder = "/";
  spec.detached = Detached{};
  return spec;
}

inline Exit exit_with(int code) {
  Exit exit;
  exit.code = code;
  return exit;
}

class World {
 public:
  Result<JobId> try_submit(JobSpec spec, bool wait = true) {
    Submit submit;
    submit.admin = spec.user == "root";
    // A job of `mete run` has its own runner.
    if (!spec.detached) submit.runner = ProcessRef{++runners_, 7};
    submit.spec = std::move(spec);
    submit.wait = wait;
    if (const Result<void> done = take(submit); !done) return done.error();
    return JobId{state_.jobs().rbegin()->first.number};
  }
  JobId submit(JobSpec spec) {
    const Result<JobId> id = try_submit(std::move(spec));
    EXPECT_TRUE(id.ok()) << id.error().message << "; " << id.error().evidence;
    return id.ok() ? *id : JobId{};
  }
  JobId submit(const std::string& gpu, const std::string& user = "alice") {
    return submit(spec_of(gpu, user));
  }
  // A job that starts at once and runs.
  JobId run(JobSpec spec) {
    const JobId id = submit(std::move(spec));
    grant();
    started(id);
    EXPECT_EQ(job(id).state, JobState::kRunning);
    return id;
  }
  JobId run(const std::string& gpu, const std::string& user = "alice") {
    return run(spec_of(gpu, user));
  }

  Result<void> take(const Input& input) {
    Result<std::vector<Happened>> happened = state_.decide(input, moment());
    if (!happened) return happened.error();
    happened_ = happened->size();
    for (Happened& what : *happened) apply(std::move(what));
    return {};
  }
  void apply(Happened what) {
    events_.push_back({state_.last_seq() + 1, now_, std::move(what)});
    state_.apply(events_.back());
  }
  void settle() {
    for (;;) {
      std::vector<Happened> due = state_.due(moment());
      if (due.empty()) return;
      for (Happened& what : due) apply(std::move(what));
    }
  }
  std::vector<JobId> grant() {
    settle();
    std::vector<JobId> ids;
    for (JobGranted& granted : state_.grants(moment())) {
      ids.push_back(granted.id);
      apply(std::move(granted));
    }
    return ids;
  }
  void later(std::int64_t seconds) {
    now_.ms += seconds * 1000;
    settle();
  }

  void started(JobId id) {
    const ProcessRef program{static_cast<std::int32_t>(id.number + 5000), job(id).attempt};
    EXPECT_TRUE(take(Started{id, job(id).spec->uid, program}).ok());
  }
  void ended(JobId id, Exit exit = exit_with(0)) {
    const Result<void> done = take(Ended{id, job(id).spec->uid, std::move(exit)});
    EXPECT_TRUE(done.ok()) << done.error().message;
  }
  void fails(JobId id) { ended(id, exit_with(1)); }
  void runs_out_of_gpu(JobId id) {
    Exit exit = exit_with(1);
    exit.gpu_oom = true;
    ended(id, exit);
  }
  Result<void> cancel(JobId id, const std::string& user = "alice") {
    return take(Cancel{id, caller(user)});
  }

  const Job& job(JobId id) { return *state_.find(id); }
  JobState state_of(JobId id) { return job(id).state; }
  Wait wait_of(JobId id) {
    Sight sight = state_.look(moment());
    return *state_.wait_of(job(id), moment(), sight);
  }
  std::string why(JobId id) { return wire::wait_text(wait_of(id)); }
  Moment moment() const { return {machine_, policy_, now_}; }

  State state_;
  Pool machine_ = pool_of({80});
  Policy policy_ = Policy::kBestFit;
  WallTime now_{1'800'000'000'000};
  std::vector<Event> events_;
  std::size_t happened_ = 0;
  std::int32_t runners_ = 0;
};

class StateWorld : public testing::Test, protected World {};

}  // namespace mete::core
