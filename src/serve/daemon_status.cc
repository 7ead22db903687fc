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
  view.config_trouble = around.config_trouble;
  view.needs_restart = around.needs_restart;
  view.escapes = identity_.escape_stop ? "stop" : "warn";
  if (identity_.notify_counts) view.notify = identity_.notify_counts();
  view.running = engine_.state().active().size();
  view.pending = engine_.state().unfinished() - view.running;
  return view;
}

void DaemonStatus::backup(Call& call) {
  if (!is_for(call, "only root may copy the state of the machine's daemon")) return;
  const Result<wire::BackupRequest> request = wire::decode_backup_request(call.request.body);
  if (!request) return call.reply(refuse_words(request.error()));
  on_backup(request->path, [this, responder = call.responder](
                               const Result<wire::BackupView>& done) mutable {
    responder.reply(done ? respond(200, wire::encode(*done, clock_.wall())) : refuse(done.error()));
  });
}

bool DaemonStatus::is_for(Call& call, const char* denied) const {
  if (call.peer().uid == 0 || call.peer().uid == identity_.uid) return true;
  call.reply(refuse(Error::denied(denied)));
  return false;
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
  if (!is_for(call, "only root may stop the machine's daemon")) return;
  call.reply(respond(200, wire::encode(view(), clock_.wall())));
  on_stop();
}

void DaemonStatus::reload(Call& call) {
  if (!is_for(call, "only root may reload the configuration of the machine's daemon")) return;
  const Result<wire::ReloadView> done = on_reload();
  call.reply(done ? respond(200, wire::encode(*done, clock_.wall())) : refuse(done.error()));
}

}  // namespace mete::serve
