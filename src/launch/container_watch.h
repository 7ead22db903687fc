// SPDX-License-Identifier: Apache-2.0
// Containers that a job starts: `docker run` asks a daemon, whose processes do not belong to the
// job and are not held to its limit. This cannot be prevented from here, but it can be detected and
// reported.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mete::launch {

// "docker run" for {"/usr/bin/docker", "--debug", "run", ...}, likewise for podman, nerdctl and the
// compose tools; nullopt: it starts no container.
std::optional<std::string> container_command(const std::vector<std::string_view>& words);

class ContainerWatch {
 public:
  // A message about those of these processes that start containers, once for each kind of command;
  // nullopt: nothing new. Cheap: reads one short file of each process, and the command line only of
  // processes with such a name.
  std::optional<std::string> look(const std::vector<pid_t>& processes);

 private:
  std::set<std::string> said_;
};

}  // namespace mete::launch
