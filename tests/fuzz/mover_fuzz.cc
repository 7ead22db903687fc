// SPDX-License-Identifier: Apache-2.0
// Anything that processes, daemons and the driver may do to a mover's books. The input is a list of
// steps {what, connection, id, size}; first of all it is taken as one packet. No step may break an
// assertion of the books, nobody may read a piece that is not his own and whole, no two pieces may
// share a byte, and when all are gone everything is free.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/assert.h"
#include "park/books.h"
#include "park/packets.h"

namespace {

using namespace mete;
using park::Answer;
using park::Books;
using park::Extent;
using park::Place;

constexpr std::uint64_t kGranule = abi::kGranuleBytes;
constexpr std::uint32_t kConnections = 4;

struct Input {
  const std::uint8_t* data;
  std::size_t size;
  std::uint32_t take() {
    if (size == 0) return 0;
    --size;
    return *data++;
  }
};

// The books, and beside them what should be true of them.
struct World {
  enum class State { kFilling, kWhole };
  struct Piece {
    State state;
    std::uint64_t bytes;
    int reading = 0;
    std::set<std::pair<std::uint64_t, std::uint64_t>> granules;  // store and segment, granule
  };
  using Name = std::pair<std::uint32_t, std::uint64_t>;

  Books books{64 * kGranule};
  std::uint32_t segments = 0;
  std::uint32_t life[kConnections] = {};  // a closed connection's number is never used again
  std::map<Name, Piece> pieces;
  std::set<std::pair<std::uint64_t, std::uint64_t>> taken;

  std::uint64_t number(std::uint32_t connection) const {
    return life[connection] * kConnections + connection + 1;
  }
  void mark(const Place& place, Piece& piece) {
    std::uint64_t bytes = 0;
    for (const auto* list : {&place.memory, &place.disk})
      for (const Extent& extent : *list) {
        bytes += extent.bytes;
        const std::uint64_t store = extent.segment * 2ull + (list == &place.disk ? 1 : 0);
        for (std::uint64_t at = 0; at < extent.bytes; at += kGranule) {
          METE_ASSERT(taken.emplace(store, extent.offset + at).second);
          piece.granules.emplace(store, extent.offset + at);
        }
      }
    METE_ASSERT(bytes == piece.bytes);
  }
  void forget(std::map<Name, Piece>::iterator piece) {
    for (const auto& granule : piece->second.granules) taken.erase(granule);
    pieces.erase(piece);
  }
  bool copying(std::uint32_t connection) const {
    return std::any_of(pieces.begin(), pieces.end(), [&](const auto& entry) {
      return entry.first.first == connection &&
             (entry.second.state == State::kFilling || entry.second.reading > 0);
    });
  }
  // Whatever is under way for this piece ends, well or not.
  void end(std::map<Name, Piece>::iterator piece, std::uint32_t good) {
    const std::uint64_t connection = number(piece->first.first);
    for (; piece->second.reading > 0; --piece->second.reading)
      books.end_in(connection, piece->first.second);
    if (piece->second.state != State::kFilling) return;
    books.end_out(connection, piece->first.second, good != 0);
    piece->second.state = State::kWhole;
    if (good == 0) forget(piece);
  }
  void leave(std::uint32_t connection) {
    books.leave(number(connection));
    for (auto piece = pieces.lower_bound({connection, 0});
         piece != pieces.end() && piece->first.first == connection;) {
      const auto next = std::next(piece);
      end(piece, 1);
      piece = next;
    }
    for (auto piece = pieces.lower_bound({connection, 0});
         piece != pieces.end() && piece->first.first == connection;) {
      const auto next = std::next(piece);
      forget(piece);
      piece = next;
    }
    METE_ASSERT(!books.known(number(connection)));
    ++life[connection];
  }
};

void step(World& world, Input& input) {
  const std::uint32_t what = input.take(), connection = input.take() % kConnections;
  const std::uint64_t id = input.take() % 8, bytes = input.take() * (kGranule / 2);
  const park::Token token{static_cast<std::uint8_t>(id)};
  const auto piece = world.pieces.find({connection, id});
  const Place* place = nullptr;
  switch (what % 11) {
    case 0:
      (void)world.books.allow(token, static_cast<std::uint32_t>(bytes / kGranule % 3), bytes * 4);
      break;
    case 1:
      world.books.forbid(token);
      break;
    case 2:
      (void)world.books.hello(world.number(connection), {token, what / 11 % 3, bytes}, what > 127);
      break;
    case 3: {
      const Answer answer = world.books.begin_out(world.number(connection), id, bytes, &place);
      METE_ASSERT(answer || piece == world.pieces.end());
      if (answer) break;
      World::Piece& made = world.pieces[{connection, id}];
      made = {World::State::kFilling, bytes, 0, {}};
      world.mark(*place, made);
      break;
    }
    case 4: {
      const Answer answer = world.books.begin_in(world.number(connection), id, bytes, &place);
      if (answer) break;
      METE_ASSERT(piece != world.pieces.end() && piece->second.state == World::State::kWhole &&
                  piece->second.bytes == bytes);
      ++piece->second.reading;
      break;
    }
    case 5:
      if (piece != world.pieces.end()) world.end(piece, what / 11 % 2);
      break;
    case 6:
      if (world.copying(connection)) break;
      if (world.books.drop(world.number(connection), id)) break;
      for (auto at = world.pieces.begin(); at != world.pieces.end();) {
        const auto next = std::next(at);
        if (at->first.first == connection && (id == 0 || at->first.second == id)) world.forget(at);
        at = next;
      }
      break;
    case 7:
      world.leave(connection);
      break;
    case 8:
      world.books.set_goal(bytes);
      break;
    case 9:
      if (world.books.missing() > 0)
        world.books.add_segment(world.segments++, std::min(world.books.missing(), 16 * kGranule));
      break;
    default:
      if (const auto surplus = world.books.take_surplus())
        for (const auto& granule : world.taken)
          METE_ASSERT(granule.first != surplus->segment * 2ull);
  }
  const park::Figures figures = world.books.figures();
  METE_ASSERT(figures.used <= figures.size && figures.used >= world.taken.size() * kGranule);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto request = park::read_request(std::as_bytes(std::span(data, size))))
    METE_ASSERT(request->magic == abi::kMoverMagic && request->version == abi::kMoverVersion);
  World world;
  Input input{data, size};
  while (input.size > 0) step(world, input);
  for (std::uint32_t connection = 0; connection < kConnections; ++connection)
    world.leave(connection);
  METE_ASSERT(world.taken.empty() && world.books.idle());
  world.books.set_goal(0);
  while (world.books.take_surplus()) continue;
  METE_ASSERT(world.books.figures().size == 64 * kGranule);
  return 0;
}
