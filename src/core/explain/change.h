// SPDX-License-Identifier: Apache-2.0
// What would start a waiting job now: of each kind of change the smallest one, found by walking the
// line with the changed question (order/pass.h). Every change that is returned starts the job in
// that walk; of its kind no smaller one on the grid does.
//
// What is tried, smallest first:
//   release      the job is no longer held
//   begin        it does not wait for its --begin
//   gpu          a smaller share: whole multiples of 256 MiB, of fractions whole percents. Instead
//                of whole cards 100 % of them, shared with others, and then less
//   cards        one card less, and one less again
//   type         another type of cards: those nearest in size first
//   devices      any cards instead of those that --devices names
//   where        without the expression after --where
//   cpus         one CPU less, and one less again
//   time         a shorter --time: whole days, below two of them hours, below six hours steps of 5
//                minutes, below one minutes; nothing shorter than half of such jobs ran
//   job-ends     one job is cancelled: the one that holds the least GPU memory. Where no single one
//                is enough several, of which none can be left out
//   priority     one higher, and one more; others may be parked for it then
//   quota        of its user: one more running job, one more card, or one more GiB
//   reservation  one is taken back: the one with the least memory
//   undrain      one drained card is back in use
//
// The job keeps its place in line meanwhile. What takes too many walks to find is not found: 64 for
// each kind of change, fewer where a walk takes long.
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
  std::string argument;  // "--gpu 20G"; "": it is not one of its words
  // What it is, by kind.
  std::optional<Request> request = {};            // kGpu to kCpus: what it would ask for
  std::optional<std::uint64_t> time_s = {};       // kTime
  std::vector<JobId> jobs = {};                   // kJobEnds; kPriority: who would be parked
  std::optional<std::int32_t> priority = {};      // kPriority
  std::optional<Quota> quota = {};                // kQuota: its user's own, as it would be set
  std::optional<std::uint64_t> reservation = {};  // kReservation
  std::string card = {};                          // kUndrain: its UUID
  bool operator==(const Change&) const = default;
};
std::string_view to_string(Change::Kind kind);  // "gpu", "job-ends", ...

// Empty for a job that is not pending, that would start by itself or that waits for another job.
// `sight` is of this state and moment.
std::vector<Change> changes(const State& state, const Moment& moment, const Sight& sight,
                            const Job& job);

}  // namespace mete::core
