// SPDX-License-Identifier: Apache-2.0
// The machine as last read: values of core, and the measured figures that no decision needs. The
// daemon makes it (daemon/machine.h); serve keeps it and makes documents from it on demand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/engine.h"

namespace mete::serve {

// Figures of a card beside those that placement uses (core::PoolCard). nullopt: not known.
struct CardFigures {
  std::optional<unsigned> utilisation_pct;
  std::optional<Bytes> used;
  bool sized = false;  // this reading has the card's capacity; otherwise it is from an earlier one
  std::optional<int> temperature_c = {};
  std::optional<unsigned> power_mw = {};
  std::optional<unsigned> power_limit_mw = {};
  std::optional<unsigned> numa = {};
  struct Link {
    std::uint32_t to = 0;     // index of the other card
    std::uint32_t count = 0;  // NVLinks between the two
  };
  std::vector<Link> links = {};
  // A process outside mete, or a claim of another daemon.
  struct Stranger {
    std::optional<std::int32_t> pid;  // nullopt: a claim
    std::string user;
    std::optional<Bytes> used = {};
    std::string name = {};  // of its program: "python"; "": not known
    std::optional<unsigned> utilisation_pct = {};
  };
  std::vector<Stranger> strangers = {};
};

// One process of a job on one card. A process on two cards is listed twice.
struct JobProcess {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  // 0: not known
  std::int32_t parent = 0;        // 0: not known
  std::uint32_t card = 0;         // index
  std::string name;               // "python"; "": not known
  std::optional<Bytes> used;
  std::optional<unsigned> utilisation_pct;
};

struct MachineReading {
  core::Pool pool;                           // without our own grants
  std::map<std::string, CardFigures> cards;  // by UUID: every card of the pool
  // What each job holds, by card UUID.
  std::map<core::JobId, std::map<std::string, Bytes>> used;
  // The most that each job has held according to its meter, by card UUID.
  std::map<core::JobId, std::map<std::string, Bytes>> peaks;
  std::map<core::JobId, std::vector<JobProcess>> processes;  // sorted by pid, then card
  std::map<core::JobId, WallTime> idle_since;                // jobs known to be idle on their cards
  std::optional<seam::Nanoseconds> read_at;                  // CLOCK_MONOTONIC
  std::string trouble;                                       // why this reading is old or missing
  std::optional<Error> unread;                               // why no card was ever read
  std::string driver;                                        // its version
};

}  // namespace mete::serve
