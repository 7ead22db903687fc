// SPDX-License-Identifier: Apache-2.0
// See books.h. An account per token has what the daemon allows and what is promised and used of it;
// a connection has its promise and its pieces. A promise is made only if the account allows it and
// the arena and the spill file have room for all promises together, so a piece within its promise
// always finds a place: pinned memory first, then the disk. A connection that is gone stays until
// its last copy has ended (settle()).
#include "park/books.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"

namespace mete::park {

namespace {

using abi::ParkReason;

constexpr uint64_t kMost = 1ull << 56;  // more than any machine has; keeps sums far from overflow

Refusal invalid() { return {ParkReason::kDriver, Books::kInvalid, 0}; }
Refusal stranger() { return {ParkReason::kNoMover, 0, 0}; }
Refusal no_room(uint64_t bytes) { return {ParkReason::kNoRoom, 0, bytes}; }

bool whole_granules(uint64_t bytes) {
  return bytes > 0 && bytes <= kMost && bytes % abi::kGranuleBytes == 0;
}

}  // namespace

Books::Books(uint64_t spill_bytes) {
  const uint64_t whole = spill_bytes / abi::kGranuleBytes * abi::kGranuleBytes;
  if (whole > 0) disk_.add(0, whole);
}

Answer Books::allow(const Token& token, uint32_t uid, uint64_t bytes) {
  if (token == Token{}) return invalid();
  if (!accounts_.contains(token) && accounts_.size() >= kMaxTokens) return no_room(0);
  Account& account = accounts_[token];
  account.uid = uid;
  account.allowed = std::min(bytes, kMost);
  account.open = true;
  return std::nullopt;
}

void Books::forbid(const Token& token) {
  const auto found = accounts_.find(token);
  if (found == accounts_.end()) return;
  found->second.open = false;
  // An account with connections stays until the last one is gone; see settle().
  if (found->second.connections == 0) accounts_.erase(found);
}

void Books::set_goal(uint64_t bytes) {
  goal_ = std::min(bytes, kMost) / abi::kGranuleBytes * abi::kGranuleBytes;
}

uint64_t Books::room() const { return memory_.size() + disk_.size() - promised_; }

Figures Books::figures() const { return {memory_.size() + disk_.size(), promised_, goal_, 0}; }

std::optional<Figures> Books::figures(const Token& token) const {
  const auto found = accounts_.find(token);
  if (found == accounts_.end()) return std::nullopt;
  uint64_t on_disk = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection.token != token) continue;
    for (const auto& [number, piece] : connection.pieces)
      for (const Extent& extent : piece.place.disk) on_disk += extent.bytes;
  }
  return Figures{found->second.allowed, found->second.used, found->second.promised, on_disk};
}

void Books::set_promise(Connection& connection, uint64_t bytes) {
  METE_ASSERT(bytes >= connection.used);
  Account& account = accounts_.at(connection.token);
  account.promised += bytes - connection.promised;
  promised_ += bytes - connection.promised;
  connection.promised = bytes;
}

Books::Hello Books::hello(ConnectionId id, const Promise& promise, bool may_wait) {
  const auto account = accounts_.find(promise.token);
  if (account == accounts_.end() || !account->second.open ||
      (promise.uid != account->second.uid && promise.uid != 0))
    return {stranger()};
  const auto known = connections_.find(id);
  if (known != connections_.end() && known->second.token != promise.token) return {stranger()};
  if (known == connections_.end() && account->second.connections >= kMaxConnectionsOfToken)
    return {stranger()};
  const uint64_t used = known == connections_.end() ? 0 : known->second.used;
  const uint64_t before = known == connections_.end() ? 0 : known->second.promised;
  const uint64_t bytes = std::max(abi::round_to_granule(std::min(promise.bytes, kMost)), used);
  if (bytes > before) {
    const uint64_t more = bytes - before;
    const uint64_t allowed =
        account->second.allowed - std::min(account->second.allowed, account->second.promised);
    if (more > allowed) return {no_room(before + std::min(allowed, room()))};
    const uint64_t in_memory = memory_.size() - std::min(memory_.size(), promised_);
    if (may_wait && more > in_memory && more <= in_memory + missing()) return {{}, true};
    if (more > room()) return {no_room(before + room())};
  }
  if (known == connections_.end()) ++account->second.connections;
  Connection& connection = connections_[id];
  connection.token = promise.token;
  set_promise(connection, bytes);
  return {};
}

