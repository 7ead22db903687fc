// SPDX-License-Identifier: Apache-2.0
// The cards: the machine as last read, with what jobs hold beyond their grants; for the engine and
// as documents. Routes: /v1/cards and below.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "serve/call.h"
#include "serve/dispatcher.h"
#include "serve/host.h"
#include "serve/machine_reading.h"
#include "wire/cards.h"

namespace mete::serve {

class Cards {
 public:
  Cards(const Host& host, Dispatcher& dispatcher)
      : clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        dispatcher_(dispatcher) {}

  // Takes a new reading and passes it to the engine.
  void see(MachineReading reading);
  // A job reports that it holds no more than this on the cards of its grant. What it reports as
  // given back counts as held until the next reading shows otherwise.
  void doubt(core::JobId id, std::vector<Bytes> held);

  const MachineReading& machine() const { return machine_; }
  // All users see the number, user and bytes of each job on a card; only users who may see the job
  // see its name, with [sight] others = "all" all users. nullptr: no names.
  wire::CardsDocument document(const net::Peer* reader) const;

  void get(Call& call);
  void drain(Call& call) { set_drained(call, true); }
  void undrain(Call& call) { set_drained(call, false); }

 private:
  void set_drained(Call& call, bool drained);
  std::map<std::string, Bytes> counted(const core::Job& job) const;
  core::Pool believed() const;
  wire::CardView::JobShare share_of(const core::Holder& holder, const std::string& uuid,
                                    const net::Peer* reader) const;

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  Dispatcher& dispatcher_;
  MachineReading machine_;
  // What jobs have reported to hold since the last reading.
  std::map<core::JobId, std::vector<Bytes>> doubted_;
};

}  // namespace mete::serve
