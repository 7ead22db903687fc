// SPDX-License-Identifier: Apache-2.0
// Why a job waits, as data: what it needs, what is in the way on each card, who holds what there;
// or the time, job, limit or person that it waits for. A wait has no sentences: wire/wait_text.h
// makes them, in the language and the time zone of their reader.
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

// A job that has a share of a card.
struct Holder {
  JobId job;
  std::string user;
  std::string name;
  Bytes bytes;
  bool whole = false;
  bool parked = false;    // does nothing there; the bytes are what it could not give away
  bool parkable = false;  // needs a mover beside it
  std::optional<WallTime> ends_at = {};  // at the latest, by its --time
  bool operator==(const Holder&) const = default;
};

// Memory of a card that is no grant of this daemon.
struct Outside {
  // "process 412 of alice", "2 processes of bob", "bob's mete"; "": it is reserved.
  std::string who;
  Bytes bytes;
  // A job of ours that holds this beyond its grant. The job itself may still use it: it is not in
  // its own way.
  std::optional<JobId> job = {};
  std::string user = {};                 // "": not known
  std::optional<std::int32_t> pid = {};  // of a single process
  struct Reserved {
    std::uint64_t id = 0;
    WallTime until;
    bool operator==(const Reserved&) const = default;
  };
  std::optional<Reserved> reserved = {};  // for `user`
  bool operator==(const Outside&) const = default;
};

// Why a job cannot have a card.
enum class InTheWay {
  kNothing,
  kLost,
  kDrained,
  kStale,       // not read lately, so what others hold is not known
  kHeldWhole,   // another job has the card for itself
  kOneProcess,  // the driver lets one process use it, and there is one
  kNotAlone,    // a whole card is needed, and others are there
  kForeign,     // a whole card is needed, and processes outside mete hold too much of it
  kTooFull,
  kHeldBack,  // there is room, and it is kept for a job further ahead in the queue
  kWhere,     // there is room, and --where is not true of it as it is
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

// The most cards of a wait, and the most holders and the most outside memory of each card. What is
// beyond is counted.
inline constexpr std::size_t kWaitCards = 8;
inline constexpr std::size_t kWaitShares = 4;

// One card that a waiting job cannot have now.
struct CardWait {
  std::uint32_t index = 0;
  InTheWay why = InTheWay::kNothing;
  bool whole = false;            // the job needs the card for itself
  std::optional<Bytes> needed;   // with a mover beside it; absent: the request is not for this card
  std::optional<Bytes> free;     // absent: not known
  Bytes kept;                    // of the card, for jobs further ahead in the queue
  std::vector<Holder> holders;   // the largest first
  std::vector<Outside> outside;  // the largest first
  std::uint32_t unlisted = 0;    // holders and outside memory that are not in the two lists
  std::string detail;            // kUnusable: why; kType: the type that is asked for
  bool operator==(const CardWait&) const = default;
};

// What a request needs of cards.
struct CardNeed {
  std::uint32_t cards = 1;
  std::optional<GpuRequest> share;    // of one card: "8G", "40%", "1" for a whole card
  std::optional<Bytes> bytes;         // that this comes to, if that is equal for all cards
  std::optional<std::uint32_t> card;  // the only one that --devices names
  std::uint32_t with_room = 0;        // cards that have room, while too few have
  bool operator==(const CardNeed&) const = default;
};

// The room that a job waits for. If all of it is empty the job waits for nothing but its turn.
struct RoomWait {
  std::optional<CardNeed> needs = {};
  std::vector<CardWait> cards = {};  // those asked for first, each list by index or as named
  std::uint32_t unlisted = 0;        // cards without room that are not in `cards`
  bool machine = false;              // --where must become true of this machine
  bool returns = false;              // a parked job, to its own cards
  bool operator==(const RoomWait&) const = default;
};

struct Wait {
  Reason reason = Reason::kResources;
  // Jobs whose end would help. Those that would be enough come first: on one card the fewest, the
  // last of them as small as will do; on several cards that for each, the easiest cards first.
  std::vector<JobId> holders = {};
  RoomWait room = {};

  // It has room itself, and its turn comes after that of this job.
  struct Behind {
    JobId job;
    std::string user;
    RoomWait room;  // that the job ahead waits for
    bool operator==(const Behind&) const = default;
  };
  std::optional<Behind> behind = {};
  std::vector<JobId> parking = {};  // jobs that are being parked for it
  // Jobs that may be parked for it from then on.
  struct Later {
    std::vector<JobId> jobs;
    WallTime from;
    bool operator==(const Later&) const = default;
  };
  std::optional<Later> later = {};

  std::optional<JobId> release = {};   // held: the job itself
  std::vector<After> after = {};       // --after: the first kWaitCards that have not come yet
  std::uint32_t more_after = 0;        // and how many besides
  std::optional<WallTime> until = {};  // --begin, or its next attempt
  std::string failure = {};  // why the last attempt to start it, or to bring it back, failed
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
    std::uint32_t all = 0;  // that jobs may have
    bool operator==(const Cpus&) const = default;
  };
  std::optional<Cpus> cpus = {};
  // An error's own words: cards have gone since it was submitted, and now it cannot be.
  std::string words = {};
  bool operator==(const Wait&) const = default;
};

// A wait that is never changed; empty: the job does not wait. Compared by value.
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
