// SPDX-License-Identifier: Apache-2.0
// See bounds.h.
#include "core/job/bounds.h"

#include <algorithm>

#include "core/job/decide.h"

namespace mete::core {

// Everything has a limit, and no user reaches one through another user's jobs alone.
Result<void> Decider::check_bounds(const Submit& submit) const {
  const JobSpec& spec = submit.spec;
  const std::size_t more = spec.array ? count_of(*spec.array) : 1;
  const char* const hint = "try again when some have ended; mete ps lists them";
  const std::size_t most = submit.admin ? kMaxUnfinished : kMaxUnfinished - kUnfinishedForAdmins;
  if (state_.unfinished() + more > most)
    return Error::exhausted("there are " + std::to_string(state_.unfinished()) + " unfinished jobs")
        .with_evidence("there can be " + std::to_string(most))
        .with_hint(hint);
  if (!submit.admin && state_.unfinished_of(spec.user) + more > kMaxUnfinishedOfUser)
    return Error::exhausted(spec.user + " has " + std::to_string(state_.unfinished_of(spec.user)) +
                            " unfinished jobs")
        .with_evidence("one user can have " + std::to_string(kMaxUnfinishedOfUser))
        .with_hint(hint);
  const std::uint64_t texts = text_bytes(spec);
  if (texts > kMaxSpecBytes)
    return Error::invalid("what is said of the job is too long: paths, labels, names of cards")
        .with_evidence("it takes " + std::to_string(texts) + " bytes, and may take " +
                       std::to_string(kMaxSpecBytes));
  return check_bytes(spec, more, 0);
}

// Ended jobs do not count: they are forgotten to make room. Administrators are not exempt: the
// store is bounded.
Result<void> Decider::check_bytes(const JobSpec& spec, std::uint64_t jobs,
                                  std::uint64_t number) const {
  const auto in_words = [](std::uint64_t bytes) { return to_string(Bytes::from_bytes(bytes)); };
  const std::uint64_t largest = std::max(
      spec.command_bytes,
      spec.detached ? std::max(spec.detached->environment_bytes, spec.detached->script_bytes) : 0);
  if (largest > kMaxContentBytes)
    return Error::invalid("the job's command, script or environment is too long")
        .with_evidence("it takes " + in_words(largest) + ", and may take " +
                       in_words(kMaxContentBytes));
  const Account& open = state_.users().of(spec.user).open;
  const std::uint64_t more = open.more_by(spec, jobs, number);
  const std::uint64_t sweeps = state_.sweeps().bytes_of(spec.uid);
  if (open.bytes() + sweeps + more <= rules_.user_bytes) return {};
  return Error::exhausted("the unfinished jobs of " + spec.user + " take too much of mete's state")
      .with_evidence("they take " + in_words(open.bytes()) +
                     (sweeps == 0 ? "" : ", sweeps " + in_words(sweeps)) + ", this takes " +
                     in_words(more) + " more, and one user may have " + in_words(rules_.user_bytes))
      .with_hint(
          "try again when some have ended, or end some: mete cancel; [queue] user_bytes in "
          "the configuration is the limit");
}

Result<void> Decider::check_sweep_bytes(const JobSpec& spec, std::uint64_t more) const {
  const auto in_words = [](std::uint64_t bytes) { return to_string(Bytes::from_bytes(bytes)); };
  const std::uint64_t open = state_.users().of(spec.user).open.bytes();
  const std::uint64_t sweeps = state_.sweeps().bytes_of(spec.uid);
  if (open + sweeps + more <= rules_.user_bytes) return {};
  return Error::exhausted("the sweeps of " + spec.user + " take too much of mete's state")
      .with_evidence("they take " + in_words(sweeps) + ", unfinished jobs " + in_words(open) +
                     ", this takes " + in_words(more) + " more, and one user may have " +
                     in_words(rules_.user_bytes))
      .with_hint(
          "mete sweep rm NAME forgets a sweep that is over; [queue] user_bytes in the "
          "configuration is the limit");
}

}  // namespace mete::core
