// SPDX-License-Identifier: Apache-2.0
// The arena of a mover grows towards its goal and shrinks to it, one segment at a time, in a thread
// of its own. See mover.h.
#include <algorithm>

#include "park/mover.h"

namespace mete::park {

void Mover::tend_arena(uint64_t now) {
  if (pinning_) return;
  if (const std::optional<Books::Surplus> surplus = books_.take_surplus()) {
    const auto segment = segments_.find(surplus->segment);
    pinner_->send({0, segment->second.memory});
    segments_.erase(segment);
    pinning_ = true;
    return;
  }
  if (books_.missing() == 0 || now < pin_again_ns_) return;
  // Pinning keeps the driver busy, for other users of the machine too: not during copies, unless a
  // process waits for the room.
  const bool awaited = std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
    return entry.second.held_until_ns > 0;
  });
  if (!tasks_.empty() && !awaited) return;
  pinner_->send({std::min(books_.missing(), kSegment), nullptr});
  pinning_ = true;
}

void Mover::end_of_errand(const Pinner::Done& done, uint64_t now) {
  pinning_ = false;
  if (done.memory != nullptr) {
    const uint32_t segment = next_segment_++;
    segments_[segment] = {static_cast<char*>(done.memory), done.bytes};
    books_.add_segment(segment, done.bytes);
    pin_error_ = CUDA_SUCCESS;
  } else if (done.bytes > 0) {
    if (pin_error_ != done.result)
      say_("cannot pin more than " + to_string(Bytes::from_bytes(books_.figures().size)) +
           " of host memory: " + card_.name_of(done.result));
    pin_error_ = done.result;
    pin_again_ns_ = now + kPinAgainNs;
  } else if (done.result != CUDA_SUCCESS) {
    say_("cannot give host memory back: " + card_.name_of(done.result));
  }
}

}  // namespace mete::park
