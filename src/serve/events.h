// SPDX-License-Identifier: Apache-2.0
// Readers of the log: one page, the next page as soon as there is one, or a stream of events as
// they happen. Route: /v1/events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "net/http_server.h"
#include "serve/call.h"
#include "serve/dispatcher.h"
#include "serve/host.h"

namespace mete::serve {

class Events {
 public:
  Events(const Host& host, Dispatcher& dispatcher)
      : clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        dispatcher_(dispatcher) {}

  void get(Call& call);
  // After a turn: queues the new events for each reader.
  void feed_all();
  bool empty() const { return readers_.empty(); }

 private:
  struct Reader {
    std::uint64_t number = 0;
    std::uint64_t after = 0;  // the last event that the client has
    std::size_t limit = 0;
    net::Peer peer;
    bool stream = false;
    bool wait = false;    // until there is an event
    bool queued = false;  // will be fed
    net::Responder responder;
  };
  enum class Fed { kDone, kNothingYet, kMore };

  Fed feed(Reader& reader);
  void feed_again(std::uint64_t number);
  void feed_soon(Reader& reader);
  std::list<Reader>::iterator find(std::uint64_t number);
  bool may_see_event(const seam::StoredEvent& event, const net::Peer& peer) const;
  bool owns_sweep(const seam::StoredEvent& event, const net::Peer& peer) const;

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  Dispatcher& dispatcher_;
  std::list<Reader> readers_;
  std::uint64_t last_number_ = 0;
  std::uint64_t fed_seq_ = 0;
};

}  // namespace mete::serve
