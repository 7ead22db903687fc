// SPDX-License-Identifier: Apache-2.0
// The cards of a machine as documents have them: {"schema":"mete.cards/1",...}, see
// docs/formats/cards.schema.json. A figure that is not known is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace mete::wire {

struct CardView {
  std::uint32_t index = 0;
  std::string uuid;
  std::string name;
  std::string type;
  std::string state = "ok";  // ok, drained, lost
  std::string unusable;      // why nothing can be granted here, if so
  std::optional<Bytes> total;
  std::optional<Bytes> capacity;
  Bytes granted;
  std::optional<Bytes> used;
  std::optional<Bytes> foreign;
  Bytes over;  // held by jobs beyond their grants; no part of `granted` or `foreign`
  Bytes grantable;
  std::optional<unsigned> utilisation_pct;
  std::optional<int> temperature_c;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> reading_age_s;
  std::optional<unsigned> numa;
  struct Link {
    std::uint32_t to = 0;
    std::uint32_t count = 0;
  };
  std::vector<Link> links;
  struct JobShare {
    std::string id;
    std::string user;
    Bytes bytes;
    bool whole = false;
    std::optional<Bytes> used;
    Bytes outside = {};     // its meter, by what was last told of its processes
    std::string name = {};  // "": a job that the reader may not look at
    std::optional<WallTime> idle_since = {};
    Bytes over = {};  // what it holds beyond `bytes`
  };
  std::vector<JobShare> jobs;
  struct Foreign {
    std::optional<std::int32_t> pid;  // absent: another daemon's claim
    std::string user;
    std::optional<Bytes> used;
    std::string name = {};  // of its program: "python"; "": not known
    std::optional<unsigned> utilisation_pct = {};
  };
  std::vector<Foreign> foreign_list;
};

// `trouble` says why the readings are missing or old, if so: "the driver does not answer".
struct CardsDocument {
  WallTime at;
  std::string trouble;
  std::vector<CardView> cards;
};
std::string encode(const CardsDocument& document);
Result<CardsDocument> decode_cards(std::string_view json);

// {"schema":"mete.daemon/1",...}
struct DaemonView {
  std::string version;
  std::int32_t pid = 0;
  std::string mode;  // "user", "system"
  std::string socket;
  std::string state_dir;
  std::uint64_t uptime_s = 0;
  std::uint64_t pending = 0;
  std::uint64_t running = 0;
  std::string policy;
  std::string trouble;
  bool disk_full = false;
  std::optional<std::uint64_t> idle_end_s;  // ends by itself after so long without anything to do
  std::string metrics = {};                 // where they are served beside the socket; "": nowhere
  std::string metrics_trouble = {};         // why not, though the configuration says so
  std::string escapes = "warn";             // what is done about memory outside meters; or "stop"
  // Of notifications, since this daemon began.
  struct Notify {
    std::uint64_t waiting = 0;
    std::uint64_t sent = 0;
    std::uint64_t failed = 0;   // given up after some tries
    std::uint64_t dropped = 0;  // there were too many
    bool operator==(const Notify&) const = default;
  };
  Notify notify = {};
  std::string simulated = {};  // METE_SIM; "": real cards
};
std::string encode(const DaemonView& view, WallTime at);
Result<DaemonView> decode_daemon(std::string_view json);

}  // namespace mete::wire
