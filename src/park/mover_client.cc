// SPDX-License-Identifier: Apache-2.0
// See mover_client.h.
#include "park/mover_client.h"

#include <cstring>
#include <utility>

#include "park/door.h"
#include "park/packets.h"

namespace mete::park {

using abi::MoverMessage;

namespace {

MoverMessage with_token(MoverMessage::Kind kind, const MoverClient::Token& token) {
  MoverMessage message = make_message(kind);
  std::memcpy(message.token, token.data(), token.size());
  return message;
}

Result<void> verdict(const MoverMessage& answer) {
  if (answer.kind == MoverMessage::kDone) return {};
  const std::string reason =
      "reason " + std::to_string(answer.reason) + ", detail " + std::to_string(answer.detail);
  if (answer.reason == static_cast<uint32_t>(abi::ParkReason::kNoMover))
    return Error::denied("the mover refuses").with_evidence(reason);
  if (answer.reason == static_cast<uint32_t>(abi::ParkReason::kNoRoom))
    return Error::exhausted("the mover has no room").with_evidence(reason);
  return Error::invalid("the mover refuses").with_evidence(reason);
}

}  // namespace

Result<MoverClient> MoverClient::connect(const std::string& socket) {
  Result<Fd> connected = connect_to_mover(socket, 0);
  if (!connected) return std::move(connected).error();
  return MoverClient(std::move(*connected));
}

Result<MoverClient::Question> MoverClient::ask(MoverMessage message) {
  if (++asked_ == 0) ++asked_;
  message.serial = asked_;
  switch (send(socket_.get(), message)) {
    case Sent::kDone:
      return asked_;
    case Sent::kFull:
      return Error::busy("the mover does not read its socket");
    case Sent::kEnd:
      break;
  }
  return Error::io("the mover is gone");
}

Result<std::optional<MoverClient::Answer>> MoverClient::hear() {
  Packet packet;
  const Received received = receive(socket_.get(), false, &packet);
  if (received == Received::kEnd) return Error::io("the mover is gone");
  if (received == Received::kNothing) return std::optional<Answer>();
  Answer answer;
  if (!packet.message) {
    answer.done = Error::unsupported("the mover speaks another protocol version");
    return std::optional(std::move(answer));
  }
  answer.question = packet.message->serial;
  answer.done = verdict(*packet.message);
  if (!answer.done) return std::optional(std::move(answer));
  answer.size = Bytes::from_bytes(packet.message->bytes);
  answer.used = Bytes::from_bytes(packet.message->used);
  answer.goal = Bytes::from_bytes(packet.message->wanted);
  answer.on_disk = Bytes::from_bytes(packet.message->id);
  answer.pin_error = packet.message->detail;
  return std::optional(std::move(answer));
}

Result<MoverClient::Question> MoverClient::allow(const Token& token, std::uint32_t uid,
                                                 Bytes bytes) {
  MoverMessage message = with_token(MoverMessage::kAllow, token);
  message.uid = uid;
  message.bytes = bytes.count();
  return ask(message);
}

Result<MoverClient::Question> MoverClient::forbid(const Token& token) {
  return ask(with_token(MoverMessage::kForbid, token));
}

Result<MoverClient::Question> MoverClient::set_arena(Bytes bytes) {
  MoverMessage message = make_message(MoverMessage::kArena);
  message.bytes = bytes.count();
  return ask(message);
}

Result<MoverClient::Question> MoverClient::ask_status() {
  return ask(make_message(MoverMessage::kStatus));
}

Result<MoverClient::Question> MoverClient::ask_status(const Token& token) {
  return ask(with_token(MoverMessage::kStatus, token));
}

}  // namespace mete::park