Place Books::take(uint64_t bytes) {
  Place place;
  const uint64_t in_memory = std::min(bytes, memory_.free_bytes());
  place.memory = memory_.take(in_memory);
  place.disk = disk_.take(bytes - in_memory);
  // A promise can always be kept: the free bytes of both are at least the promises not yet used.
  METE_ASSERT(bytes == in_memory || !place.disk.empty());
  return place;
}

Answer Books::begin_out(ConnectionId id, uint64_t piece_id, uint64_t bytes, const Place** place) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return stranger();
  Connection& connection = found->second;
  Account& account = accounts_.at(connection.token);
  if (!account.open) return stranger();
  if (piece_id == 0 || !whole_granules(bytes) || connection.pieces.contains(piece_id))
    return invalid();
  const uint64_t left = connection.promised - connection.used;
  if (bytes > left) return no_room(left);
  Piece& piece = connection.pieces[piece_id];
  piece.bytes = bytes;
  piece.place = take(bytes);
  piece.copies = 1;
  connection.used += bytes;
  account.used += bytes;
  *place = &piece.place;
  return std::nullopt;
}

void Books::free_piece(Connection& connection, std::map<uint64_t, Piece>::iterator piece) {
  memory_.give(piece->second.place.memory);
  const std::vector<Extent>& on_disk = piece->second.place.disk;
  disk_.give(on_disk);
  freed_on_disk_.insert(freed_on_disk_.end(), on_disk.begin(), on_disk.end());
  connection.used -= piece->second.bytes;
  accounts_.at(connection.token).used -= piece->second.bytes;
  connection.pieces.erase(piece);
}

void Books::end_out(ConnectionId id, uint64_t piece_id, bool good) {
  Connection& connection = connections_.at(id);
  const auto piece = connection.pieces.find(piece_id);
  METE_ASSERT(piece != connection.pieces.end() && piece->second.copies == 1);
  piece->second.copies = 0;
  piece->second.whole = good;
  if (!good) free_piece(connection, piece);
  settle(id);
}

Answer Books::begin_in(ConnectionId id, uint64_t piece_id, uint64_t bytes, const Place** place) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return stranger();
  const auto piece = found->second.pieces.find(piece_id);
  if (piece == found->second.pieces.end() || !piece->second.whole || piece->second.bytes != bytes)
    return invalid();
  ++piece->second.copies;
  *place = &piece->second.place;
  return std::nullopt;
}

void Books::end_in(ConnectionId id, uint64_t piece_id) {
  Piece& piece = connections_.at(id).pieces.at(piece_id);
  METE_ASSERT(piece.copies > 0);
  --piece.copies;
  settle(id);
}

Answer Books::drop(ConnectionId id, uint64_t piece_id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return stranger();
  Connection& connection = found->second;
  if (piece_id != 0) {
    const auto piece = connection.pieces.find(piece_id);
    if (piece == connection.pieces.end()) return invalid();
    METE_ASSERT(piece->second.copies == 0);
    free_piece(connection, piece);
    return std::nullopt;
  }
  while (!connection.pieces.empty()) {
    METE_ASSERT(connection.pieces.begin()->second.copies == 0);
    free_piece(connection, connection.pieces.begin());
  }
  set_promise(connection, 0);
  return std::nullopt;
}

void Books::leave(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.gone = true;
  settle(id);
}

void Books::distrust(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found != connections_.end()) accounts_.at(found->second.token).open = false;
}

void Books::settle(ConnectionId id) {
  Connection& connection = connections_.at(id);
  if (!connection.gone) return;
  for (auto piece = connection.pieces.begin(); piece != connection.pieces.end();) {
    const auto next = std::next(piece);
    if (piece->second.copies == 0) free_piece(connection, piece);
    piece = next;
  }
  set_promise(connection, connection.used);
  if (!connection.pieces.empty()) return;
  const Token token = connection.token;
  connections_.erase(id);
  Account& account = accounts_.at(token);
  --account.connections;
  if (!account.open) forbid(token);
}

std::optional<Books::Surplus> Books::take_surplus() {
  const std::optional<uint32_t> segment = memory_.free_segment();
  if (memory_.size() <= goal_ || !segment) return std::nullopt;
  const uint64_t bytes = memory_.bytes_of(*segment);
  if (bytes > room()) return std::nullopt;
  memory_.remove(*segment);
  return Surplus{*segment, bytes};
}

}  // namespace mete::park
