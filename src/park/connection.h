// SPDX-License-Identifier: Apache-2.0
// One connection of a mover: its requests, in order, and their answers so far. A copy is answered
// when it has ended, everything else at once; answers go out in the order of the requests. Reading
// ahead is bounded, so a client that never reads its answers blocks only itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "abi/park.h"
#include "park/books.h"
#include "park/packets.h"

namespace mete::park {

struct Connection {
  static constexpr std::size_t kMaxUnanswered = 32;

  struct Question {
    uint64_t task = 0;  // of the copy; 0: answered
    abi::MoverMessage answer{};
  };

  ConnectionId id = 0;
  Fd socket;
  uint32_t uid = 0;
  uint64_t since_ns = 0;
  bool daemon = false;     // has sent a request that only a daemon may send
  bool process = false;    // has shown a token
  bool last_word = false;  // to be closed once its answers are out
  std::deque<Question> questions;
  int copies_out = 0;  // under way
  int copies_in = 0;
  // Received and not processed yet: copies before it are under way, or there is no room yet.
  std::optional<Packet> held;
  uint64_t held_until_ns = 0;  // of a hello that waits for room
  std::shared_ptr<std::atomic<bool>> gone = std::make_shared<std::atomic<bool>>(false);

  bool may_read() const { return !held && !last_word && questions.size() < kMaxUnanswered; }
  // Kinds of requests may overtake each other; this keeps those in order for which it matters.
  bool must_wait(uint16_t kind) const {
    if (kind == abi::MoverMessage::kOut) return false;
    if (kind == abi::MoverMessage::kIn) return copies_out > 0;
    return copies_out + copies_in > 0;
  }
  void answer(const abi::MoverMessage& message) { questions.push_back({0, message}); }
  void answer_task(uint64_t task, const abi::MoverMessage& message) {
    for (Question& question : questions)
      if (question.task == task) question = {0, message};
  }
  bool has_answers() const { return !questions.empty() && questions.front().task == 0; }
  // Sends what is ready; false: the connection is broken.
  bool flush() {
    while (has_answers()) {
      const Sent sent = send(socket.get(), questions.front().answer);
      if (sent == Sent::kFull) return true;
      if (sent == Sent::kEnd) return false;
      questions.pop_front();
    }
    return !(last_word && questions.empty());
  }
};

}  // namespace mete::park
