// SPDX-License-Identifier: Apache-2.0
// This process: its environment, the name of its machine, and the arguments for programs that it
// starts.
#pragma once

#include <string>
#include <vector>

namespace mete::base {

// The value of an environment variable; "" if it is not set.
std::string variable(const char* name);
std::vector<std::string> own_environment();

// HOME, or the folder from the user database; "" if neither is known.
std::string home_folder();

// "node7.example.org"; "localhost" if the machine has no name.
std::string host_name();
// "node7" of "node7.example.org", as Slurm names nodes.
std::string short_host_name();

// For exec and posix_spawn: a pointer to each text, and a null pointer at the end. The pointers are
// valid as long as `texts` is.
std::vector<char*> pointers(const std::vector<std::string>& texts);

}  // namespace mete::base
