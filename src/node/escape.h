// SPDX-License-Identifier: Apache-2.0
// Which processes of jobs hold memory of a card outside their meter, from one reading after the
// other. Pure: what NVML counts to each process against what its meter has charged, and what all
// processes of a job hold against its grant.
//
//   without a meter   all that it holds is outside
//   with one          nothing, as long as all of the job hold no more than its grant: what the
//                     driver takes unasked (code, stacks) is booked on the job's room by its
//                     sampler. Beyond the grant: what it holds beyond its charge
//   whatever the grant file says (its user can write it): what a job holds beyond its grant is
//                     outside; where all have charges that cover it, it is the largest process's
//
// Too little to speak of is max(64 MiB, 2 % of the grant). What cannot be told is no escape: a
// process that is hidden, that ends, whose grant file cannot be read or knows another pid
// namespace. Told after two readings in a row; beyond doubt after three.
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
  // Code, stacks and heaps that the driver makes for a program with a meter: a program that has
  // loaded every library of the toolkit holds some hundred MiB beside its reserve.
  static constexpr Bytes kUnasked = Bytes::from_mib(512);
  static constexpr unsigned kTold = 2;     // readings in a row
  static constexpr unsigned kCertain = 3;  // the same

  struct Seen {
    core::JobId job;
    core::Escape escape;
    // Three fresh readings say so, and none of the job's processes there is under MPS, where the
    // driver's figures are its server's.
    bool certain = false;
    bool operator==(const Seen&) const = default;
  };

  // `owners` says whose a process is; jobs that are not in `jobs` are not judged. The same reading
  // once more changes nothing, and says the same.
  std::vector<Seen> see(const CardSnapshot& snapshot, const std::map<pid_t, core::JobId>& owners,
                        const std::vector<EscapeJob>& jobs);

 private:
  using Key = std::tuple<core::JobId, pid_t, std::uint64_t, std::string>;
  std::map<Key, unsigned> readings_;  // in a row
  std::vector<Seen> last_;
  seam::Nanoseconds at_{-1};
};

}  // namespace mete::node
