// SPDX-License-Identifier: Apache-2.0
// The checks, in groups. A group runs in a process of its own, fresh from exec, unless it starts
// several processes itself. Every function prints rows and returns nothing: a failed check never
// keeps the next one from running.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mete::selftest {

// A card of this machine as it looks from outside the cap; "" if the driver does not report it.
struct KnownCard {
  std::string uuid;
  std::string bus;
  std::string serial;
};

struct Task {
  std::string program;           // this very program, by path
  std::vector<KnownCard> cards;  // all cards of the machine
};

struct Group {
  std::string_view name;
  void (*run)(const Task& task);
  bool several;  // starts processes itself and never touches the driver
};

std::span<const Group> groups();
const Group* find_group(std::string_view name);

// Runs a group: in a child process if it needs one. A child that dies or hangs is a failed row.
void run_group(const Group& group, const Task& task);

void check_start(const Task& task);    // deaths.cc
void check_lookups(const Task& task);  // lookups.cc
void check_linear(const Task& task);   // linear.cc
void check_virtual(const Task& task);  // virtual.cc
void check_pools(const Task& task);    // pools.cc
void check_managed(const Task& task);  // managed.cc
void check_current_managed(const Task& task);
void check_graphs(const Task& task);    // graphs.cc
void check_arrays(const Task& task);    // arrays.cc
void check_contexts(const Task& task);  // contexts.cc
void check_old(const Task& task);       // old.cc
void check_queries(const Task& task);   // queries.cc
void check_nvml(const Task& task);      // nvml.cc
void check_sharing(const Task& task);   // sharing.cc
void check_deaths(const Task& task);    // deaths.cc

}  // namespace mete::selftest
