// SPDX-License-Identifier: Apache-2.0
// See container_watch.h.
#include "launch/container_watch.h"

#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr std::string_view kTools[] = {"docker", "podman", "nerdctl"};
constexpr std::string_view kComposers[] = {"docker-compose", "podman-compose"};
// Options of the tools themselves, before the command, that take a value as the next argument.
constexpr std::string_view kWithValue[] = {"-H",
                                           "--host",
                                           "-c",
                                           "--context",
                                           "--config",
                                           "-l",
                                           "--log-level",
                                           "--tlscert",
                                           "--tlskey",
                                           "--tlscacert",
                                           "--root",
                                           "--runroot",
                                           "--connection",
                                           "--url",
                                           "--identity",
                                           "--namespace",
                                           "-n",
                                           "--address",
                                           "-a",
                                           "--snapshotter",
                                           "--storage-driver",
                                           "--data-root",
                                           "-f",
                                           "--file",
                                           "-p",
                                           "--project-name",
                                           "--profile",
                                           "--env-file",
                                           "--project-directory"};
constexpr std::size_t kMostLooked = 512;

template <typename List>
bool is_one_of(std::string_view word, const List& list) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// The arguments that are neither options nor their values, from `at` on.
std::vector<std::string_view> commands(const std::vector<std::string_view>& words, std::size_t at) {
  std::vector<std::string_view> found;
  for (; at < words.size() && found.size() < 2; ++at) {
    if (words[at].starts_with('-'))
      at += is_one_of(words[at], kWithValue) ? 1 : 0;
    else if (!words[at].empty())
      found.push_back(words[at]);
  }
  return found;
}

bool composes(std::string_view word) { return word == "up" || word == "run"; }

}  // namespace

std::optional<std::string> container_command(const std::vector<std::string_view>& words) {
  if (words.empty()) return std::nullopt;
  const std::string_view tool = base_name(words[0]);
  std::vector<std::string_view> found = commands(words, 1);
  if (is_one_of(tool, kComposers)) {
    // The plug-in of `docker compose` is called with its own name first.
    if (found.size() == 2 && found[0] == "compose") found.erase(found.begin());
    if (found.empty() || !composes(found[0])) return std::nullopt;
    return std::string(tool) + " " + std::string(found[0]);
  }
  if (!is_one_of(tool, kTools) || found.empty()) return std::nullopt;
  if (found[0] == "run") return std::string(tool) + " run";
  if (found.size() == 2 && found[0] == "container" && found[1] == "run")
    return std::string(tool) + " container run";
  if (found.size() == 2 && found[0] == "compose" && composes(found[1]))
    return std::string(tool) + " compose " + std::string(found[1]);
  return std::nullopt;
}

std::optional<std::string> ContainerWatch::look(const std::vector<pid_t>& processes) {
  for (std::size_t i = 0; i < std::min(processes.size(), kMostLooked); ++i) {
    const std::string folder = "/proc/" + std::to_string(processes[i]) + "/";
    const Result<std::string> name = base::read_all(folder + "comm");
    if (!name) continue;
    const std::string_view tool = base::trim(*name);
    if (!is_one_of(tool, kTools) && !is_one_of(tool, kComposers)) continue;
    const Result<std::string> line = base::read_all(folder + "cmdline");
    if (!line) continue;
    const std::optional<std::string> command = container_command(base::split(*line, '\0'));
    if (!command || !said_.insert(*command).second) continue;
    return "process " + std::to_string(processes[i]) + " of the job is '" + *command +
           "': what runs in containers is not held to the job's GPU memory";
  }
  return std::nullopt;
}

}  // namespace mete::launch
