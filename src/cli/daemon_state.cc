// SPDX-License-Identifier: Apache-2.0
// See daemon_state.h. Only meted's own program knows how the state is kept: without a daemon we
// become that program.
#include "cli/daemon_state.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "net/daemon_start.h"
#include "wire/cards.h"

namespace mete::cli {

namespace {

using runner::DaemonClient;

// The folder of the state that is meant.
Result<std::string> state_folder(const std::string* said) {
  if (said != nullptr) return *said;
  Result<runner::DaemonPlace> place = runner::daemon_place();
  if (!place) return std::move(place).error();
  return std::move(place->state_dir);
}

// The daemon that works with this state; nullopt: none runs.
struct Found {
  DaemonClient client;
  wire::DaemonView view;
};
std::optional<Found> daemon_of(const std::string& folder) {
  Result<DaemonClient> client = DaemonClient::open(DaemonClient::Start::kNever);
  if (!client) return std::nullopt;
  const Result<std::string> document = client->call("GET", "/v1/daemon");
  if (!document) return std::nullopt;
  Result<wire::DaemonView> view = wire::decode_daemon(*document);
  if (!view || base::real_path(view->state_dir) != base::real_path(folder)) return std::nullopt;
  return Found{*std::move(client), *std::move(view)};
}

int become_meted(std::vector<std::string> words, const Output& output) {
  const std::string program = net::program_beside_us("meted");
  if (program.empty())
    return output.fail(Error::not_found("meted is missing").with_hint("install all of mete"));
  words.insert(words.begin(), program);
  if (output.json()) words.emplace_back("--json");
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  (void)execv(program.c_str(), arguments.data());
  return output.fail(Error::from_errno("run " + program, errno));
}

// The daemon runs in another folder.
std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char here[4096];
  return getcwd(here, sizeof here) == nullptr ? path : base::join_path(here, path);
}

std::string lines(const std::vector<wire::ReloadView::Change>& changes) {
  std::size_t width = 0;
  for (const auto& change : changes) width = std::max(width, change.key.size());
  std::string text;
  const auto shown = [](const std::string& value) { return value.empty() ? "not set" : value; };
  for (const auto& change : changes)
    text += "\n  " + change.key + std::string(width - change.key.size() + 2, ' ') +
            shown(change.old_value) + " -> " + shown(change.new_value) + "  (" +
            base::printable(change.origin) + ")";
  return text;
}

}  // namespace

int reload_daemon(DaemonClient& client, const Output& output) {
  const Result<std::string> document = client.call("POST", "/v1/daemon/reload");
  if (!document) {
    Error error = document.error();
    const bool bad_file = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kNotFound ||
                          error.code == ErrorCode::kIo;
    if (bad_file && error.evidence.empty()) error.evidence = "the daemon keeps its values";
    return output.fail(error, bad_file ? kExitBadFile : exit_code_of(error.code));
  }
  const Result<wire::ReloadView> view = wire::decode_reload(*document);
  if (!view) return output.fail(view.error());
  if (output.json()) {
    output.data(*document);
    return kExitOk;
  }
  if (view->applied.empty() && view->restart.empty())
    output.data(view->files.empty() ? "no configuration file: the defaults apply, nothing changed"
                                    : "nothing changed");
  if (!view->applied.empty()) output.data("changed:" + lines(view->applied));
  if (!view->restart.empty())
    output.data("applies only after a restart of the daemon:" + lines(view->restart));
  return kExitOk;
}

int backup_daemon(const StateFile& what, const Output& output) {
  const Result<std::string> folder = state_folder(what.state_dir);
  if (!folder) return output.fail(folder.error());
  const std::string file = absolute(what.file);
  std::optional<Found> found = daemon_of(*folder);
  if (!found) return become_meted({"--backup", file, "--state-dir", absolute(*folder)}, output);
  const Result<std::string> document =
      found->client.call("POST", "/v1/daemon/backup", wire::encode(wire::BackupRequest{file}));
  if (!document) return output.fail(document.error());
  const Result<wire::BackupView> view = wire::decode_backup(*document);
  if (!view) return output.fail(view.error());
  output.data(output.json() ? *document : base::printable(wire::text_of(*view)));
  return kExitOk;
}

int restore_daemon(const StateFile& what, const Output& output) {
  const Result<std::string> folder = state_folder(what.state_dir);
  if (!folder) return output.fail(folder.error());
  if (const std::optional<Found> found = daemon_of(*folder))
    return output.fail(
        Error::busy("the daemon runs: its state cannot be replaced")
            .with_evidence("pid " + std::to_string(found->view.pid))
            .with_hint(found->view.mode == "system" ? "systemctl stop meted" : "mete daemon stop"));
  std::vector<std::string> words = {"--restore", absolute(what.file), "--state-dir",
                                    absolute(*folder)};
  if (what.force) words.emplace_back("--force");
  if (what.dry_run) words.emplace_back("--dry-run");
  return become_meted(std::move(words), output);
}

int repair_daemon(const std::string* said, const Output& output) {
  const Result<std::string> asked = state_folder(said);
  if (!asked) return output.fail(asked.error());
  const std::string folder = base::real_path(*asked);
  if (folder.empty()) return output.fail(Error::io("there is no state in " + base::quote(*asked)));
  if (const std::optional<Found> found = daemon_of(folder))
    return output.fail(Error::busy("the daemon runs, and its state is not damaged")
                           .with_evidence("pid " + std::to_string(found->view.pid))
                           .with_hint("mete daemon stop, if it should be looked at all the same"));
  return become_meted({"--repair", "--state-dir", folder}, output);
}

}  // namespace mete::cli
