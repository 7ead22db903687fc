// SPDX-License-Identifier: Apache-2.0
// What a request comes to on given cards, without other jobs: exact bytes on exact cards, or why
// not. Pure: cards in, shares out; no room is reserved and no driver is called. `mete cap`, which
// has no reservation, takes the first options; placement among competing jobs (core/place) chooses
// from the same options, so that both give a request one meaning and the same errors.
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

struct Card {
  std::uint32_t index = 0;
  std::string uuid;  // "GPU-..."
  std::string type;  // "H200"
  Bytes capacity;
  Bytes total = {};       // all memory of the card, for --where; zero: unknown
  std::string name = {};  // "NVIDIA H200"; "": unknown
  bool operator==(const Card&) const = default;
};

struct Request {
  // Absent: no --gpu. With devices that means those cards whole.
  std::optional<GpuRequest> gpu;
  // Cards by index, UUID or an unambiguous beginning of a UUID, in the order in which the program
  // sees them.
  std::vector<std::string> devices;
  std::optional<std::string> gpu_type;
  // Only placement uses these:
  std::optional<Query> where;  // only cards, or a machine, of which this is true
  std::uint32_t procs = 1;     // --procs: processes that share the grant evenly
  bool or_cpu = false;         // --or-cpu: run without a GPU rather than wait for one
  bool parkable = false;       // its memory can be taken away: needs a mover on its cards
  std::optional<unsigned> cpus;
  std::optional<Bytes> ram;
  // The order has no meaning; it is for finding equal requests.
  auto operator<=>(const Request&) const = default;
};

// A card of a resolved request. `from` is reserved, `limit` is the cap; they differ only for
// growing shares.
struct CardShare {
  Card card;
  Bytes from;
  Bytes limit;
  bool operator==(const CardShare&) const = default;
};

// A request on one card of a list; `from` and `limit` as in CardShare.
struct CardOption {
  std::size_t at = 0;  // position of the card in the list
  Bytes from;
  Bytes limit;
  bool operator==(const CardOption&) const = default;
};

// Where a request could go if the cards were empty.
struct CardOptions {
  GpuRequest gpu;          // the request, with defaults filled in
  std::size_t wanted = 0;  // number of different cards; zero: no GPU
  // Every card that is large enough, at least `wanted`, in the order of the list. With --devices
  // exactly the named cards, in the order given.
  std::vector<CardOption> cards;
};
Result<CardOptions> options_for(const Request& request, std::span<const Card* const> cards);

// The first `wanted` options: the cards in the order in which the program sees them; empty for "0".
// Shares are cut to kGranule. Errors: invalid (contradicting or ambiguous options), infeasible
// (these cards can never give that).
Result<std::vector<CardShare>> resolve(const Request& request, const std::vector<Card>& cards);

}  // namespace mete::core
