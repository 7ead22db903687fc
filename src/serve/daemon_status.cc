// SPDX-License-Identifier: Apache-2.0
#include "serve/daemon_status.h"

#include <unistd.h>

#include <chrono>

#include "serve/reply.h"

namespace mete::serve {

wire::DaemonView DaemonStatus::view() const {
  wire::DaemonView view;
  view.version = identity_.version;
  view.pid = getpid();
  view.mode = identity_.mode;
  view.state_dir = identity_.state_dir;
  view.simulated = identity_.simulated;
  view.uptime_s = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(uptime()).count());
  view.policy = std::string(to_string(engine_.policy()));
  view.trouble = machine_.trouble;
  view.disk_full = engine_.disk_full();
  view.idle_end_s = identity_.idle_end_s;
  const Around around = identity_.around();
  view.socket = around.socket;
  view.metrics = around.metrics;
  view.metrics_trouble = around.metrics_trouble;
  view.escapes = identity_.escape_stop ? "stop" : "warn";
  if (identity_.notify_counts) view.notify = identity_.notify_counts();
  view.running = engine_.state().active().size();
  view.pending = engine_.state().unfinished() - view.running;
  return view;
}

void DaemonStatus::get_version(Call& call) {
  call.reply(respond(200, "{\"api\":" + std::to_string(kApiVersion) + ",\"version\":\"" +
                              identity_.version + "\",\"grant_abi\":\"" + identity_.grant_abi +
                              "\",\"store\":" + std::to_string(identity_.store) +
                              ",\"keys\":true}"));
}

void DaemonStatus::get(Call& call) {
  call.reply(respond(200, wire::encode(view(), clock_.wall())));
}

void DaemonStatus::stop(Call& call) {
  if (call.peer().uid != 0 && call.peer().uid != identity_.uid)
    return call.reply(refuse(Error::denied("only root may stop the machine's daemon")));
  call.reply(respond(200, wire::encode(view(), clock_.wall())));
  on_stop();
}

}  // namespace mete::serve
