// SPDX-License-Identifier: Apache-2.0
// See topology.h.
#include "cli/topology.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/brief.h"
#include "base/text.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

using wire::CardView;

std::uint32_t links_between(const CardView& a, const CardView& b) {
  for (const CardView::Link& link : a.links)
    if (link.to == b.index) return link.count;
  return 0;
}

// Cards of which any two have the same number of links: the whole of a switch, or the two ends of a
// bridge. A card goes to the first group that it fits into.
struct Group {
  std::vector<const CardView*> cards;
  std::uint32_t links = 0;

  bool takes(const CardView& card) const {
    const std::uint32_t first = links_between(*cards.front(), card);
    if (first == 0 || (links != 0 && first != links)) return false;
    return std::all_of(cards.begin(), cards.end(),
                       [&](const CardView* other) { return links_between(*other, card) == first; });
  }
};

std::string nvlink_line(const wire::CardsDocument& document) {
  std::vector<Group> groups;
  for (const CardView& card : document.cards) {
    const auto fits = std::find_if(groups.begin(), groups.end(),
                                   [&](const Group& group) { return group.takes(card); });
    if (fits == groups.end()) {
      groups.push_back({{&card}});
      continue;
    }
    fits->links = links_between(*fits->cards.front(), card);
    fits->cards.push_back(&card);
  }
  std::vector<std::string> parts;
  for (const Group& group : groups) {
    if (group.cards.size() < 2) continue;
    std::vector<std::uint32_t> numbers;
    for (const CardView* card : group.cards) numbers.push_back(card->index);
    parts.push_back(std::string(parts.empty() ? "cards " : "") + base::number_ranges(numbers) +
                    ", " + std::to_string(group.links) +
                    (numbers.size() > 2 ? " between any two" : " between them"));
  }
  return parts.empty() ? "" : "NVLink: " + base::join(parts, "; ");
}

std::string numa_line(const wire::CardsDocument& document) {
  std::map<unsigned, std::vector<std::uint32_t>> nodes;
  for (const CardView& card : document.cards)
    if (card.numa) nodes[*card.numa].push_back(card.index);
  std::vector<std::string> parts;
  for (const auto& [node, numbers] : nodes)
    parts.push_back(std::string(!parts.empty()       ? ""
                                : numbers.size() > 1 ? "cards "
                                                     : "card ") +
                    base::number_ranges(numbers) + " at node " + std::to_string(node));
  return parts.empty() ? "" : "NUMA: " + base::join(parts, ", ");
}

}  // namespace

std::string topology_lines(const wire::CardsDocument& document) {
  if (document.cards.size() < 2) return "";
  std::vector<std::string> lines;
  for (std::string line : {nvlink_line(document), numa_line(document)})
    if (!line.empty()) lines.push_back(std::move(line));
  return base::join(lines, "\n");
}

std::string topology_table(const wire::CardsDocument& document, std::optional<std::size_t> width) {
  std::vector<std::string> titles;
  for (const CardView& card : document.cards) titles.push_back(std::to_string(card.index));
  std::vector<Column> columns{{"CARD", Align::kRight}};
  for (const std::string& title : titles) columns.push_back({title, Align::kRight});
  columns.push_back({"NUMA", Align::kRight});
  Table table(columns);
  for (const CardView& card : document.cards) {
    std::vector<std::string> cells{std::to_string(card.index)};
    for (const CardView& other : document.cards) {
      const std::uint32_t links = links_between(card, other);
      cells.push_back(&card == &other ? "x" : links != 0 ? "NV" + std::to_string(links) : "PCI");
    }
    cells.push_back(card.numa ? std::to_string(*card.numa) : "");
    table.add(cells);
  }
  return table.text(width);
}

}  // namespace mete::cli
