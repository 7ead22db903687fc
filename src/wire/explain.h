// SPDX-License-Identifier: Apache-2.0
// Why a job waits, card by card, and what would start it now: {"schema":"mete.explain/1",...}, see
// docs/formats/explain.schema.json. For a job that does not wait: its state and one sentence. And
// what would become of a job that is not submitted: {"schema":"mete.dry-run/1",...}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/job/job.h"
#include "core/place/wait.h"

namespace mete::wire {

struct ExplainDocument {
  WallTime at;
  core::JobId id;
  core::JobState state = core::JobState::kPending;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;
  std::optional<core::Outcome> outcome;
  std::optional<std::string> lost;  // why a parked job can never come back
  core::SharedWait wait;            // for a pending job, or a parked one that may come back
  core::Remark remark = {};
  // Of another user's job: whose it is, what it asks for and what it holds.
  std::string user = {};
  std::optional<core::GpuRequest> request = {};
  std::vector<core::GrantedCard> grant = {};
  std::optional<std::uint64_t> waiting_s;
  std::optional<core::Reason> reason;
  // 1: the first of `in_line`.
  std::optional<std::uint64_t> place;
  std::optional<std::uint64_t> in_line;
  std::optional<core::Forecast> forecast;

  struct Holder {
    core::JobId id;
    std::string user;
    Bytes bytes;
    std::optional<WallTime> ends_at;
    std::string by;  // source: "limit" (--time), "estimate"; "": unknown
    std::optional<WallTime> idle_since;
    bool operator==(const Holder&) const = default;
  };
  // Memory of a card that is not granted to a job.
  struct Outside {
    std::string who;  // "process 412 of alice (python)", "bob's mete", "job 12 of carol"
    Bytes bytes;
    std::optional<core::JobId> job;  // that holds it beyond its grant
    bool operator==(const Outside&) const = default;
  };
  struct Reserved {
    std::string user;
    WallTime until;
    Bytes bytes;
    bool operator==(const Reserved&) const = default;
  };
  struct Card {
    std::uint32_t index = 0;
    std::string uuid;
    std::string name;
    std::string state = "ok";  // ok, drained, lost
    std::optional<Bytes> needs;
    std::optional<Bytes> free;
    std::vector<Holder> holders;
    std::vector<Reserved> reserved;
    std::string text;                   // why not here
    std::vector<Outside> outside = {};  // the largest first
    std::string why = {};               // to_string(core::InTheWay); "": it could be here
    bool operator==(const Card&) const = default;
  };
  std::vector<Card> cards;

  // A change that would start the job now, the smallest of its kind.
  struct Change {
    std::string kind;  // gpu, type, devices, cards, time, priority, job-ends, quota, ...
    std::string text;
    std::string argument;            // "--gpu 12G"; "": none
    std::optional<core::JobId> job;  // that would have to end
    bool operator==(const Change&) const = default;
  };
  std::vector<Change> changes;
  std::string text;  // explained_text(), for programs that make no sentences
};
std::string encode(const ExplainDocument& document);
Result<ExplainDocument> decode_explain(std::string_view json);

struct DryRunDocument {
  WallTime at;
  bool starts = false;  // at once
  std::vector<core::GrantedCard> grant;
  std::vector<core::JobId> parked;  // to make room for it
  ExplainDocument why;              // if it would wait
};
std::string encode(const DryRunDocument& document);
Result<DryRunDocument> decode_dry_run(std::string_view json);

}  // namespace mete::wire
