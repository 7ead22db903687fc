// SPDX-License-Identifier: Apache-2.0
// See reject.h.
#include "core/cluster/reject.h"

#include <algorithm>

namespace mete::core::cluster {

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::kType:
      return "type";
    case Cause::kTooSmall:
      return "too-small";
    case Cause::kCpu:
      return "cpu";
    case Cause::kRam:
      return "ram";
    case Cause::kCards:
      return "cards";
    case Cause::kHasRoom:
      return "room";
  }
  return "";
}

Cause cause_on(const Group& group, const Shape& shape, const Kind& kind) {
  const Ask& ask = kind.ask;
  if (ask.cards > 0) {
    if (group.empty.cards == 0) return Cause::kType;
    if (!ask.types.empty() &&
        !std::binary_search(ask.types.begin(), ask.types.end(), group.card_type))
      return Cause::kType;
  }
  if (kind.share(shape.group) == Kind::kNever) return Cause::kTooSmall;
  if (shape.cpu < ask.cpu_milli) return Cause::kCpu;
  if (shape.ram < ask.ram_mib) return Cause::kRam;
  return kind.fits(shape) ? Cause::kHasRoom : Cause::kCards;
}

Rejection reject(const Cluster& cluster, KindId id) {
  Rejection rejection;
  const Kind& kind = cluster.kind(id);
  for (const ClassId cls : cluster.classes()) {
    const Shape& shape = cluster.shape(cls);
    const Cause cause = cause_on(cluster.groups()[index_of(shape.group)], shape, kind);
    rejection.nodes[static_cast<std::size_t>(cause)] += cluster.count(cls);
  }
  return rejection;
}

}  // namespace mete::core::cluster
