// SPDX-License-Identifier: Apache-2.0
// See reconcile.h. before_sample() and during_sample() record the lowest and highest charge of each
// slot while NVML is read. apply() matches the sample's processes with slots, across pid namespaces
// if needed, writes the card's free memory and each process's figure, and lets Unasked decide what
// is excess and what of the reserve can be lent. Processes of the job without a slot are escapes.
#include "node/reconcile.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "abi/park.h"
#include "abi/reserve.h"
#include "base/text.h"
#include "node/proc.h"

namespace mete::node {

namespace {

// The position of a granted card in a sample; nullopt when the driver did not list it.
std::optional<std::size_t> find_card(const Sample& sample, const abi::GrantCard& card) {
  for (std::size_t i = 0; i < sample.cards.size(); ++i)
    if (sample.cards[i].uuid_bytes && std::equal(sample.cards[i].uuid_bytes->begin(),
                                                 sample.cards[i].uuid_bytes->end(), card.uuid))
      return i;
  return std::nullopt;
}

// The part that a process without a meter belongs to, from its environment.
std::optional<std::uint32_t> part_of(pid_t pid, std::uint32_t part_count) {
  if (part_count == 1) return 0;
  const std::optional<std::string> text = read_variable(pid, "METE_PART");
  if (!text) return std::nullopt;
  const Result<std::uint64_t> part = base::parse_uint(*text);
  if (!part || *part >= part_count) return std::nullopt;
  return static_cast<std::uint32_t>(*part);
}

// Charges what an escaped process holds. If its part is unknown (it was started with another
// environment), all parts are charged in even shares, as the card's limit is divided between them:
// the job as a whole stays within its grant, and no part pays for all.
void book_escape(pid_t pid, std::uint64_t units, std::vector<std::uint64_t>& outside) {
  const auto parts = static_cast<std::uint32_t>(outside.size());
  if (const std::optional<std::uint32_t> part = part_of(pid, parts)) {
    outside[*part] += units;
  } else {
    for (std::uint64_t& share : outside) share += (units + parts - 1) / parts;
  }
}

}  // namespace

Reconciler::Reconciler(abi::Grant& grant, std::string path)
    : grant_(grant),
      path_(std::move(path)),
      self_(abi::read_self()),
      owner_(abi::owner_of(grant, self_)),
      slot_(abi::claim_slot(grant, self_, 0, path_.c_str(), abi::SlotRole::kHelper)),
      cards_(std::min(grant.header.card_count, abi::kMaxCards)),
      parts_(std::clamp(grant.header.part_count, 1u, abi::kMaxParts)),
      seen_(abi::kSlots, std::vector<Seen>(cards_)) {}

void Reconciler::before_sample() {
  if (slot_ >= 0) abi::reap_all({grant_, static_cast<std::uint32_t>(slot_)}, viewer());
  for (std::uint32_t s = 0; s < abi::slot_count(grant_); ++s) {
    const std::uint64_t owner = grant_.slots[s].owner.load();
    for (std::uint32_t c = 0; c < cards_; ++c) {
      Seen& seen = seen_[s][c];
      if (seen.owner != owner) seen = {};
      seen.owner = owner;
      seen.least = abi::kMaxUnits;
      seen.most = 0;
      seen.is_settled = true;
      note(seen, s, c);
    }
  }
}

void Reconciler::during_sample() {
  for (std::uint32_t s = 0; s < abi::slot_count(grant_); ++s)
    for (std::uint32_t c = 0; c < cards_; ++c)
      if (Seen& seen = seen_[s][c]; seen.owner != 0 && seen.owner == grant_.slots[s].owner.load())
        note(seen, s, c);
}

void Reconciler::note(Seen& seen, std::uint32_t slot, std::uint32_t card) const {
  const std::uint64_t charge = abi::charged_units(grant_, slot, card);
  const abi::PendingWord pending =
      abi::PendingWord::unpack(grant_.slots[slot].cards[card].pending.load());
  seen.least = std::min(seen.least, charge);
  seen.most = std::max(seen.most, charge);
  seen.is_settled = seen.is_settled && pending.units == 0 && pending.open;
}

void Reconciler::settle(std::uint32_t slot, std::uint32_t card, std::uint64_t held_bytes) {
  Seen& seen = seen_[slot][card];
  note(seen, slot, card);
  abi::SlotCard& words = grant_.slots[slot].cards[card];
  const std::uint64_t unseen = words.unseen_units.load();
  const std::uint64_t inherited = abi::inherited_units(grant_, slot, card, viewer());
  const auto covered = [&](std::uint64_t charge) {
    return (charge > unseen ? charge - unseen : 0) + inherited;
  };
  const std::uint64_t lent = abi::lent_units(words);
  // A process that holds less than its context costs has a figure that is not its own (MPS), or is
  // parked.
  const bool is_plain =
      held_bytes + abi::kHeadroomBytes >= grant_.header.cards[card].context_first_bytes &&
      inherited == 0 && !abi::has_exports(grant_, slot, seen.owner) &&
      abi::ParkOrder::unpack(grant_.header.park_order.load()).kind == abi::ParkOrder::kRun;
  const Unasked::Verdict verdict =
      seen.unasked.see({abi::units_for(held_bytes), covered(seen.least), covered(seen.most), lent,
                        seen.is_settled && is_plain});
  words.excess_units.store(verdict.excess);
  const auto part = static_cast<std::uint32_t>(grant_.slots[slot].part.load());
  if (verdict.spare > 0 && slot_ >= 0 && part < parts_)
    (void)abi::lend_reserve({grant_, static_cast<std::uint32_t>(slot_)}, slot, seen.owner,
                            {part, card},
                            std::min(verdict.spare, abi::units_for(abi::kReserveBytes) - lent));
}

Reconciler::Inside Reconciler::look_inside(const std::set<pid_t>& job) const {
  Inside inside;
  for (const pid_t pid : job) {
    const Result<std::uint64_t> name_space = read_pid_namespace(pid);
    if (!name_space || *name_space == self_.name_space) continue;
    const Result<ProcessStatus> status = read_status(pid);
    if (!status || status->namespace_pids.empty()) continue;
    inside[{*name_space, static_cast<std::uint32_t>(status->namespace_pids.back())}] = pid;
  }
  return inside;
}

std::optional<pid_t> Reconciler::pid_here(std::uint64_t owner, const Inside& inside) const {
  const abi::OwnerWord word = abi::OwnerWord::unpack(owner);
  if (word.name_space == abi::OwnerWord::unpack(owner_).name_space)
    return static_cast<pid_t>(word.pid);
  if (word.name_space >= abi::kMaxNamespaces) return std::nullopt;
  const auto found = inside.find({grant_.header.namespaces[word.name_space].load(), word.pid});
  return found == inside.end() ? std::nullopt : std::optional(found->second);
}

void Reconciler::reap_inside() {
  std::set<std::uint64_t> missed;
  for (std::uint32_t s = 0; slot_ >= 0 && s < abi::slot_count(grant_); ++s) {
    const std::uint64_t owner = grant_.slots[s].owner.load();
    if (owner == 0 ||
        abi::OwnerWord::unpack(owner).name_space == abi::OwnerWord::unpack(owner_).name_space ||
        abi::ask_lease(grant_, s, owner, path_.c_str()) != abi::Lease::kFree)
      continue;
    // A process releases its lease a moment before its GPU memory: require it to be free twice in a
    // row.
    if (missed_.contains(owner))
      abi::reap_slot({grant_, static_cast<std::uint32_t>(slot_)}, s, owner, viewer());
    else
      missed.insert(owner);
  }
  missed_ = std::move(missed);
}

std::vector<Escape> Reconciler::apply(const Sample& sample, const std::set<pid_t>& job) {
  std::vector<Escape> escapes;
  const Inside inside = look_inside(job);
  reap_inside();
  for (std::uint32_t c = 0; c < cards_; ++c) {
    abi::GrantCard& granted = grant_.header.cards[c];
    const std::optional<std::size_t> at = find_card(sample, granted);
    if (!at) continue;
    if (sample.cards[*at].free) {
      granted.free_bytes.store(sample.cards[*at].free->count());
      granted.published_ns.store(static_cast<std::uint64_t>(sample.at.count()));
    }
    if (!sample.cards[*at].processes_known) continue;
    std::set<pid_t> metered;
    for (std::uint32_t s = 0; s < abi::slot_count(grant_); ++s) {
      abi::Slot& slot = grant_.slots[s];
      const std::uint64_t owner = slot.owner.load();
      const std::optional<pid_t> pid = owner == 0 ? std::nullopt : pid_here(owner, inside);
      if (!pid) continue;
      metered.insert(*pid);
      if (owner != seen_[s][c].owner) continue;  // claimed while NVML was read: next time
      const ProcessSample* process = sample.find(*pid);
      const std::uint64_t held =
          process != nullptr && process->used[*at] ? process->used[*at]->count() : 0;
      slot.cards[c].nvml_bytes.store(held);
      settle(s, c, held);
      slot.nvml_ns.store(static_cast<std::uint64_t>(sample.at.count()));
    }
    std::vector<std::uint64_t> outside(parts_);
    for (const ProcessSample& process : sample.processes) {
      if (!process.present[*at] || !job.contains(process.pid) || metered.contains(process.pid))
        continue;
      const Bytes used = process.used[*at].value_or(Bytes{});
      escapes.push_back({process.pid, c, used});
      if (escaped_.insert(process.pid).second) grant_.header.escapes.fetch_add(1);
      grant_.header.escape_pid.store(static_cast<std::uint64_t>(process.pid));
      abi::raise_to(grant_.header.escape_bytes, used.count());
      book_escape(process.pid, abi::units_for(used.count()), outside);
    }
    for (std::uint32_t p = 0; p < parts_; ++p) {
      grant_.accounts[p][c].escaped_units.store(outside[p]);
      abi::recompute_excess(grant_, {p, c});
    }
    for (std::uint32_t p = 0; p < parts_; ++p) {
      abi::Account& account = grant_.accounts[p][c];
      abi::raise_to(account.peak_units,
                    abi::total_units(grant_, {p, c}) + account.excess_units.load());
    }
  }
  return escapes;
}

}  // namespace mete::node
