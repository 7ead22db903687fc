// SPDX-License-Identifier: Apache-2.0
// See need.h. needs_of() takes the usable cards of which --where is ever true (find_usable);
// options_for() gives their bytes, as for `mete cap`. Cards of which --where is not true now are
// marked (apply_where), and cards on which a process of --procs gets too little are left out
// (keep_divisible). A step that leaves too few cards says why.
#include "core/place/need.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "core/place/match.h"
#include "core/place/room.h"

namespace mete::core {

namespace {

constexpr std::size_t kNamedUnusable = 4;

std::string name_of(const PoolCard& card) { return "card " + std::to_string(card.card.index); }

// "card 1: split into MIG slices; card 3: compute mode is prohibited; and 2 more".
std::string left_out(const Pool& pool) {
  std::vector<std::string> parts;
  std::size_t count = 0;
  for (const PoolCard& card : pool.cards) {
    if (card.unusable.empty() || ++count > kNamedUnusable) continue;
    parts.push_back(name_of(card) + ": " + card.unusable);
  }
  if (count > kNamedUnusable)
    parts.push_back("and " + std::to_string(count - kNamedUnusable) + " more");
  return base::join(parts, "; ");
}

Bytes round_up(Bytes bytes) {
  const Bytes down = bytes.round_down(kGranule);
  return down == bytes ? bytes : down + kGranule;
}

// How many processes share each card.
struct Division {
  std::uint32_t procs = 1;
  std::uint32_t per_card = 1;
};

// The least that a part needs on a card, and the sum for all parts there.
Bytes least_part(const PoolCard& card) {
  return card.context.is_zero() ? kGranule : round_up(card.context + kLeastUse);
}
std::optional<Bytes> least_share(const PoolCard& card, Division division) {
  return least_part(card).checked_mul(division.per_card);
}

// How many processes a card can serve if all of it is granted.
std::uint64_t most_parts(const PoolCard& card) {
  if (card.one_process) return 1;
  return card.card.capacity.count() / least_part(card).count();
}

// The smallest share that is enough for its processes on as many cards as needed.
std::optional<Bytes> smallest_share(const Pool& pool, const Needs& needs, Division division) {
  std::optional<Bytes> smallest;
  const auto would_do = [&](const Need& need, Bytes share) {
    const PoolCard& card = pool.cards[need.at];
    if (card.one_process && division.per_card > 1) return false;
    const std::optional<Bytes> least = least_share(card, division);
    return least && *least <= share && share <= card.card.capacity;
  };
  for (const Need& candidate : needs.cards) {
    const std::optional<Bytes> share = least_share(pool.cards[candidate.at], division);
    if (!share || (smallest && *smallest <= *share)) continue;
    const auto suitable = std::count_if(needs.cards.begin(), needs.cards.end(),
                                        [&](const Need& n) { return would_do(n, *share); });
    if (static_cast<std::size_t>(suitable) >= needs.wanted) smallest = share;
  }
  return smallest;
}

// --procs with the most processes that could be served, or "".
std::string fewer_processes(const Pool& pool, const Needs& needs) {
  std::vector<std::uint64_t> most;
  most.reserve(needs.cards.size());
  for (const Need& need : needs.cards) most.push_back(most_parts(pool.cards[need.at]));
  std::sort(most.rbegin(), most.rend());
  const std::uint64_t per_card = most[needs.wanted - 1];
  return per_card == 0 ? "" : "--procs " + std::to_string(per_card * needs.wanted) + " would fit";
}

Error parts_too_small(const Pool& pool, const Needs& needs, const Need& need, Division division) {
  const PoolCard& card = pool.cards[need.at];
  const std::string procs = "--procs " + std::to_string(division.procs);
  Error error = Error::infeasible("--gpu " + as_written(needs.gpu) + " is too little for " + procs);
  error.evidence =
      "each process would have " + to_string(part_of(need.bytes, division.per_card, 1)) + " of " +
      name_of(card) +
      (card.context.is_zero() ? std::string(", less than the driver gives")
                              : ", where a context takes " + to_string(card.context) +
                                    " and at least " + to_string(kLeastUse) + " more are of use");
  if (const std::optional<Bytes> share = smallest_share(pool, needs, division); share) {
    GpuRequest enough = needs.gpu;
    enough.memory = Size{*share};
    error.hint = "--gpu " + to_string(enough) + " would fit";
  } else {
    error.hint = fewer_processes(pool, needs);
  }
  return error;
}

Result<Division> divide(const Request& request, const Needs& needs) {
  const std::uint32_t procs = request.procs;
  if (procs == 0)
    return Error::invalid("--procs 0: a job has at least one process").with_hint("leave it out");
  const auto cards = static_cast<std::uint32_t>(needs.wanted);
  if (procs == 1) return Division{1, 1};
  if (procs % cards == 0) return Division{procs, procs / cards};
  Error error = Error::invalid("--procs " + std::to_string(procs) + " cannot be divided between " +
                               std::to_string(cards) + " cards");
  // The machine decides how many cards `all` is, so the request itself is valid.
  if (needs.gpu.cards.kind == CardCount::Kind::kAll) error.code = ErrorCode::kInfeasible;
  error.evidence = "each card has the same number of processes";
  const std::uint64_t below = procs - procs % cards;
  error.hint = "--procs " + std::to_string(below == 0 ? cards : below) + " would fit";
  return error;
}

// Leaves the cards that can serve every process, or says why there are too few.
Result<void> keep_divisible(const Pool& pool, const Request& request, Needs& needs) {
  const Result<Division> division = divide(request, needs);
  if (!division) return division.error();
  if (division->procs == 1) return {};
  std::vector<Need> kept;
  const Need* too_small = nullptr;
  const PoolCard* one_process = nullptr;
  for (const Need& need : needs.cards) {
    const PoolCard& card = pool.cards[need.at];
    const std::optional<Bytes> least = least_share(card, *division);
    if (card.one_process && division->per_card > 1) {
      one_process = &card;
    } else if (!least || *least > need.bytes) {
      // The error is about the card that comes nearest.
      if (too_small == nullptr || need.bytes > too_small->bytes) too_small = &need;
    } else {
      kept.push_back({need.at, need.whole, need.whole ? *least : need.bytes, need.most, need.mover,
                      need.not_now});
    }
  }
  if (kept.size() < needs.wanted) {
    if (too_small != nullptr) return parts_too_small(pool, needs, *too_small, *division);
    return Error::infeasible("--procs " + std::to_string(division->procs) +
                             " needs cards that several processes may use at once")
        .with_evidence(name_of(*one_process) + " is in exclusive-process mode")
        .with_hint("--procs " + std::to_string(needs.wanted) + " would fit");
  }
  needs.cards = std::move(kept);
  return {};
}

}  // namespace

Bytes part_of(Bytes share, std::uint32_t procs, std::size_t cards) {
  METE_ASSERT(procs != 0 && cards != 0);
  if (procs == 1) return share.round_down(kGranule);
  METE_ASSERT(procs % cards == 0);
  return share.checked_scale(1, procs / cards)->round_down(kGranule);
}

namespace {

// The cards that a request may have if they are large enough, and their positions in the pool.
struct Usable {
  std::vector<const Card*> cards;
  std::vector<std::size_t> positions;
  std::vector<Card> beside_mover;  // their capacity for jobs that can be parked
};

// Cards that --devices names are taken by name: apply_where() reports that --where excludes them.
void find_usable(const Pool& pool, const Request& request, const std::vector<Match>& where,
                 Usable& usable) {
  usable.cards.reserve(pool.cards.size());
  usable.positions.reserve(pool.cards.size());
  if (request.parkable) usable.beside_mover.reserve(pool.cards.size());
  for (std::size_t at = 0; at < pool.cards.size(); ++at) {
    if (!pool.cards[at].unusable.empty()) continue;
    if (request.where && request.devices.empty() && !where[at].ever) continue;
    usable.cards.push_back(&pool.cards[at].card);
    usable.positions.push_back(at);
    if (!request.parkable) continue;
    Card& card = usable.beside_mover.emplace_back(pool.cards[at].card);
    card.capacity = card.capacity.minus(pool.cards[at].mover);
    usable.cards.back() = &card;
  }
}

Result<Needs> without_cards(const Pool& pool, const Request& request, Needs needs) {
  if (!request.where) return needs;
  const Match machine = machine_matches(pool, *request.where);
  if (!machine.ever) return never_matches(pool, *request.where);
  needs.machine_not_now = !machine.now;
  return needs;
}

// Marks the cards of which --where is not true now. Of a named card it must be able to become true.
Result<void> apply_where(const Pool& pool, const Request& request, const std::vector<Match>& where,
                         Needs& needs) {
  if (!request.where) return {};
  for (Need& need : needs.cards) {
    need.not_now = !where[need.at].now;
    if (where[need.at].ever) continue;
    Error error = never_matches(pool, *request.where);
    error.message = "--devices names " + name_of(pool.cards[need.at]) + ", of which --where " +
                    base::quote(request.where->text()) + " is never true";
    return error;
  }
  return {};
}

}  // namespace

Result<Needs> needs_of(const Pool& pool, const Request& request) {
  if (request.procs > 1 && request.gpu && std::holds_alternative<Growing>(request.gpu->memory))
    return Error::invalid("--procs divides a share evenly, and one that grows has no even parts")
        .with_hint("give one size, such as --gpu 8G");
  const std::vector<Match> where =
      request.where ? matches(pool, *request.where) : std::vector<Match>();
  Usable usable;
  find_usable(pool, request, where, usable);
  const bool asks_for_cards = request.gpu != no_gpu();
  if (request.where && asks_for_cards && usable.cards.empty() && !pool.cards.empty())
    return never_matches(pool, *request.where);
  Result<CardOptions> options = options_for(request, usable.cards);
  if (!options) {
    Error error = std::move(options).error();
    if (error.code == ErrorCode::kInfeasible && usable.cards.size() < pool.cards.size()) {
      if (const std::string out = left_out(pool); !out.empty())
        error.evidence += (error.evidence.empty() ? "" : "; ") + out;
      if (request.where)
        error.evidence += (error.evidence.empty() ? "" : "; ") + std::string("--where leaves ") +
                          std::to_string(usable.cards.size()) + " of " +
                          std::to_string(pool.cards.size()) + " cards";
    }
    return error;
  }
  Needs needs{options->gpu, options->wanted, !request.devices.empty(), {}};
  if (needs.wanted == 0) return without_cards(pool, request, std::move(needs));
  const bool whole = std::holds_alternative<WholeCard>(needs.gpu.memory);
  needs.cards.reserve(options->cards.size());
  for (const CardOption& option : options->cards)
    needs.cards.push_back(
        {usable.positions[option.at], whole, option.from, option.limit,
         request.parkable ? mover_missing(pool.cards[usable.positions[option.at]]) : Bytes()});
  if (Result<void> r = apply_where(pool, request, where, needs); !r) return std::move(r).error();
  if (Result<void> r = keep_divisible(pool, request, needs); !r) return std::move(r).error();
  if (whole && request.procs == 1)
    for (Need& need : needs.cards) need.bytes = kGranule;
  return needs;
}

}  // namespace mete::core
