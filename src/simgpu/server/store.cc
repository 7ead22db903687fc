// SPDX-License-Identifier: Apache-2.0
// Physical memory: every change of a card's `used` happens in take() and drop_piece(). A piece has
// a count of references from all holders and one count for each client; it is dropped when the
// total reaches zero. Tokens of legacy IPC lead to a piece and die with their owner.
#include "simgpu/server/store.h"

#include <sys/random.h>

#include <algorithm>

namespace simgpu {
namespace {
constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kLost = 46;
constexpr int kInvalidHandle = 400;

uint64_t spread(uint32_t element, uint32_t value) {
  if (element == 1) return (value & 0xff) * 0x01010101u;
  if (element == 2) return (value & 0xffff) * 0x00010001u;
  return value;
}
}  // namespace

const Piece* Store::find(PieceId id) const {
  const auto found = pieces_.find(id);
  return found == pieces_.end() ? nullptr : &found->second;
}

bool Store::holds(ClientId client, PieceId id) const {
  const auto held = held_.find(client);
  return held != held_.end() && held->second.count(id) != 0;
}

int Store::check(ClientId client, PieceId id, uint64_t offset, uint64_t bytes) const {
  const Piece* piece = find(id);
  if (piece == nullptr || !holds(client, id)) return kInvalidHandle;
  if (machine.cards[piece->card].info.state != 0) return kLost;
  if (offset > piece->bytes || bytes > piece->bytes - offset) return kInvalidValue;
  return kOk;
}

int Store::take(ClientId client, uint32_t card, uint64_t bytes, MemoryClass use, PieceId* id) {
  if (card >= machine.cards.size() || bytes == 0) return kInvalidValue;
  Card& on = machine.cards[card];
  if (on.info.state != 0) return kLost;
  if (bytes > on.capacity()) return kOutOfMemory;
  const uint64_t rounded = (bytes + kGranule - 1) / kGranule * kGranule;
  if (rounded > on.capacity() - std::min(on.used, on.capacity())) return kOutOfMemory;
  on.used += rounded;
  Piece piece;
  piece.card = card;
  piece.bytes = rounded;
  piece.use = use;
  piece.owner = client;
  piece.holders = 1;
  *id = next_piece_++;
  pieces_.emplace(*id, std::move(piece));
  held_[client][*id] = 1;
  return kOk;
}

int Store::give(ClientId client, PieceId id) {
  const auto held = held_.find(client);
  if (held == held_.end()) return kInvalidHandle;
  const auto entry = held->second.find(id);
  if (entry == held->second.end()) return kInvalidHandle;
  if (--entry->second == 0) {
    held->second.erase(entry);
    Piece& piece = pieces_[id];
    if (piece.owner == client) piece.owner = 0;
    std::erase(piece.openers, client);
  }
  drop_piece(id, 1);
  return kOk;
}

int Store::resize(ClientId client, PieceId id, uint64_t bytes) {
  if (!holds(client, id)) return kInvalidHandle;
  Piece& piece = pieces_[id];
  Card& on = machine.cards[piece.card];
  if (on.info.state != 0) return kLost;
  if (bytes > on.capacity()) return kOutOfMemory;
  const uint64_t rounded = (bytes + kGranule - 1) / kGranule * kGranule;
  if (on.used - piece.bytes + rounded > on.capacity()) return kOutOfMemory;
  on.used = on.used - piece.bytes + rounded;
  piece.bytes = rounded;
  return kOk;
}

int Store::hold(ClientId client, PieceId id) {
  if (find(id) == nullptr) return kInvalidHandle;
  ++held_[client][id];
  ++pieces_[id].holders;
  return kOk;
}

void Store::hold_piece(PieceId id, uint64_t count) {
  const auto found = pieces_.find(id);
  if (found != pieces_.end()) found->second.holders += count;
}

void Store::drop_piece(PieceId id, uint64_t count) {
  const auto found = pieces_.find(id);
  if (found == pieces_.end()) return;
  found->second.holders -= std::min(count, found->second.holders);
  if (found->second.holders != 0) return;
  if (!found->second.away) machine.cards[found->second.card].used -= found->second.bytes;
  for (auto token = tokens_.begin(); token != tokens_.end();) {
    token = token->second.piece == id ? tokens_.erase(token) : std::next(token);
  }
  pieces_.erase(found);
}

int Store::usage(uint32_t card, uint64_t* used, uint64_t* capacity) const {
  if (card >= machine.cards.size()) return kInvalidValue;
  if (machine.cards[card].info.state != 0) return kLost;
  *used = machine.cards[card].used;
  *capacity = machine.cards[card].capacity();
  return kOk;
}

int Store::write(ClientId client, PieceId id, uint64_t offset, const void* data, uint64_t bytes) {
  const int why = check(client, id, offset, bytes);
  if (why != kOk) return why;
  Piece& piece = pieces_[id];
  if (piece.contents == nullptr) piece.contents = std::make_unique<Contents>(&host);
  const bool done = piece.contents->write(offset, static_cast<const uint8_t*>(data), bytes);
  return done ? kOk : kOutOfMemory;
}

int Store::read(ClientId client, PieceId id, uint64_t offset, void* data, uint64_t bytes) const {
  const int why = check(client, id, offset, bytes);
  if (why != kOk) return why;
  const Piece* piece = find(id);
  if (piece->contents == nullptr) {
    std::fill_n(static_cast<uint8_t*>(data), bytes, uint8_t{0});
  } else {
    piece->contents->read(offset, static_cast<uint8_t*>(data), bytes);
  }
  return kOk;
}

int Store::fill(ClientId client, PieceId id, const Fill& what) {
  if (what.rows == 0 || what.width == 0) return kOk;
  if (what.rows > 1 && what.pitch < what.width) return kInvalidValue;  // also bounds the loop below
  uint64_t span = 0;
  if (__builtin_mul_overflow(what.pitch, what.rows - 1, &span) ||
      __builtin_add_overflow(span, what.width, &span)) {
    return kInvalidValue;
  }
  const int why = check(client, id, what.offset, span);
  if (why != kOk) return why;
  Piece& piece = pieces_[id];
  if (piece.contents == nullptr) piece.contents = std::make_unique<Contents>(&host);
  const uint32_t pattern = static_cast<uint32_t>(spread(what.element, what.value));
  if (what.pitch == what.width || what.rows == 1) {
    return piece.contents->fill(what.offset, span, pattern) ? kOk : kOutOfMemory;
  }
  for (uint64_t row = 0; row < what.rows; ++row) {
    if (!piece.contents->fill(what.offset + row * what.pitch, what.width, pattern)) {
      return kOutOfMemory;
    }
  }
  return kOk;
}

int Store::copy(ClientId client, Place to, Place from, uint64_t bytes) {
  int why = check(client, to.id, to.offset, bytes);
  if (why == kOk) why = check(client, from.id, from.offset, bytes);
  if (why != kOk) return why;
  Piece& target = pieces_[to.id];
  Piece& source = pieces_[from.id];
  if (source.contents == nullptr) source.contents = std::make_unique<Contents>(&host);
  if (target.contents == nullptr) target.contents = std::make_unique<Contents>(&host);
  const bool done = target.contents->copy_from(*source.contents, from.offset, to.offset, bytes);
  return done ? kOk : kOutOfMemory;
}

int Store::ipc_export(ClientId client, PieceId id, uint64_t offset, uint64_t bytes,
                      uint64_t token[2]) {
  const int why = check(client, id, offset, bytes);
  if (why != kOk) return why;
  // A block always gets the same handle, as from the real driver.
  for (const auto& [number, made] : tokens_) {
    if (made.piece == id && made.offset == offset && made.bytes == bytes) {
      token[0] = number;
      token[1] = made.secret;
      return kOk;
    }
  }
  IpcToken made{id, offset, bytes, 0};
  if (getrandom(&made.secret, sizeof made.secret, 0) != sizeof made.secret) return kInvalidValue;
  token[0] = next_token_++;
  token[1] = made.secret;
  tokens_.emplace(token[0], made);
  return kOk;
}

int Store::ipc_open(ClientId client, const uint64_t token[2], IpcToken* found) {
  const auto entry = tokens_.find(token[0]);
  if (entry == tokens_.end() || entry->second.secret != token[1]) return kInvalidValue;
  const Piece* piece = find(entry->second.piece);
  if (piece == nullptr || piece->owner == 0) return kInvalidValue;
  if (machine.cards[piece->card].info.state != 0) return kLost;
  *found = entry->second;
  std::vector<ClientId>& openers = pieces_[entry->second.piece].openers;
  if (std::find(openers.begin(), openers.end(), client) == openers.end()) openers.push_back(client);
  return hold(client, entry->second.piece);
}

ClientId Store::counted_to(const Piece& piece) {
  if (piece.owner != 0) return piece.owner;
  return piece.owner_died && !piece.openers.empty() ? piece.openers.front() : 0;
}

Store::Held Store::forget_client(ClientId client) {
  Held held;
  drop_left(client);
  const auto entry = held_.find(client);
  if (entry != held_.end()) {
    held = std::move(entry->second);
    held_.erase(entry);
  }
  for (const auto& [id, count] : held) {
    Piece& piece = pieces_[id];
    piece.owner_died = piece.owner_died || piece.owner == client;
    if (piece.owner == client) piece.owner = 0;
    std::erase(piece.openers, client);
  }
  return held;
}

void Store::release(const Held& held) {
  for (const auto& [id, count] : held) drop_piece(id, count);
}

}  // namespace simgpu
