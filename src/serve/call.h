// SPDX-License-Identifier: Apache-2.0
// One request, as passed to the handler of its route (routes.h).
#pragma once

#include <string>
#include <string_view>

#include "engine/engine.h"
#include "net/http_server.h"

namespace mete::serve {

struct Call {
  const net::Request& request;
  net::Responder responder;
  std::string_view name = {};  // what the path has in place of {card}, {id}, {sweep}, …
  core::JobId job = {};        // {id} as a number

  const net::Peer& peer() const { return request.peer; }
  void reply(const net::Response& response) { responder.reply(response); }
  // Whether the client accepts this content type: "text/event-stream".
  bool accepts(std::string_view type) const {
    const std::string* accept = request.header("accept");
    return accept != nullptr && accept->find(type) != std::string::npos;
  }
};

}  // namespace mete::serve
