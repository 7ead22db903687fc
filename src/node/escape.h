// SPDX-License-Identifier: Apache-2.0
// Which processes of jobs hold memory of a card outside their meter, from one reading to the next.
// Pure: compares what NVML counts for each process with what its meter has charged, and what all
// processes of a job hold with its grant.
//
//   without a meter   all that it holds is outside
//   with one          nothing, as long as all processes of the job hold no more than its grant;
//                     what the driver takes unasked (code, stacks) is charged to the job's room
//                     by its sampler. Beyond the grant: what it holds beyond its charge
//   whatever the grant file says (its user can write it): what a job holds beyond its grant is
//                     outside; if all charges cover it, it is attributed to the largest process
//
// Amounts up to max(64 MiB, 2 % of the grant) are ignored. Doubt is no escape: a process that is
// hidden, that is ending, whose grant file cannot be read or knows another pid namespace. Reported
// after two readings in a row; certain after three.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "node/card_snapshot.h"
#include "seam/launcher.h"

namespace mete::node {

// A job that runs.
struct EscapeJob {
  core::JobId id;
  std::vector<core::GrantedCard> grant;  // as much as it may have now
};

class EscapeWatch {
 public:
  static constexpr Bytes kLeast = Bytes::from_mib(64);
  static constexpr std::uint64_t kPercent = 2;
  // Code, stacks and heaps that the driver creates for a program with a meter: a program that has
  // loaded every library of the toolkit holds some hundred MiB beside its reserve.
  static constexpr Bytes kUnasked = Bytes::from_mib(512);
  static constexpr unsigned kTold = 2;     // readings in a row
  static constexpr unsigned kCertain = 3;  // readings in a row

  struct Seen {
    core::JobId job;
    core::Escape escape;
    // Three fresh readings agree, and none of the job's processes there is under MPS, where the
    // driver's figures are its server's.
    bool certain = false;
    bool operator==(const Seen&) const = default;
  };

  // `owners` has the job of each process; jobs that are not in `jobs` are not judged. A repeated
  // reading changes nothing, and gives the same result.
  std::vector<Seen> see(const CardSnapshot& snapshot, const std::map<pid_t, core::JobId>& owners,
                        const std::vector<EscapeJob>& jobs);

 private:
  using Key = std::tuple<core::JobId, pid_t, std::uint64_t, std::string>;
  std::map<Key, unsigned> readings_;  // in a row
  std::vector<Seen> last_;
  seam::Nanoseconds at_{-1};
};

}  // namespace mete::node
