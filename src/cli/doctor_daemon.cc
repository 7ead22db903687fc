// SPDX-License-Identifier: Apache-2.0
// mete doctor: the socket, and the daemon behind it. Starts none.
#include <sys/stat.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/doctor.h"
#include "config/config.h"
#include "runner/daemon_client.h"
#include "wire/cards.h"

namespace mete::cli {

namespace {

std::string with_evidence(const Error& error) {
  return error.message + (error.evidence.empty() ? "" : ": " + error.evidence);
}

void check_answer(runner::DaemonClient& client, const std::string& path, Checks& checks) {
  const Result<std::string> document =
      client.call("GET", "/v1/daemon", {}, {net::Milliseconds(5'000), -1});
  const Result<wire::DaemonView> view =
      document ? wire::decode_daemon(*document) : Result<wire::DaemonView>(document.error());
  if (!view) {
    checks.push_back({Verdict::kFail, "daemon", path + ": " + with_evidence(view.error()),
                      "fuser -v " + path + " shows who listens there"});
    return;
  }
  checks.push_back({Verdict::kOk, "daemon",
                    "answers at " + view->socket + " as pid " + std::to_string(view->pid) + " (" +
                        view->mode + " mode)"});
  if (view->version != METE_VERSION)
    checks.push_back({Verdict::kWarn, "version",
                      "the daemon is " + view->version + ", this is " METE_VERSION,
                      "mete daemon stop; the next command starts the new one"});
  checks.push_back({Verdict::kOk, "escapes",
                    view->escapes == "stop"
                        ? "a job with memory outside its meter is ended (escape.policy = stop)"
                        : "memory outside of meters is reported, its job runs on (escape.policy = "
                          "warn)"});
  if (!view->trouble.empty())
    checks.push_back({Verdict::kWarn, "readings", view->trouble, "mete cards says more"});
  if (!view->metrics.empty())
    checks.push_back({Verdict::kOk, "metrics", "are served at " + view->metrics});
  if (!view->metrics_trouble.empty())
    checks.push_back({Verdict::kWarn, "metrics", "are not served: " + view->metrics_trouble,
                      "mete config show --origin says where; the daemon tries again"});
  if (view->disk_full)
    checks.push_back({Verdict::kFail, "log", "the disk of its state is full: no new jobs",
                      "df -h " + view->state_dir});
}

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// The programs that --notify needs, looked up in the PATH that deliveries have. Only those that the
// configuration uses may be reported as missing.
void check_notify(Checks& checks) {
  const Result<config::Config> config =
      config::load_config(config::ConfigPlaces::from_environment(true));
  if (!config) return;  // check_state reports it
  const std::string& mailer = config->sendmail.value;
  const bool curl =
      is_program("/usr/local/bin/curl") || is_program("/usr/bin/curl") || is_program("/bin/curl");
  const bool mail = is_program(mailer);
  bool missed = false;
  for (const std::string& text : config->notify_to.value)
    missed =
        missed || (!curl && text.starts_with("webhook:")) || (!mail && text.starts_with("mail"));
  checks.push_back({missed ? Verdict::kWarn : Verdict::kOk, "notify",
                    std::string("webhooks ") + (curl ? "by curl" : "cannot be: there is no curl") +
                        ", mail " + (mail ? "by " : "cannot be: there is no ") + mailer,
                    missed ? "apt install " + std::string(curl ? "a mail server" : "curl") : ""});
}

}  // namespace

void check_daemon(Checks& checks) {
  check_notify(checks);
  const Result<runner::DaemonPlace> place = runner::daemon_place();
  if (!place) return;  // check_state reports it
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kNever);
  if (client) {
    check_answer(*client, client->http().path(), checks);
    return;
  }
  const Result<std::string> path = net::private_socket(place->places);
  if (!path) {
    checks.push_back({Verdict::kFail, "socket", with_evidence(path.error()),
                      path.error().hint.empty() ? "unset METE_SOCKET" : path.error().hint});
    return;
  }
  if (!runner::nobody_listens(client.error())) {
    checks.push_back(
        {Verdict::kFail, "socket", with_evidence(client.error()),
         client.error().hint.empty() ? "export METE_SOCKET=/another/path" : client.error().hint});
    return;
  }
  struct stat info {};
  if (lstat(path->c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    checks.push_back(
        {Verdict::kFail, "socket", *path + " is in the way: not a socket", "rm " + *path});
    return;
  }
  if (net::system_is_down(place->places)) {
    checks.push_back(
        {Verdict::kFail, "daemon",
         "the daemon of this machine does not answer at " + place->places.system_socket,
         "sudo systemctl start meted"});
    return;
  }
  checks.push_back(
      {Verdict::kOk, "daemon", "none runs; the next command that needs one starts it at " + *path});
}

}  // namespace mete::cli
