// SPDX-License-Identifier: Apache-2.0
// See visible.h. Indices are in PCI order: NVML's, and the one that is set for jobs.
#include "core/request/visible.h"

#include <algorithm>

#include "base/text.h"

namespace mete::core {

namespace {

std::vector<Card> named_by(const std::string& entry, const std::vector<Card>& cards) {
  std::vector<Card> found;
  const bool number = entry.find_first_not_of("0123456789") == std::string::npos;
  const Result<std::uint64_t> index = base::parse_uint(entry);
  for (const Card& card : cards)
    if (number ? index && card.index == *index : card.uuid.starts_with(entry))
      found.push_back(card);
  return found;
}

}  // namespace

Result<std::vector<Card>> visible_cards(const std::vector<Card>& cards,
                                        const std::optional<std::string>& cuda_visible_devices) {
  if (!cuda_visible_devices) return cards;
  const std::string says = "CUDA_VISIBLE_DEVICES=" + base::quote(*cuda_visible_devices);
  std::vector<Card> visible;
  for (const std::string_view part : base::split(*cuda_visible_devices, ',')) {
    const std::string entry(base::trim(part));
    if (entry.starts_with("MIG-")) {
      return Error::unsupported(says + ": MIG slices cannot be capped yet")
          .with_hint("give the program a whole card");
    }
    if (entry.empty()) break;
    const std::vector<Card> found = named_by(entry, cards);
    if (found.size() > 1) return Error::invalid(says + ": " + base::quote(entry) + " is ambiguous");
    if (found.empty()) break;
    if (std::find(visible.begin(), visible.end(), found.front()) != visible.end())
      return Error::invalid(says + " names a card twice");
    visible.push_back(found.front());
  }
  return visible;
}

}  // namespace mete::core
