// SPDX-License-Identifier: Apache-2.0
// Why a job waits, as data: what it needs, what is in the way on each card, and which jobs hold
// memory there; or the time, job, limit or user that it waits for. A wait has no sentences:
// wire/wait_text.h makes them, in the language and the time zone of the reader.
//
// Equal jobs share one Wait (SharedWait), so that ten thousand of them cost as much as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/request/gpu.h"

namespace mete::core {

struct Holder {
  JobId job;
  std::string user;
  std::string name;
  Bytes bytes;
  bool whole = false;
  bool parked = false;                   // idle there; `bytes` is what it could not move away
  bool parkable = false;                 // needs a mover beside it
  std::optional<WallTime> ends_at = {};  // at the latest, by its --time
  bool operator==(const Holder&) const = default;
};

// Memory of a card that is not a grant of this daemon.
struct Outside {
  // "process 412 of alice", "2 processes of bob", "bob's mete"; "": it is reserved.
  std::string who;
  Bytes bytes;
  // A job of ours that holds this memory beyond its grant. It is not in the job's own way.
  std::optional<JobId> job = {};
  std::string user = {};                 // "": unknown
  std::optional<std::int32_t> pid = {};  // of a single process
  struct Reserved {
    std::uint64_t id = 0;
    WallTime until;
    bool operator==(const Reserved&) const = default;
  };
  std::optional<Reserved> reserved = {};  // for `user`
  bool operator==(const Outside&) const = default;
};

enum class InTheWay {
  kNothing,
  kLost,
  kDrained,
  kStale,       // not read lately, so what others hold is unknown
  kHeldWhole,   // another job has the card for itself
  kOneProcess,  // the driver lets one process use it, and there is one
  kNotAlone,    // a whole card is needed, and others are there
  kForeign,     // a whole card is needed, and processes outside mete hold too much of it
  kTooFull,
  kHeldBack,  // there is room, but it is kept for a job further ahead in the queue
  kWhere,     // there is room, but --where is not true of the card now
  // The request is not for this card:
  kUnusable,    // split into MIG slices, prohibited, left out by the configuration
  kExcluded,    // not one of --devices
  kType,        // not of --gpu-type
  kNeverWhere,  // --where is never true of it
  kTooSmall
};
std::string_view to_string(InTheWay why);  // "room", "held-back", "excluded", ...
std::optional<InTheWay> parse_in_the_way(std::string_view text);
inline bool is_asked_for(InTheWay why) { return why < InTheWay::kUnusable; }

// The most cards of a wait, and the most holders and outside entries per card. The rest is counted.
inline constexpr std::size_t kWaitCards = 8;
inline constexpr std::size_t kWaitShares = 4;

// One card that a waiting job cannot have now.
struct CardWait {
  std::uint32_t index = 0;
  InTheWay why = InTheWay::kNothing;
  bool whole = false;            // the job needs the card for itself
  std::optional<Bytes> needed;   // with a mover; absent: the request is not for this card
  std::optional<Bytes> free;     // absent: unknown
  Bytes kept;                    // for jobs further ahead in the queue
  std::vector<Holder> holders;   // the largest first
  std::vector<Outside> outside;  // the largest first
  std::uint32_t unlisted = 0;    // holders and outside memory beyond the two lists
  std::string detail;            // kUnusable: why; kType: the requested type
  bool operator==(const CardWait&) const = default;
};

struct CardNeed {
  std::uint32_t cards = 1;
  std::optional<GpuRequest> share;    // per card: "8G", "40%", "1" for a whole card
  std::optional<Bytes> bytes;         // of the share, if equal on all cards
  std::optional<std::uint32_t> card;  // the only one that --devices names
  std::uint32_t with_room = 0;        // number of cards that have room, if too few have
  bool operator==(const CardNeed&) const = default;
};

// The room that a job waits for. All empty: the job waits only for its turn in the queue.
struct RoomWait {
  std::optional<CardNeed> needs = {};
  std::vector<CardWait> cards = {};  // requested cards first, each list by index or as named
  std::uint32_t unlisted = 0;        // cards without room beyond `cards`
  bool machine = false;              // --where must become true of this machine
  bool returns = false;              // a parked job, to its own cards
  bool operator==(const RoomWait&) const = default;
};

struct Wait {
  Reason reason = Reason::kResources;
  // Jobs whose end would help. A set that is enough comes first: on one card the fewest jobs, the
  // last of them as small as possible; on several cards such a set for each, the easiest cards
  // first.
  std::vector<JobId> holders = {};
  RoomWait room = {};

  // The job has room, but this job is before it in the queue.
  struct Behind {
    JobId job;
    std::string user;
    RoomWait room;  // what the job ahead waits for
    bool operator==(const Behind&) const = default;
  };
  std::optional<Behind> behind = {};
  std::vector<JobId> parking = {};  // for this job
  // Jobs that may be parked for this one from `from` on.
  struct Later {
    std::vector<JobId> jobs;
    WallTime from;
    bool operator==(const Later&) const = default;
  };
  std::optional<Later> later = {};

  std::optional<JobId> release = {};   // held: the job itself
  std::vector<After> after = {};       // --after: the first kWaitCards that are not met yet
  std::uint32_t more_after = 0;        // unmet dependencies beyond `after`
  std::optional<WallTime> until = {};  // --begin, or the next attempt
  std::string failure = {};  // why the last attempt to start the job, or to bring it back, failed
  struct OfQuota {
    std::string user;
    OverQuota over;
    bool operator==(const OfQuota&) const = default;
  };
  std::optional<OfQuota> quota = {};
  struct OfArray {
    JobId id;
    std::uint32_t running = 0;
    std::uint32_t most = 0;
    bool operator==(const OfArray&) const = default;
  };
  std::optional<OfArray> array = {};
  struct Cpus {
    std::uint32_t needed = 0;
    std::uint32_t all = 0;  // that jobs may use
    bool operator==(const Cpus&) const = default;
  };
  std::optional<Cpus> cpus = {};
  // The text of an error: cards have gone since the submission, and the request is infeasible now.
  std::string words = {};
  bool operator==(const Wait&) const = default;
};

// An immutable wait; empty: the job does not wait. Compared by value.
class SharedWait {
 public:
  SharedWait() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a wait is one, shared or not
  SharedWait(Wait wait) : wait_(std::make_shared<const Wait>(std::move(wait))) {}
  bool has_value() const { return wait_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const Wait& operator*() const { return *wait_; }
  const Wait* operator->() const { return wait_.get(); }
  const Wait* get() const { return wait_.get(); }
  void reset() { wait_.reset(); }
  bool operator==(const SharedWait& other) const {
    return wait_ == other.wait_ || (wait_ && other.wait_ && *wait_ == *other.wait_);
  }

 private:
  std::shared_ptr<const Wait> wait_;
};

}  // namespace mete::core
