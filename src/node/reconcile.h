// SPDX-License-Identifier: Apache-2.0
// Writes NVML's readings into a grant file: the card's free memory, what each process really holds,
// how far that exceeds its charge, and what processes without a meter hold. Also gives back the
// charges of dead processes, and the unneeded part of the reserves of living ones.
//
// Runs in a helper process of the launcher (or of the daemon): the meter itself never calls NVML.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "abi/grant.h"
#include "abi/process.h"
#include "node/sampler.h"
#include "node/unasked.h"

namespace mete::node {

// A process of the job that holds GPU memory outside its meter.
struct Escape {
  pid_t pid = 0;
  std::uint32_t card = 0;  // position in the grant
  Bytes used;
  bool operator==(const Escape&) const = default;
};

class Reconciler {
 public:
  // Claims a slot of the grant for this process, to act with; it is never charged. The grant stays
  // mapped. `path` is its file, on which leases are tested; empty: not at all.
  explicit Reconciler(abi::Grant& grant, std::string path = "");

  // Call before the reading is taken: a block freed while NVML is being read must not look like
  // excess.
  void before_sample();
  // Any number of times between the two, if the reading takes long to arrive (another process takes
  // it): a charge that was there at one of these moments covers what the reading shows.
  void during_sample();
  // `job` are the living processes of the job, with NVML's pids. Returns those that escaped.
  std::vector<Escape> apply(const Sample& sample, const std::set<pid_t>& job);

 private:
  struct Seen {
    std::uint64_t owner = 0;
    // Units: the lowest and highest charge since before the reading.
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    bool is_settled = false;  // no call was inside the driver, and the reserve may be lent
    Unasked unasked;
  };
  void note(Seen& seen, std::uint32_t slot, std::uint32_t card) const;
  // The living processes of the job in other pid namespaces than ours, by (namespace, pid there) →
  // pid here.
  using Inside = std::map<std::pair<std::uint64_t, std::uint32_t>, pid_t>;
  Inside look_inside(const std::set<pid_t>& job) const;
  // The pid here of a slot's process; nullopt: it is in a namespace that we cannot see into.
  std::optional<pid_t> pid_here(std::uint64_t owner, const Inside& inside) const;
  // The death of a process in another pid namespace is not visible from outside: its lease shows
  // it.
  void reap_inside();
  abi::Viewer viewer() const { return {owner_, path_.c_str()}; }
  // Charges what a process holds beyond its charge, and gives back what it does not need.
  void settle(std::uint32_t slot, std::uint32_t card, std::uint64_t held_bytes);

  abi::Grant& grant_;
  std::string path_;
  abi::Self self_;
  std::uint64_t owner_ = 0;
  int slot_ = -1;
  // From the header as it was at first, within bounds: the job's own user can write the file
  // meanwhile.
  std::uint32_t cards_;
  std::uint32_t parts_;
  std::vector<std::vector<Seen>> seen_;  // [slot][card]
  std::set<std::uint64_t>
      missed_;               // owner words in other namespaces whose lease was free last time
  std::set<pid_t> escaped_;  // reported already
};

}  // namespace mete::node
