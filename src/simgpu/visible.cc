// SPDX-License-Identifier: Apache-2.0
// As the real driver reads CUDA_VISIBLE_DEVICES: a comma list of indices (in CUDA_DEVICE_ORDER's
// order), UUIDs or unambiguous prefixes of UUIDs. The first invalid entry hides itself and all that
// follow; a card named twice makes the whole list empty.
#include "simgpu/visible.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

namespace simgpu {
namespace {

uint64_t speed(const CardInfo& card) {
  return (static_cast<uint64_t>(card.cc_major * 10 + card.cc_minor) << 40) +
         static_cast<uint64_t>(card.sms) * card.sm_clock_mhz;
}

// PCI_BUS_ID keeps the server's order; the default puts faster cards first.
int all_cards(const CardInfo* cards, int count, const char* device_order, uint32_t* order) {
  for (int i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  if (device_order != nullptr && strcasecmp(device_order, "PCI_BUS_ID") == 0) return count;
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && speed(cards[order[j]]) > speed(cards[order[j - 1]]); --j) {
      const uint32_t swap = order[j];
      order[j] = order[j - 1];
      order[j - 1] = swap;
    }
  }
  return count;
}

// The card an entry names, or -1.
int find_card(const CardInfo* cards, int count, const uint32_t* all, const char* entry,
              size_t length) {
  if (length >= 4 && strncmp(entry, "GPU-", 4) == 0) {
    int found = -1;
    for (int i = 0; i < count; ++i) {
      if (strncasecmp(cards[i].uuid, entry, length) != 0) continue;
      if (found >= 0) return -1;  // an ambiguous prefix names no card
      found = i;
    }
    return found;
  }
  if (length == 0 || length > 6) return -1;
  int number = 0;
  for (size_t i = 0; i < length; ++i) {
    if (entry[i] < '0' || entry[i] > '9') return -1;
    number = number * 10 + (entry[i] - '0');
  }
  return number < count ? static_cast<int>(all[number]) : -1;
}

}  // namespace

int choose_cards(const CardInfo* cards, int count, const char* visible, const char* device_order,
                 uint32_t* order) {
  uint32_t all[kMaxCards];
  all_cards(cards, count, device_order, all);
  if (visible == nullptr) {
    memcpy(order, all, static_cast<size_t>(count) * sizeof all[0]);
    return count;
  }
  int chosen = 0;
  bool taken[kMaxCards] = {};
  while (chosen < count) {
    while (*visible == ' ') ++visible;
    size_t length = strcspn(visible, ",");
    const char* next = visible + length;
    while (length > 0 && visible[length - 1] == ' ') --length;
    const int card = find_card(cards, count, all, visible, length);
    if (card < 0) break;
    if (taken[card]) return 0;
    taken[card] = true;
    order[chosen++] = static_cast<uint32_t>(card);
    if (*next != ',') break;
    visible = next + 1;
  }
  return chosen;
}

}  // namespace simgpu
