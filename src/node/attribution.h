// SPDX-License-Identifier: Apache-2.0
// Which job holds what on the cards: each process there belongs to a job of ours, to a claim of
// another daemon, or is foreign. Pure: a snapshot, the jobs and the claims in; figures and texts
// out. In doubt memory counts as held, never as free, and the next snapshot decides anew.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "node/card_snapshot.h"
#include "seam/launcher.h"

namespace mete::node {

// A job of ours that holds a grant.
struct JobHold {
  core::JobId id;
  std::optional<core::ProcessRef> runner;
  std::uint32_t uid = 0;
  // What its meter has charged, by card UUID: for drivers that do not list processes.
  std::map<std::string, Bytes> charged;
  std::vector<std::string> cards = {};  // that it was granted, by UUID
};

// What another daemon claims on one card.
struct OtherHold {
  std::string who;
  std::optional<core::ProcessRef> runner;
  std::string uuid;
  std::optional<Bytes> bytes = {};  // nullopt: the claim covers everything that its processes hold
};

struct ForeignProcess {
  pid_t pid = 0;
  std::string user;  // "" when hidden from us
  std::string comm;
  std::optional<Bytes> used;
  bool operator==(const ForeignProcess&) const = default;
};

// As text, for users and for placement; all of them together are everything on the card that is
// neither a job's nor within a claim. What a job holds beyond its grant is not judged here.
struct HeldBy {
  std::string who;  // "process 412 of alice (python)", "2 processes of bob"
  Bytes bytes;
  std::string user = {};          // "": not known
  std::optional<pid_t> pid = {};  // of a single process
  bool operator==(const HeldBy&) const = default;
};

struct CardUse {
  std::string uuid;
  std::map<core::JobId, Bytes> jobs;  // what each really holds; also beyond its grant
  std::set<core::JobId> silent;       // jobs for which the driver does not report everything
  Bytes claimed;                      // held by processes of other daemons' claims, within these
  std::vector<HeldBy> over_claim;     // what these processes hold beyond their claims
  std::vector<ForeignProcess> foreign;
  // In use, though no listed process holds it; zero when that is no more than noise.
  Bytes unlisted;
  // Held by processes that had ended when they were looked up.
  Bytes ending;
  bool processes_known = false;
  // foreign, over_claim, unlisted and ending as text, the largest first
  std::vector<HeldBy> outside;

  Bytes outside_bytes() const;
  bool operator==(const CardUse&) const = default;
};

struct Attribution {
  std::vector<CardUse> cards;  // as in the snapshot
  // The job of each process: passed in again next time, so that a process that ends between a
  // reading and the look at it is still known.
  std::map<pid_t, core::JobId> owners;
};

// Unlisted memory below this is the driver's own bookkeeping.
inline constexpr Bytes kUnlistedNoise = Bytes::from_mib(64);
// An excess below this means that the reading is a moment older than the claim.
inline constexpr Bytes kClaimNoise = Bytes::from_mib(64);

Attribution attribute(const CardSnapshot& snapshot, const std::vector<JobHold>& jobs,
                      const std::vector<OtherHold>& others,
                      const std::map<pid_t, core::JobId>& owners_before);

}  // namespace mete::node
