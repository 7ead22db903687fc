// SPDX-License-Identifier: Apache-2.0
// The requests to a mover and their answers. See mover.h, docs/formats/park.md. look_at() checks a
// packet and holds it back if it must wait; handle() dispatches by kind. Books decides; a copy
// becomes a task for the copier, or for the spiller if a part of it lies on disk, and is answered
// when the task ends.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "abi/process.h"
#include "park/mover.h"

namespace mete::park {

namespace {

using abi::MoverMessage;
using abi::ParkReason;

Token token_of(const MoverMessage& message) {
  Token token;
  std::memcpy(token.data(), message.token, token.size());
  return token;
}

MoverMessage answer_to(const MoverMessage& message, const Answer& answer) {
  MoverMessage reply = make_message(answer ? MoverMessage::kRefused : MoverMessage::kDone);
  reply.id = message.id;
  reply.serial = message.serial;
  if (answer) {
    reply.reason = static_cast<uint32_t>(answer->reason);
    reply.detail = answer->detail;
    reply.bytes = answer->bytes;
  }
  return reply;
}

constexpr Refusal kStranger{ParkReason::kNoMover, 0, 0};
constexpr Refusal kInvalid{ParkReason::kDriver, Books::kInvalid, 0};

}  // namespace

// Every received packet passes here, in order.
void Mover::look_at(Connection& connection, Packet packet) {
  if (!packet.message) {
    // Another version, or not our protocol: one answer, in our version, and the end.
    connection.answer(answer_to(MoverMessage{}, kStranger));
    connection.last_word = true;
    return;
  }
  if (packet.descriptor && !may_be_memory(packet.descriptor.get()))
    return punish(connection, std::move(packet.descriptor));
  if (connection.must_wait(packet.message->kind)) {
    connection.held = std::move(packet);
    return;
  }
  handle(connection, std::move(packet));
}

// Closing a file of another user's file system may take as long as that user likes: a thread of its
// own does it. One token can cause this once.
void Mover::punish(Connection& connection, Fd descriptor) {
  say_("user " + std::to_string(connection.uid) + " sent a file in place of memory");
  books_.distrust(connection.id);
  const int number = descriptor.release();
  try {
    std::thread([number] { (void)::close(number); }).detach();
  } catch (const std::system_error&) {  // no thread: it stays open, which is the lesser evil
  }
  connection.answer(answer_to(MoverMessage{}, kInvalid));
  connection.last_word = true;
}

void Mover::handle(Connection& connection, Packet packet) {
  const MoverMessage& message = *packet.message;
  switch (message.kind) {
    case MoverMessage::kHello:
      return handle_hello(connection, std::move(packet));
    case MoverMessage::kOut:
    case MoverMessage::kIn:
      return handle_copy(connection, std::move(packet));
    case MoverMessage::kDrop:
      return connection.answer(answer_to(message, books_.drop(connection.id, message.id)));
    case MoverMessage::kAllow:
    case MoverMessage::kForbid:
    case MoverMessage::kArena:
    case MoverMessage::kStatus:
      return handle_daemon(connection, message);
    default:
      return connection.answer(answer_to(message, kInvalid));
  }
}

void Mover::handle_daemon(Connection& connection, const MoverMessage& message) {
  if (connection.uid != geteuid() && connection.uid != 0)
    return connection.answer(answer_to(message, kStranger));
  connection.daemon = true;
  switch (message.kind) {
    case MoverMessage::kAllow:
      return connection.answer(
          answer_to(message, books_.allow(token_of(message), message.uid, message.bytes)));
    case MoverMessage::kForbid:
      books_.forbid(token_of(message));
      return connection.answer(answer_to(message, std::nullopt));
    case MoverMessage::kArena:
      books_.set_goal(message.bytes);
      pin_error_ = CUDA_SUCCESS;  // retried at once
      pin_again_ns_ = 0;
      return connection.answer(answer_to(message, std::nullopt));
    default:
      return status(connection, message);
  }
}

void Mover::status(Connection& connection, const MoverMessage& message) {
  const Token token = token_of(message);
  const bool of_all = token == Token{};
  const std::optional<Figures> figures = of_all ? books_.figures() : books_.figures(token);
  MoverMessage answer = answer_to(message, figures ? Answer() : kInvalid);
  if (figures) {
    answer.bytes = figures->size;
    answer.used = figures->used;
    answer.wanted = figures->goal;
    answer.id = figures->on_disk;
  }
  if (of_all && pin_error_ != CUDA_SUCCESS) {
    answer.reason = static_cast<uint32_t>(ParkReason::kDriver);
    answer.detail = static_cast<uint32_t>(pin_error_);
  }
  connection.answer(answer);
}

void Mover::handle_hello(Connection& connection, Packet packet) {
  const MoverMessage& message = *packet.message;
  if (terms_ > 0) return connection.answer(answer_to(message, kStranger));
  const uint64_t now = abi::monotonic_ns();
  const bool in_time = connection.held_until_ns == 0 || now < connection.held_until_ns;
  const Books::Hello hello =
      books_.hello(connection.id, {token_of(message), connection.uid, message.bytes},
                   in_time && pin_error_ == CUDA_SUCCESS);
  if (hello.wait) {
    if (connection.held_until_ns == 0) connection.held_until_ns = now + kMaxWaitNs;
    connection.held = std::move(packet);
    return;
  }
  connection.held_until_ns = 0;
  if (!hello.answer) connection.process = true;
  connection.answer(answer_to(message, hello.answer));
}

void Mover::handle_copy(Connection& connection, Packet packet) {
  const MoverMessage& message = *packet.message;
  const bool out = message.kind == MoverMessage::kOut;
  if (connection.process && (!packet.descriptor || packet.too_many))
    return connection.answer(answer_to(message, kInvalid));
  const Place* place = nullptr;
  const Answer refused = out ? books_.begin_out(connection.id, message.id, message.bytes, &place)
                             : books_.begin_in(connection.id, message.id, message.bytes, &place);
  if (refused) return connection.answer(answer_to(message, refused));
  CopyTask task;
  task.number = next_task_++;
  task.out = out;
  task.descriptor = std::move(packet.descriptor);
  task.bytes = message.bytes;
  task.parts = parts_of(*place);
  task.off = connection.gone;
  uint64_t on_disk = 0;
  for (const Extent& extent : place->disk) on_disk += extent.bytes;
  tasks_[task.number] = {connection.id, message.id, message.serial, out, on_disk};
  ++(out ? connection.copies_out : connection.copies_in);
  connection.questions.push_back({task.number, {}});
  if (place->disk.empty()) return copier_->send(std::move(task));
  spiller_->forget(books_.take_freed_on_disk());  // before new data is written there
  spiller_->send(std::move(task));
}

std::vector<Part> Mover::parts_of(const Place& place) const {
  std::vector<Part> parts;
  for (const Extent& extent : place.memory)
    parts.push_back({segments_.at(extent.segment).memory + extent.offset, 0, extent.bytes});
  for (const Extent& extent : place.disk) parts.push_back({nullptr, extent.offset, extent.bytes});
  return parts;
}

// Processes a held request again: copies have ended, there is room, or time is over.
void Mover::retry_held(Connection& connection) {
  if (!connection.held || connection.must_wait(connection.held->message->kind)) return;
  Packet packet = std::move(*connection.held);
  connection.held.reset();
  handle(connection, std::move(packet));
}

}  // namespace mete::park
