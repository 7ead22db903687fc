// SPDX-License-Identifier: Apache-2.0
// Containers that a job starts: `docker run` asks a daemon, whose processes are not the job's and
// do not have its cap. That cannot be prevented from here; it can be noticed and said.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mete::launch {

// "docker run" for {"/usr/bin/docker", "--debug", "run", ...}, also of podman, nerdctl and the
// compose tools; nullopt: it starts no container.
std::optional<std::string> container_command(const std::vector<std::string_view>& words);

class ContainerWatch {
 public:
  // A line for people about those among these processes that start containers, each kind of command
  // once; nullopt: nothing new. Cheap: a short file of each process, and what it was started with
  // only of those that have such a name.
  std::optional<std::string> look(const std::vector<pid_t>& processes);

 private:
  std::set<std::string> said_;
};

}  // namespace mete::launch
