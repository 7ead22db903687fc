// SPDX-License-Identifier: Apache-2.0
// What would start a waiting job now: the smallest change of each kind, found by a pass over the
// queue with the changed input (order/pass.h). Every returned change starts the job in that pass;
// no smaller change of its kind on the grid does.
//
// The kinds, and what is tried, smallest first:
//   release      the job is no longer held
//   begin        the job does not wait for its --begin
//   gpu          a smaller share: whole multiples of 256 MiB, whole percents for fractions. Instead
//                of whole cards 100 % of them, shared with others, and then less
//   cards        one card less, and so on
//   type         another type of cards: nearest in size first
//   devices      any cards, without --devices
//   where        without --where
//   cpus         one CPU less, and so on
//   time         a shorter --time: whole days; below two days hours; below six hours steps of 5
//                minutes; below one hour minutes; not shorter than half of such jobs ran
//   job-ends     one job is cancelled: the one that holds the least GPU memory. If no single job is
//                enough, several, of which none can be left out
//   priority     one higher, and so on; others may be parked for the job then
//   quota        of the user: one more running job, one more card, or one more GiB
//   reservation  one is removed: the one with the least memory
//   undrain      one drained card is back in use
//
// The job keeps its place in the queue meanwhile. A search ends after 64 passes for each kind of
// change, or fewer where a pass takes long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/state.h"

namespace mete::core {

inline constexpr Bytes kShareStep = Bytes::from_mib(256);
inline constexpr std::uint32_t kShareStepMilli = 10;
inline constexpr Bytes kQuotaStep = Bytes::from_gib(1);

struct Change {
  enum class Kind {
    kRelease,
    kBegin,
    kGpu,
    kCards,
    kType,
    kDevices,
    kWhere,
    kCpus,
    kTime,
    kJobEnds,
    kPriority,
    kQuota,
    kReservation,
    kUndrain
  };
  Kind kind = Kind::kGpu;
  std::string text;      // "instead of 32G", "job 14 of bob ended, which holds 9.2 GiB"
  std::string argument;  // "--gpu 20G"; "": not an option of the job
  // The change itself, by kind.
  std::optional<Request> request = {};            // kGpu to kCpus: the changed request
  std::optional<std::uint64_t> time_s = {};       // kTime
  std::vector<JobId> jobs = {};                   // kJobEnds; kPriority: jobs that would be parked
  std::optional<std::int32_t> priority = {};      // kPriority
  std::optional<Quota> quota = {};                // kQuota: the user's quota to set
  std::optional<std::uint64_t> reservation = {};  // kReservation
  std::string card = {};                          // kUndrain: UUID
  bool operator==(const Change&) const = default;
};
std::string_view to_string(Change::Kind kind);  // "gpu", "job-ends", ...

// Empty for a job that is not pending, would start by itself or waits for another job. `sight` must
// be of this state and moment.
std::vector<Change> changes(const State& state, const Moment& moment, const Sight& sight,
                            const Job& job);

}  // namespace mete::core
