// SPDX-License-Identifier: Apache-2.0
// The cards that an allocation is charged on: its own card, or every card of the job for managed
// memory, whose pages may lie on any of them. All cards are charged, or none.
#pragma once

#include <cstdint>

#include "meter/budget.h"
#include "meter/reserve.h"

namespace mete::meter {

struct Cards {
  int first;
  int end;
  bool managed;  // NVML does not count it for the process

  static Cards only(int card) { return {card, card + 1, false}; }
  static Cards all() { return {0, static_cast<int>(process.grant->header.card_count), true}; }

  bool take(uint64_t units) const {
    return take_each(units, [](int card, uint64_t u) { return mete::meter::take(card, u); });
  }
  bool take_if_free(uint64_t units) const { return take_each(units, mete::meter::take_if_free); }
  void settle(uint64_t reserved, uint64_t used) const {
    for (int c = first; c < end; ++c) {
      mete::meter::settle(c, reserved, used);
      if (managed) note_unseen(c, static_cast<int64_t>(used));
    }
  }
  void release(uint64_t units) const {
    for (int c = first; c < end; ++c) {
      mete::meter::release(c, units);
      if (managed) note_unseen(c, -static_cast<int64_t>(units));
    }
  }
  // See reserve.h.
  bool keep_reserves() const {
    bool all = true;
    for (int c = first; c < end; ++c) all = keep_reserve(c) && all;
    return all;
  }
  // The charge exceeds the limit on one of the cards.
  bool over() const {
    for (int c = first; c < end; ++c)
      if (charged_bytes(c) > limit_bytes(c)) return true;
    return false;
  }

 private:
  template <class Take>
  bool take_each(uint64_t units, Take take_on) const {
    for (int c = first; c < end; ++c) {
      if (take_on(c, units)) continue;
      while (--c >= first) mete::meter::settle(c, units, 0);
      return false;
    }
    return true;
  }
};

}  // namespace mete::meter
