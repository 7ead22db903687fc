// SPDX-License-Identifier: Apache-2.0
// One row per fact of the NVML ABI. The including file has included exactly one of the two headers
// before.
#pragma once
#include <cstddef>
#include <string>
#include <typeinfo>
#include <vector>

namespace mete::tests {

struct AbiFact {
  std::string name;
  std::string value;
};

std::vector<AbiFact> abi_ours();
std::vector<AbiFact> abi_theirs();

}  // namespace mete::tests

// The type of a field matters as much as its place: a signed temperature read as unsigned is a bug
// with the same offset.
#define VALUE(name) table.push_back({#name, std::to_string(static_cast<long long>(name))});
#define SIZE(type)                  \
  table.push_back({"sizeof " #type, \
                   std::to_string(sizeof(type)) + " align " + std::to_string(alignof(type))});
#define FIELD(type, field)                                                         \
  table.push_back({#type "." #field, std::to_string(offsetof(type, field)) + " " + \
                                         typeid(decltype(type::field)).name()});
#define FUNCTION(function) table.push_back({#function "()", typeid(decltype(&function)).name()});
