// SPDX-License-Identifier: Apache-2.0
// See mover_client.h.
#include "park/mover_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "park/door.h"
#include "park/packets.h"

namespace mete::park {

using abi::MoverMessage;

Result<MoverClient> MoverClient::connect(const std::string& socket, int timeout_ms) {
  Result<Fd> connected = connect_to_mover(socket, timeout_ms);
  if (!connected) return std::move(connected).error();
  return MoverClient(std::move(*connected), timeout_ms);
}

namespace {

uint32_t serial_of(const std::byte* bytes) {
  uint32_t serial = 0;
  std::memcpy(&serial, bytes + offsetof(MoverMessage, serial), sizeof serial);
  return serial;
}

}  // namespace

Result<MoverMessage> MoverClient::ask(MoverMessage message) {
  std::byte bytes[sizeof(MoverMessage)];
  ssize_t count = 0;
  message.serial = ++asked_;
  do {
    count = ::send(socket_.get(), &message, sizeof message, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  // A loop that watches the descriptor has made it one that does not wait.
  pollfd ready{socket_.get(), POLLIN, 0};
  while (count > 0) {
    const int seen = poll(&ready, 1, timeout_ms_);
    if (seen == 0) return Error::busy("the mover does not answer");
    if (seen < 0 && errno == EINTR) continue;
    count = recv(socket_.get(), bytes, sizeof bytes, 0);
    // The answer to a question that was given up comes late.
    const bool late = count == static_cast<ssize_t>(sizeof bytes) &&
                      serial_of(bytes) != message.serial && serial_of(bytes) != 0;
    if (!late && (count >= 0 || errno != EINTR)) break;
    count = 1;
  }
  if (count < 0 && errno == EAGAIN) return Error::busy("the mover does not answer");
  if (count <= 0) return Error::io("the mover is gone");
  const std::optional<MoverMessage> answer = read_request({bytes, static_cast<std::size_t>(count)});
  if (!answer) return Error::unsupported("the mover speaks another version");
  if (answer->kind == MoverMessage::kDone) return *answer;
  const std::string reason =
      "reason " + std::to_string(answer->reason) + ", detail " + std::to_string(answer->detail);
  if (answer->reason == static_cast<uint32_t>(abi::ParkReason::kNoMover))
    return Error::denied("the mover refuses").with_evidence(reason);
  if (answer->reason == static_cast<uint32_t>(abi::ParkReason::kNoRoom))
    return Error::exhausted("the mover has no room").with_evidence(reason);
  return Error::invalid("the mover refuses").with_evidence(reason);
}

namespace {

MoverMessage with_token(MoverMessage::Kind kind, const MoverClient::Token& token) {
  MoverMessage message = make_message(kind);
  std::memcpy(message.token, token.data(), token.size());
  return message;
}

Result<void> without_value(const Result<MoverMessage>& answer) {
  if (!answer) return answer.error();
  return {};
}

}  // namespace

Result<void> MoverClient::allow(const Token& token, std::uint32_t uid, Bytes bytes) {
  MoverMessage message = with_token(MoverMessage::kAllow, token);
  message.uid = uid;
  message.bytes = bytes.count();
  return without_value(ask(message));
}

Result<void> MoverClient::forbid(const Token& token) {
  return without_value(ask(with_token(MoverMessage::kForbid, token)));
}

Result<void> MoverClient::set_arena(Bytes bytes) {
  MoverMessage message = make_message(MoverMessage::kArena);
  message.bytes = bytes.count();
  return without_value(ask(message));
}

Result<MoverClient::Status> MoverClient::status() {
  const Result<MoverMessage> answer = ask(make_message(MoverMessage::kStatus));
  if (!answer) return answer.error();
  return Status{Bytes::from_bytes(answer->bytes), Bytes::from_bytes(answer->used),
                Bytes::from_bytes(answer->wanted), answer->detail};
}

Result<MoverClient::TokenStatus> MoverClient::status_of(const Token& token) {
  Result<MoverMessage> answer = ask(with_token(MoverMessage::kStatus, token));
  if (!answer && answer.error().code == ErrorCode::kInvalid)
    return Error::not_found("the mover does not know this token");
  if (!answer) return std::move(answer).error();
  return TokenStatus{Bytes::from_bytes(answer->bytes), Bytes::from_bytes(answer->used),
                     Bytes::from_bytes(answer->wanted)};
}

}  // namespace mete::park
