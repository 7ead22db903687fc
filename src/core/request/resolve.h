// SPDX-License-Identifier: Apache-2.0
// What a request comes to on given cards when nobody else is asked: exact bytes on exact cards, or
// why not. Pure: cards in, shares out; no room is reserved and no driver is called. `mete cap`,
// which has no reservation, takes the first of them; placement among competing jobs (core/place)
// chooses from the same options, so that both mean the same by the same words and refuse in the
// same words.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/request/gpu.h"
#include "core/where/query.h"

namespace mete::core {

// A card as far as a request cares.
struct Card {
  std::uint32_t index = 0;
  std::string uuid;  // "GPU-..."
  std::string type;  // "H200"
  Bytes capacity;
  Bytes total = {};       // all that is built in, for --where; zero: not known
  std::string name = {};  // "NVIDIA H200"; "": not known
  bool operator==(const Card&) const = default;
};

struct Request {
  // Absent: nothing was said. With devices that means those cards whole.
  std::optional<GpuRequest> gpu;
  // Cards by index, UUID or an unambiguous beginning of a UUID, in the order in which the program
  // sees them.
  std::vector<std::string> devices;
  std::optional<std::string> gpu_type;
  // Placement alone looks at these.
  std::optional<Query> where;  // only cards, or a machine, of which this is true
  std::uint32_t procs = 1;     // --procs: processes that share the grant evenly
  bool or_cpu = false;         // --or-cpu: without a GPU rather than wait for one
  bool parkable = false;       // its memory can be taken from it: beside it there must be a mover
  std::optional<unsigned> cpus;
  std::optional<Bytes> ram;
  // The order says nothing; it is for finding equal ones.
  auto operator<=>(const Request&) const = default;
};

// One card of a resolved request. `from` is reserved, `limit` is the cap; they differ only for
// growing shares.
struct CardShare {
  Card card;
  Bytes from;
  Bytes limit;
  bool operator==(const CardShare&) const = default;
};

// What a request comes to on one card of a list; `from` and `limit` as in CardShare.
struct CardOption {
  std::size_t at = 0;  // position of the card in that list
  Bytes from;
  Bytes limit;
  bool operator==(const CardOption&) const = default;
};

// Where a request could go if the cards were empty.
struct CardOptions {
  GpuRequest gpu;          // what was asked for, with what the words leave out filled in
  std::size_t wanted = 0;  // so many different cards; zero: no GPU
  // Every card that is large enough, at least `wanted`, in the order of the list. With --devices
  // exactly those, in the order given.
  std::vector<CardOption> cards;
};
Result<CardOptions> options_for(const Request& request, std::span<const Card* const> cards);

// The first `wanted` of the options: the cards in the order in which the program shall see them;
// empty for "0". Shares are cut to kGranule. Errors: invalid (contradicting or ambiguous words),
// infeasible (these cards can never give that).
Result<std::vector<CardShare>> resolve(const Request& request, const std::vector<Card>& cards);

}  // namespace mete::core
